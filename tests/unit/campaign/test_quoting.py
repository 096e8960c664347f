"""What a rule says of the rationale: told to the agent, and written nowhere."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.config import CampaignConfig
from campaign.events import Judged, SlotEnded
from campaign.model import JobOutcome
from checks.world import BUILT_IN, JUDGE
from running import agent, run
from square import GOOD

CANARY = "zanzibar"
WHY = f"because {CANARY} says so"
BY_TYPE: dict[str, dict[str, Any]] = {
    "not_null": {"params": {"row_condition": "rationale != 'none'"}},
    "no_null_fields": {"field": None},
    "word_count_between": {"params": {"min": 9}},
    "word_count_ratio": {"field": ["rationale", "x"], "params": {"max_ratio": 1.5}},
    "accepted_values": {"params": {"values": ["good"]}},
    "matches_regex": {"params": {"pattern": "^[0-9]+$"}},
    "match_like_pattern": {"params": {"like_pattern": "good%"}},
    "no_forbidden_phrases": {"params": {"phrases": ["because"]}},
    "contains_terms_from": {"params": {"terms": ["viscosity"]}},
    "expression": {"field": None, "params": {"condition": "rationale == 'good'"}},
    "value_between": {"params": {"min": 0}},
    "is_finite": {},
    "multiple_of": {"params": {"step": 2}},
    "distinct": {},
    "distinct_from_history": {},
    "min_separation": {"field": ["rationale"], "params": {"distance": 0.1,
                       "bounds": {"rationale": [0, 1]}}},
}  # fmt: skip
CHECK = """
from checks import check


@check("quotes")
def quotes(value, params):
    return False, f"{value} is no reason"


@check("raises")
def raises(value, params):
    return float(value) > 0, ""


@check("reads_all", scope="record")
def reads_all(record, params):
    return False, f"{record['rationale'].split()[1]} is no reason"


@check("reads_some", scope="record")
def reads_some(record, params):
    return False, f"x: {record['x']}; give more"
"""


def entry(kind: str, **more: Any) -> dict[str, Any]:
    rule = {"id": "why", "type": kind, "field": "rationale"} | more
    return {key: value for key, value in rule.items() if value is not None}


def one_round(rule: dict[str, Any], **changes: Any) -> CampaignConfig:
    expect = {"expectations": [rule], "max_iterations": 2}
    changes = {"policy": {"check_error": "warn_continue"}} | changes
    return running.config(**{"rounds": 1, "verifiers": [], "expect": expect} | changes)


def with_checks(folder: Path) -> Path:
    (folder / "checks").mkdir()
    (folder / "checks" / "mine.py").write_text(CHECK)
    return folder


def details(ran: running.Ran) -> list[str]:
    judged = next(one.event for one in ran.entries if isinstance(one.event, Judged))
    return [verdict.expect["outcomes"][0]["detail"] for verdict in judged.verdicts]


def test_every_type_of_rule_is_put_to_the_rationale_here() -> None:
    assert set(BY_TYPE) == set(BUILT_IN) - {JUDGE, "item_count"}  # that is refused for text


@pytest.mark.parametrize("kind", BY_TYPE)
def test_no_rule_over_the_rationale_puts_its_words_into_the_ledger(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = one_round(entry(kind, **BY_TYPE[kind]))
    ran = run(tmp_path, settings, proposer=agent(GOOD, GOOD, rationale=WHY))
    assert CANARY.encode() not in (tmp_path / "ledger.jsonl").read_bytes()
    assert CANARY not in caplog.text + ran.ending.reason


@pytest.mark.parametrize(
    ("kind", "field", "kept"),
    [
        ("quotes", "rationale", "not passed; what this rule says may quote the rationale, which "
         "is kept nowhere"),
        ("raises", "rationale", "check raised ValueError; what this rule says may quote the "
         "rationale, which is kept nowhere"),
        ("reads_all", None, "not passed; what this rule says may quote the rationale, which is "
         "kept nowhere"),
        ("reads_some", None, "x: 0.1; give more"),
    ],
)  # fmt: skip
def test_a_check_of_ones_own_tells_the_agent_and_not_the_ledger(
    tmp_path: Path, kind: str, field: str | None, kept: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    settings = one_round(entry(kind, field=field))
    ran = run(with_checks(tmp_path), settings, proposer=agent(GOOD, GOOD, rationale=WHY))
    assert details(ran)[0] == kept
    assert CANARY.encode() not in (tmp_path / "ledger.jsonl").read_bytes()
    assert CANARY not in caplog.text


def test_the_agent_is_told_in_full(tmp_path: Path) -> None:
    proposer = agent(GOOD, GOOD, rationale=WHY)
    run(tmp_path, one_round(entry("accepted_values", params={"values": ["a"]})), proposer=proposer)
    (found,) = [one for one in proposer.asks[1].rejections[0].findings if not one.passed]
    assert found.words == f"'{WHY}' is not one of 'a'"
    assert CANARY not in f"{found!r} {proposer.asks[1]!r}"


def test_how_a_run_failed_does_not_quote_the_rationale(tmp_path: Path) -> None:
    rule = entry("matches_regex", params={"pattern": "^[0-9]+$"})
    ending = {"semantic_rejection": "fail_run", "structural_failure": "fail_run"}
    ran = run(tmp_path, one_round(rule, policy=ending), proposer=agent(GOOD, GOOD, rationale=WHY))
    assert ran.ending.outcome is JobOutcome.FAILED
    assert CANARY not in ran.ending.reason
    ended = [one.event for one in ran.entries if isinstance(one.event, SlotEnded)]
    assert CANARY not in repr(ended)
