"""The cases of tests/cases/conformance: answers observed of the system the rules come from.

Where an answer is not to be copied, ``settled.json`` has ours, and the number of the ADR that says
why. README.md there says what a case holds.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from checks.custom import CheckError, check, rule_type
from checks.declared import Fields
from checks.expect import Around, read_expect
from checks.judge import Counted, Judge, Question
from checks.suite import SuiteError, compile_suite
from checks.world import World

CASES = Path(__file__).parents[2] / "cases" / "conformance"
ADRS = Path(__file__).parents[3] / "docs" / "adr"
Case = dict[str, Any]

# The corpus declares every field a string; these are what its records hold.
KINDS = {
    "rationale": "text", "material": "text", "cfl": "number", "cells": "number", "tags": "texts",
}  # fmt: skip
PROMPTS = {
    "$p.Fix": "{original_prompt} {response_json} {failed_lines} {passing_lines}",
    "$p.BadFix": "{failures}",
}
# What of a kind of action the corpus knows stands for an agent that cannot repair.
CANNOT_REPAIR = "a tool gives the same answer again"


def decoded(value: Any) -> Any:
    """``{"$float": "nan"}`` as the float it stands for."""
    if isinstance(value, dict):
        if set(value) == {"$float"}:
            return float(value["$float"])
        return {key: decoded(part) for key, part in value.items()}
    return [decoded(part) for part in value] if isinstance(value, list) else value


def load(name: str) -> Any:
    return decoded(json.loads((CASES / f"{name}.json").read_text(encoding="utf-8")))


SETTLED: dict[str, dict[str, Case]] = load("settled")


def cases(name: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in load(name)]


def answer(expected: Mapping[str, Any]) -> str:
    return "waived" if expected["skipped"] else "pass" if expected["passed"] else "fail"


@pytest.mark.parametrize("case", cases("rules"))
def test_a_rule_answers_as_observed_or_as_settled(case: Case) -> None:
    expected, settled = case["expected"], SETTLED["rules"].get(case["id"])
    assert settled or "disputed" not in case, "a disputed case without a decision"
    try:
        outcome = compile_suite([case["rule"]]).judge(case["record"]).findings[0].as_record()
        found, detail = answer(outcome), str(outcome["detail"])
    except SuiteError as refusal:
        found, detail = "refuse", str(refusal)
    if case.get("note", "").startswith("unparseable or refused") and not settled:
        assert found in ("refuse", "fail")
        return
    assert found == (settled["answer"] if settled else answer(expected))
    if not settled:
        assert all(part in detail for part in expected["detail_contains"] or ())


@pytest.mark.parametrize("case", cases("verdicts"))
def test_a_verdict_has_the_flags_and_the_order_observed(case: Case) -> None:
    record: Case = compile_suite(case["rules"]).judge(case["record"]).as_record()
    expected, settled = case["expected"], SETTLED["verdicts"].get(case["id"])
    outcomes = record.pop("outcomes")
    for found, wanted in zip(outcomes, expected.pop("outcomes"), strict=True):
        assert found["id"]
        assert wanted.items() <= found.items()
    if settled:
        failed = [name.replace("*", "") for name in settled["failed"]]
        assert [a.startswith(b) for a, b in zip(record.pop("failed"), failed, strict=True)] == [
            True
        ]
        expected.pop("failed")
    assert record == expected


def refusal(case: Case) -> str:
    """Why a block is refused; ``""`` when it is accepted."""
    document = case.get("schema_doc")
    names = [one["id"] for one in document["fields"]] if document else case["schema_fields"]
    action = case.get("action", {})
    able = action.get("kind") != "tool" and "granularity" not in action
    upstream = case.get("upstream", {})
    try:
        own = {
            one["name"]: rule_type(
                check(
                    one["name"], params=one["params"], required=one["required"], scope=one["scope"]
                )(lambda _, __: (True, ""))
            )
            for one in case.get("custom_types", ())
        }
        world = World(
            fields=Fields.of({name: KINDS.get(name, "any") for name in names}),
            own=own,
            references=frozenset(f"{a}.{name}" for a, parts in upstream.items() for name in parts),
        )
        around = Around(
            world, document, case.get("suites", {}), PROMPTS, "" if able else CANNOT_REPAIR
        )
        read_expect(case["expect_block"], around, defaults=case.get("defaults_expect"))
    except (SuiteError, CheckError) as refused:
        return str(refused)
    return ""


@pytest.mark.parametrize("case", cases("preflight"))
def test_a_block_is_refused_or_accepted_as_observed_or_as_settled(case: Case) -> None:
    settled = SETTLED["preflight"].get(case["id"])
    assert settled or "disputed" not in case, "a disputed case without a decision"
    message = refusal(case)
    found = "refuse" if message else "accept"
    observed = "accept" if case["accepted"] else "refuse"
    assert found == (settled["answer"] if settled else observed), message
    names: list[str] = case["names"] or case.get("should_name") or []
    if settled:
        names = settled.get("names", names)
    if found == "refuse":
        assert [name for name in names if name not in message] == []


@pytest.mark.parametrize("case", cases("judge"))
def test_a_judged_rule_answers_and_costs_as_observed_or_as_settled(case: Case) -> None:
    settled = SETTLED["judge"].get(case["id"])
    assert settled or "disputed" not in case, "a disputed case without a decision"
    # The corpus has judged rules gate unless told otherwise; here they inform.
    rules = [{"severity": "error", **rule} for rule in case["rules"]]
    suite = compile_suite(rules, judge=["read_log.text"])
    replies = list(case["replies"])

    async def ask(_: Question) -> str:
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, dict):
            raise ConnectionError(reply["error"])
        return str(reply)

    poll = Counted(ask, budget=case["judge_budget"])
    judge = Judge(poll)
    contexts = case.get("context", [{}] * len(case["records"]))

    async def judged() -> list[dict[str, Any]]:
        return [
            (await judge.judge(suite, record, context=context)).as_record()
            for record, context in zip(case["records"], contexts, strict=True)
        ]

    verdicts = asyncio.run(judged())
    if settled:
        assert poll.calls == settled["calls"]
        assert [verdict["overall_pass"] for verdict in verdicts] == settled["overall_pass"]
        return
    assert poll.calls == case["expected_calls"]
    for verdict, expected in zip(verdicts, case["expected"], strict=True):
        for found, wanted in zip(verdict.pop("outcomes"), expected.pop("outcomes"), strict=True):
            assert all(part in found["detail"] for part in wanted.pop("detail_contains") or ())
            assert wanted.items() <= found.items()
        assert verdict == expected


def test_every_decision_is_about_a_case_and_names_an_adr() -> None:
    for name, decisions in SETTLED.items():
        assert set(decisions) <= {case["id"] for case in load(name)}
        for decision in decisions.values():
            assert len(list(ADRS.glob(f"{decision['adr']:04}-*.md"))) == 1
