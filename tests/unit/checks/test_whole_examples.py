"""Whole blocks of rules as an author writes them, from YAML to the record of the verdict."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

import checks
from checks import Verdict
from checks.declared import Fields
from checks.expect import Around, Expect, read_expect
from checks.judge import Counted, Judge, Question
from checks.world import World

INLINE = """
repair: none
judge_budget: 200
expectations:
  - id: summary_present
    type: not_null
    field: rationale

  - id: summary_length
    type: word_count_between
    field: rationale
    params:
      min: 20
      max: 200
    severity: warn

  - id: no_hedging_language
    type: no_forbidden_phrases
    field: rationale
    params:
      phrases: ["it seems", "possibly", "may or may not"]
    severity: warn

  - id: summary_grounded
    type: llm_judge
    field: rationale
    severity: info
    params:
      votes: 3
      rule: >
        The summary only states facts present in the grounding text and
        does not introduce claims the source does not support.
"""

FILE = """
name: grounded_summary
fields:
  - id: rationale
    type: string
    description: "Concise summary of the source."
    expectations:
      - id: summary_present
        type: not_null

      - id: summary_length
        type: word_count_between
        params:
          min: 20
          max: 200
        severity: warn

  - id: exam_density
    type: string
    expectations:
      - id: density_is_a_known_level
        type: accepted_values
        params:
          values: [high, medium, low]

expectations:
  - id: front_and_back_are_balanced
    type: word_count_ratio
    field: [term, definition]
    params:
      max_ratio: 4

  - id: score_matches_verdict
    type: expression
    params:
      condition: 'score >= 80 or verdict != "approved"'
"""


def read(block: object, fields: list[str], own: Any = None) -> Expect:
    world = World(fields=Fields.of(fields), references=frozenset())
    found = read_expect(block, Around(world, own=own))
    assert found is not None
    return found


def test_an_inline_block_gives_the_documented_record() -> None:
    expect = read(yaml.safe_load(INLINE), ["rationale"])

    async def ask(_: Question) -> str:
        return '{"passed": true, "reason": "supported"}'

    judge = Judge(Counted(ask, budget=expect.judge_budget))
    candidate = {"rationale": "word " * 212}
    verdict: Verdict = asyncio.run(judge.judge(expect.suite, candidate))
    outcome = {"passed": True, "detail": "", "skipped": False}
    assert verdict.as_record() == {
        "overall_pass": True,
        "failed": [],
        "skipped": [],
        "outcomes": [
            {"id": "summary_present", "type": "not_null", "severity": "error", **outcome},
            {"id": "summary_length", "type": "word_count_between", "severity": "warn", **outcome,
             "passed": False, "detail": "212 words, expected at most 200"},
            {"id": "no_hedging_language", "type": "no_forbidden_phrases", "severity": "warn",
             **outcome},
            {"id": "summary_grounded", "type": "llm_judge", "severity": "info", **outcome,
             "detail": "3/3 judge votes passed"},
        ],
    }  # fmt: skip


def test_rules_in_a_file_run_with_those_on_fields_first() -> None:
    fields = ["rationale", "exam_density", "term", "definition", "score", "verdict"]
    expect = read({"repair": "none"}, fields, yaml.safe_load(FILE))
    candidate = {
        "rationale": "word " * 30, "exam_density": "dense", "term": "CFL",
        "definition": "one two three four five", "score": 64, "verdict": "approved",
    }  # fmt: skip
    verdict = expect.suite.judge(candidate)
    assert verdict.failed == (
        "density_is_a_known_level", "front_and_back_are_balanced", "score_matches_verdict",
    )  # fmt: skip
    assert [finding.reason for finding in verdict.findings] == [
        "",
        "",
        "'dense' is not one of 'high', 'medium', 'low'",
        "word counts 1 to 5, ratio 5.00 exceeds 4",
        "condition 'score >= 80 or verdict != \"approved\"' is false "
        "(score=64, verdict='approved')",
    ]


SOURCES = sorted(Path(checks.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_no_module_evaluates_text(source: Path) -> None:
    tree = ast.parse(source.read_text(encoding="utf-8"))
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "compile", "__import__", "globals", "vars"} - (
        {"vars"} if source.stem == "custom" else set()  # of a module of checks
    )


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_modules_are_as_short_as_they_are_meant_to_be(source: Path) -> None:
    assert len(source.read_text(encoding="utf-8").splitlines()) <= 300
