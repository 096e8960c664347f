"""Repair requirements on dispositions: policy alone makes them, and nothing passes unjudged.

Which test shows which requirement stands in docs/adr: what the repair requirements come to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest

import folders
import running
from campaign.configfile import load_config
from campaign.events import Filled, Judged, SlotEnded, TaskEnded, TaskStarted
from campaign.expectations import resolve
from campaign.gateconfig import ENDINGS, AtTheEnd, Policies, Policy, policies
from campaign.model import SIMULATION, JobOutcome
from campaign.problems import ConfigError
from campaign.status import status
from campaign.taskconfig import OnFailure
from checks.domain import derived
from executors.base import TaskResult, TaskStatus
from repairing import EMPTY, LEVEL, OUTSIDE, UNSTABLE, config
from running import of, run, verifier
from speaking import answer, speaking
from square import GOOD, STEEP

ENDS, FAILURES = get_args(AtTheEnd), get_args(OnFailure)
AT_THE_END = ("structural_failure", "semantic_rejection")
CHOICES = {name: ENDS if name in AT_THE_END else FAILURES for name in Policy.model_fields}


def said(value: str | None, key: str) -> dict[str, str]:
    return {} if value is None else {key: value}


@pytest.mark.parametrize("field", CHOICES)
def test_r31_an_agents_policy_wins_over_the_campaigns_field_by_field(
    field: str, tmp_path: Path
) -> None:
    words: list[Any] = [None, *ENDINGS] if field in AT_THE_END else [None]
    for whole, own, word in product([None, *CHOICES[field]], [None, *CHOICES[field]], words):
        settings = running.config(
            policy=said(whole, field),
            agent={"kind": "surrogate", "policy": said(own, field)},
            expect=said(word, "on_exhausted"),
        )
        ending: dict[str, Any] = {} if word is None else dict.fromkeys(AT_THE_END, ENDINGS[word])
        wanted: Any = replace(Policies(), **ending)
        set_ = own or whole
        if set_ is not None:
            wanted = replace(wanted, **{field: set_})
        assert policies(settings) == wanted
        _, refused = resolve(settings.model_dump(exclude_none=True), tmp_path)
        contradicts = word is not None and set_ is not None and ENDINGS[word] != set_
        assert bool(refused) == contradicts, (whole, own, word)


@pytest.mark.parametrize(("structural", "semantic"), list(product(ENDS, repeat=2)))
def test_r31_each_failed_slot_ends_as_the_policy_of_its_failure_says(
    tmp_path: Path, structural: str, semantic: str
) -> None:
    policy = {"structural_failure": structural, "semantic_rejection": semantic}
    settings = config(LEVEL, expect={"max_iterations": 1}, policy=policy)
    ran = run(tmp_path, settings, proposer=speaking(answer(EMPTY, STEEP, GOOD[0])))
    if "fail_run" in (structural, semantic):
        assert ran.ending.outcome is JobOutcome.FAILED
        assert "(policy: fail_run)" in ran.ending.reason
        assert ("slot 0: missing: " in ran.ending.reason) == (structural == "fail_run")
        assert ("slot 1: level: " in ran.ending.reason) == (semantic == "fail_run")
        return
    ends = {"fallback": "fallback", "tombstone": "tombstone", "return_last": "returned"}
    first = "tombstone" if structural == "return_last" else ends[structural]  # nothing to return
    assert ran.dispositions == [first, ends[semantic], "accepted"]


@pytest.mark.parametrize("place", ["policy", "agent.policy"])
def test_r31_a_policy_that_is_none_is_refused_with_those_there_are(
    tmp_path: Path, place: str
) -> None:
    folder = folders.folder(tmp_path)
    for change, known in (
        (f"{place}.semantic_rejection=passs", ENDS),
        (f"{place}.check_error=fallback", FAILURES),
        (f"{place}.on_reject=fallback", tuple(CHOICES)),
    ):
        with pytest.raises(ConfigError) as refused:
            load_config(folder, [change])
        assert all(repr(name) in str(refused.value) for name in known), str(refused.value)


def test_r31_a_verifier_cannot_say_what_becomes_of_a_candidate(tmp_path: Path) -> None:
    wish = {"disposition": "tombstone", "policy": "fail_run", "on_rejection": "fail_run"}
    functions = running.FUNCTIONS | {"tests:passes": lambda _: {"verdict": "pass"} | wish}
    settings = config(verifiers=[verifier("stable")])
    ran = run(tmp_path, settings, proposer=speaking(answer(*GOOD)), functions=functions)
    assert ran.dispositions == ["accepted"] * 3


def test_r32_what_was_rejected_is_run_only_as_returned_and_says_so(tmp_path: Path) -> None:
    for ending in ENDS:
        if ending == "fail_run":
            continue
        settings = config(
            LEVEL, policy=dict.fromkeys(AT_THE_END, ending), expect={"max_iterations": 1}
        )
        agent = speaking(answer(GOOD[0], STEEP, OUTSIDE))
        ran = run(tmp_path / ending, settings, proposer=agent)
        simulated = [
            ran.state.points[one.candidate]
            for one in of(ran, TaskStarted)
            if one.task == SIMULATION
        ]
        bad = [one for one in of(ran, SlotEnded) if one.parameters in (STEEP, OUTSIDE)]
        run_all_the_same = [one for one in simulated if one in (STEEP, OUTSIDE)]
        assert run_all_the_same == ([STEEP, OUTSIDE] if ending == "return_last" else [])
        assert {one.disposition for one in bad} <= {"returned"}
        assert all(one.reason for one in bad)


def misjudged(candidate: Mapping[str, Any]) -> Any:
    if candidate == GOOD[1]:
        return TaskResult(TaskStatus.ERROR, reason="broken", seconds=0.1)
    return running.rejects_right_half(candidate)


def test_r33_every_rule_and_verifier_says_exactly_one_thing_of_every_candidate(
    tmp_path: Path,
) -> None:
    wide = {"id": "wide", "type": "expression", "params": {"condition": "x <= 0.95"}}
    settings = config(
        LEVEL,
        wide,
        batch_size=5,
        verifiers=[verifier("stable", "tests:misjudged"), verifier("second")],
    )
    functions = running.FUNCTIONS | {"tests:misjudged": misjudged}
    batch = [GOOD[0], GOOD[1], UNSTABLE, STEEP, {"x": 2.0, "y": -1.0}]
    agent = speaking(answer(*batch), answer(GOOD[2]))
    ran = run(tmp_path, settings, proposer=agent, functions=functions)
    first = of(ran, Judged)[0]
    for verdict in first.verdicts:
        assert [one["id"] for one in verdict.expect["outcomes"]] == ["level", "wide"]
        found = Counter(one.check for one in verdict.findings)
        assert set(found) == set(derived(stepped=False)) - {"count"}
        statuses = {one.check: one.status for one in verdict.findings}
        # A derived check names every defect; where it finds none it says one thing.
        assert all(statuses[check] == "reject" for check, n in found.items() if n > 1)
    assert [one.expect["overall_pass"] for one in first.verdicts] == [
        True,
        True,
        True,
        False,
        False,
    ]
    told = {one.slot: one.findings for one in agent.asks[1].rejections}
    assert sorted(told) == [2, 3, 4]
    for findings in told.values():
        count = Counter(one.check for one in findings)
        assert [count[name] for name in ("level", "wide", "stable", "second")] == [1] * 4
        for one in findings:
            assert one.reason or one.status == "pass", "a skip has its reason"
    ends = Counter((one.task, one.status) for one in of(ran, TaskEnded) if one.task != SIMULATION)
    assert ends[("stable", "error")] == 1
    assert not [one for one in of(ran, SlotEnded) if one.unanswered and one.slot != 1]


def test_r34_what_no_verifier_answered_for_is_marked_and_verified_again(tmp_path: Path) -> None:
    broken = running.FUNCTIONS | {
        "tests:rejects": lambda _: TaskResult(TaskStatus.ERROR, reason="broken", seconds=0.1)
    }
    settings = config()
    ran = run(tmp_path, settings, proposer=speaking(answer(*GOOD)), functions=broken)
    assert ran.dispositions == ["accepted"] * 3
    assert {tuple(one.unanswered) for one in of(ran, SlotEnded)} == {("stable",)}
    shown = status(tmp_path)
    assert {tuple(one["incomplete"]) for one in shown["slots"]} == {("stable",)}
    assert shown["best"]["incomplete"] == ["stable"]
    again = run(tmp_path, settings, proposer=speaking("never asked"))
    assert sorted(again.state.rounds[1].reverified) == [0, 1, 2]
    assert status(tmp_path)["best"]["incomplete"] == []


@pytest.mark.parametrize("policy", FAILURES)
def test_r34_a_verifier_may_be_a_hard_gate_whatever_the_policy(tmp_path: Path, policy: str) -> None:
    broken = running.FUNCTIONS | {
        "tests:hard": lambda one: (
            TaskResult(TaskStatus.ERROR, reason="broken", seconds=0.1)
            if one in GOOD
            else {"verdict": "pass"}
        )
    }
    hard = [verifier("hard", "tests:hard", on_failure="reject")]
    settings = config(verifiers=hard, policy={"verifier_failure": policy})
    ran = run(tmp_path, settings, proposer=speaking(answer(*GOOD)), functions=broken)
    assert ran.dispositions == ["fallback"] * 3


def test_r35_what_the_surrogate_fills_in_passes_the_same_gate(tmp_path: Path) -> None:
    agent = speaking("no json")
    ran = run(tmp_path, config(LEVEL, batch_size=4), proposer=agent)
    assert ran.dispositions == ["fallback"] * 4
    draws = [one.draw for one in of(ran, Filled)]
    assert [one.draw for one in of(ran, Judged) if one.draw] == draws
    verified = {
        one.candidate for one in of(ran, TaskEnded) if one.task == "stable" and one.status == "done"
    }
    for slot in of(ran, SlotEnded):
        assert slot.candidate in verified
        assert slot.parameters["x"] <= 0.5
        assert slot.parameters["x"] + slot.parameters["y"] <= 1
