"""Repair requirements on batches, on what makes no progress, and on the ladder after it.

Which test shows which requirement stands in docs/adr: what the repair requirements come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.events import Answered, Asked, Filled, Judged, SlotEnded, TaskStarted
from campaign.limits import DRAWS
from campaign.model import JobOutcome
from repairing import LEVEL, OUTSIDE, UNSTABLE, config
from running import of, run, verifier
from speaking import answer, speaking
from square import GOOD, STEEP


def rule(name: str, condition: str) -> dict[str, Any]:
    return {"id": name, "type": "expression", "params": {"condition": condition}}


THREE = (rule("sum", "x + y <= 1"), rule("wide", "x <= 0.7"), rule("tall", "y <= 0.9"))


def test_r06_all_cheap_checks_speak_at_once_and_the_dear_ones_only_after_them(
    tmp_path: Path,
) -> None:
    wrong = {"x": 0.8, "y": 0.95}
    agent = speaking(answer(wrong, *GOOD[:2]), answer(GOOD[2]))
    ran = run(tmp_path, config(*THREE), proposer=agent)
    assert ran.dispositions == ["repaired", "accepted", "accepted"]
    said = agent.asks[1].correction
    assert said is not None
    for name in ("sum", "wide", "tall"):
        assert f"rejected by {name}" in said.text
    (rejection,) = agent.asks[1].rejections
    (dear,) = [one for one in rejection.findings if one.check == "stable"]
    assert (dear.status, dear.reason) == (
        "skipped",
        "not run: a check kept the candidate out before",
    )
    assert "stable" not in said.text, "what was not run is no news"
    assert wrong not in [ran.state.points[one.candidate] for one in of(ran, TaskStarted)]


def test_r06_rules_are_skipped_by_name_where_the_parameters_say_no(tmp_path: Path) -> None:
    agent = speaking(answer(OUTSIDE, *GOOD[:2]), answer(GOOD[2]))
    ran = run(tmp_path, config(*THREE), proposer=agent)
    outcomes = of(ran, Judged)[0].verdicts[0].expect["outcomes"]
    assert [(one["id"], one["skipped"], one["passed"]) for one in outcomes] == [
        (name, True, False) for name in ("sum", "wide", "tall")
    ]
    assert {one["detail"] for one in outcomes} == {
        "not checked: the parameter space rejected the candidate before"
    }


def test_r11_a_replacement_is_held_against_the_whole_batch(tmp_path: Path) -> None:
    apart = {"id": "apart", "type": "min_separation", "field": ["x", "y"],
             "params": {"distance": 0.1}}  # fmt: skip
    near = {"x": 0.21, "y": 0.41}
    agent = speaking(answer(OUTSIDE, *GOOD[1:]), answer(GOOD[1]), answer(near), answer(GOOD[0]))
    ran = run(tmp_path, config(apart, LEVEL, expect={"max_iterations": 4}), proposer=agent)
    assert [one.slots for one in agent.asks] == [(0, 1, 2), (0,), (0,), (0,)]
    assert ran.dispositions == ["repaired", "accepted", "accepted"]
    _, copied, close, right = (one.verdicts[0] for one in of(ran, Judged))
    (said,) = [one for one in copied.findings if one.status == "reject"]
    assert (said.check, said.reason[:27]) == ("distinct", "repeats an accepted candida")
    assert close.expect["failed"] == ["apart"]
    # Every rule speaks about every replacement, whatever it said before.
    for one in (copied, close, right):
        assert [outcome["id"] for outcome in one.expect["outcomes"]] == ["apart", "level"]


def test_r12_how_often_a_slot_was_tried_is_in_the_ledger_and_bounded(tmp_path: Path) -> None:
    more = [{"x": 0.7, "y": 0.1 * n} for n in range(1, 9)]
    agent = speaking(answer(GOOD[0], more[0], more[1]), answer(GOOD[1], more[2]), answer(more[3]))
    ran = run(tmp_path, config(expect={"max_iterations": 3}), proposer=agent)
    tries = Counter(slot for one in of(ran, Asked) for slot in one.slots)
    assert tries == {0: 1, 1: 2, 2: 3}
    assert max(tries.values()) <= 3
    ended = {one.slot: (one.disposition, one.generation) for one in of(ran, SlotEnded)}
    assert ended == {0: ("accepted", 1), 1: ("repaired", 2), 2: ("fallback", 0)}


@pytest.mark.parametrize(
    ("turns", "asked"),
    [
        ([UNSTABLE, UNSTABLE], 2),
        ([UNSTABLE, OUTSIDE, UNSTABLE], 3),
        ([UNSTABLE, OUTSIDE, STEEP, OUTSIDE], 4),
        ([UNSTABLE, {"y": 0.05, "x": 0.90}], 2),  # another spelling is no other candidate
    ],
)
def test_r28_what_was_proposed_before_for_its_slot_ends_the_asking(
    tmp_path: Path, turns: list[Any], asked: int
) -> None:
    agent = speaking(*map(answer, turns), answer(GOOD[0]))
    settings = config(LEVEL, batch_size=1, expect={"max_iterations": 9})
    ran = run(tmp_path, settings, proposer=agent)
    assert len(agent.asks) == asked
    assert ran.dispositions == ["fallback"]


def test_r28_a_slot_that_swings_does_not_end_the_asking_for_its_sibling(tmp_path: Path) -> None:
    # The slots are asked for together; what one has seen is nothing to the other.
    agent = speaking(
        answer(UNSTABLE, OUTSIDE), answer(UNSTABLE, STEEP), answer(GOOD[0]), answer(GOOD[1])
    )
    settings = config(LEVEL, batch_size=2, expect={"max_iterations": 9})
    ran = run(tmp_path, settings, proposer=agent)
    assert [one.slots for one in agent.asks] == [(0, 1), (0, 1), (1,)]
    assert ran.dispositions == ["fallback", "repaired"]


def test_r28_that_there_was_no_progress_is_said(tmp_path: Path) -> None:
    agent = speaking(answer(UNSTABLE, *GOOD[:2]), answer(UNSTABLE))
    policy = {"semantic_rejection": "tombstone"}
    settings = config(expect={"max_iterations": 9}, policy=policy)
    ran = run(tmp_path, settings, proposer=agent)
    (left,) = [one for one in of(ran, SlotEnded) if one.disposition == "tombstone"]
    assert left.reason == (
        "slot 0: stable: x: 0.9; at most 0.5 is stable; "
        "no_progress: the same candidate was proposed again"
    )


def never(_: Mapping[str, Any]) -> dict[str, str]:
    return {"verdict": "reject", "reason": "never good"}


def test_r30_after_the_agent_comes_the_surrogate_and_then_a_named_stop(tmp_path: Path) -> None:
    functions = running.FUNCTIONS | {"tests:rejects": never}
    agent = speaking(answer(GOOD[0]), answer(GOOD[1]), answer(GOOD[2]))
    settings = config(batch_size=1, expect={"max_iterations": 2})
    ran = run(tmp_path, settings, proposer=agent, functions=functions)
    rungs = [one.event for one in ran.entries if isinstance(one.event, Answered | Filled)]
    assert [type(one) for one in rungs] == [Answered] * 2 + [Filled] * DRAWS
    assert [one.draw for one in of(ran, Filled)] == list(range(1, DRAWS + 1))
    assert ran.ending.outcome is JobOutcome.FAILED
    assert ran.ending.reason == (
        f"round 1: none of {DRAWS} fallback candidates passed; slot 0: stable: never good"
    )


def test_r30_a_rung_that_holds_is_the_last(tmp_path: Path) -> None:
    agent = speaking(answer(UNSTABLE), answer(OUTSIDE))
    verifiers = [verifier("stable")]
    functions = running.FUNCTIONS | {
        "tests:passes": lambda one: never(one) if one == UNSTABLE else {"verdict": "pass"}
    }
    settings = config(batch_size=1, verifiers=verifiers)
    ran = run(tmp_path, settings, proposer=agent, functions=functions)
    assert (len(of(ran, Answered)), len(of(ran, Filled)), len(of(ran, SlotEnded))) == (2, 1, 1)
    assert ran.dispositions == ["fallback"]
