"""What a round does with any script of answers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import running
from campaign.events import Answered, Filled, Judged, SlotEnded, TaskEnded, TaskStarted
from campaign.ledger import read
from campaign.model import SIMULATION, Disposition, JobOutcome
from campaign.state import fold
from executors.base import TaskResult, TaskStatus
from running import of
from square import GOOD

UNSTABLE = {"x": 0.9, "y": 0.5}
OUTSIDE = {"x": 0.1, "y": 1.5}


def one_round(**changes: Any) -> Any:
    return running.config(rounds=1, **changes)


def test_a_batch_that_passes_is_accepted_at_once(tmp_path: Path) -> None:
    agent = running.agent(GOOD)
    ran = running.run(tmp_path, one_round(), proposer=agent)
    assert ran.ending.outcome is JobOutcome.DONE
    assert ran.dispositions == ["accepted"] * 3
    assert len(agent.asks) == 1


def test_only_the_failing_slots_are_asked_for_again(tmp_path: Path) -> None:
    agent = running.agent([GOOD[0], UNSTABLE, GOOD[1]], [GOOD[2]])
    ran = running.run(tmp_path, one_round(), proposer=agent)
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    assert agent.asks[1].slots == (1,)
    assert agent.asks[1].pinned == (GOOD[0], GOOD[1])


def test_a_repair_is_told_every_defect_and_the_reason(tmp_path: Path) -> None:
    agent = running.agent([{"x": 2.0, "y": -1.0}, GOOD[0], GOOD[1]], [GOOD[2]])
    running.run(tmp_path, one_round(), proposer=agent)
    (rejection,) = agent.asks[1].rejections
    reasons = [one.reason for one in rejection.findings if one.status == "reject"]
    assert rejection.slot == 0
    assert len(reasons) == 2
    assert "x: 2.0" in reasons[0]
    assert "y: -1.0" in reasons[1]


def test_a_verifier_never_sees_what_a_domain_check_rejected(tmp_path: Path) -> None:
    agent = running.agent([OUTSIDE, GOOD[0], GOOD[1]], [OUTSIDE])
    ran = running.run(tmp_path, one_round(), proposer=agent)
    started = [one for one in of(ran, TaskStarted) if one.task == "stable"]
    points = [ran.state.points[one.candidate] for one in started]
    assert OUTSIDE not in points
    assert points[:2] == GOOD[:2]
    assert all(0 <= float(point["y"]) <= 1 for point in points)  # what the fallback drew


def test_what_no_proposal_could_fill_is_filled_by_the_surrogate(tmp_path: Path) -> None:
    agent = running.agent([UNSTABLE, *GOOD[:2]], [{"x": 0.8, "y": 0.1}])
    ran = running.run(tmp_path, one_round(), proposer=agent)
    assert ran.dispositions == ["fallback", "accepted", "accepted"]
    filled = ran.state.rounds[1].slots[0]
    assert filled.parameters["x"] <= 0.5  # it passed the verifier too


def test_a_fallback_the_verifier_rejects_is_replaced_by_the_next_best(tmp_path: Path) -> None:
    agent = running.agent()
    settings_ = one_round(batch_size=4)
    ran = running.run(tmp_path, settings_, proposer=agent)
    assert ran.dispositions == ["fallback"] * 4
    assert all(slot.parameters["x"] <= 0.5 for slot in ran.state.rounds[1].slots.values())
    draws = of(ran, Filled)
    assert [draw.draw for draw in draws] == list(range(1, len(draws) + 1))
    assert len(draws) > 1


def test_a_run_without_any_possible_candidate_stops_by_name(tmp_path: Path) -> None:
    never = running.FUNCTIONS | {
        "tests:rejects": lambda _: {"verdict": "reject", "reason": "never good"}
    }
    ran = running.run(tmp_path, one_round(), proposer=running.agent(), functions=never)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert "never good" in ran.ending.reason
    assert not [one for one in of(ran, TaskStarted) if one.task == SIMULATION]


def test_the_same_candidate_again_ends_the_repair_of_its_slot(tmp_path: Path) -> None:
    agent = running.agent([UNSTABLE, *GOOD[:2]], [UNSTABLE], [GOOD[2]])
    ran = running.run(tmp_path, one_round(expect={"max_iterations": 5}), proposer=agent)
    assert len(agent.asks) == 2
    assert ran.dispositions[0] == "fallback"


def test_a_b_a_ends_the_repair_of_its_slot(tmp_path: Path) -> None:
    other = {"x": 0.7, "y": 0.1}
    agent = running.agent([UNSTABLE, *GOOD[:2]], [other], [UNSTABLE], [GOOD[2]])
    running.run(tmp_path, one_round(expect={"max_iterations": 9}), proposer=agent)
    assert len(agent.asks) == 3


def test_a_wrong_count_rejects_the_whole_answer(tmp_path: Path) -> None:
    agent = running.agent(GOOD[:2], GOOD)
    ran = running.run(tmp_path, one_round(), proposer=agent)
    assert ran.dispositions == ["repaired"] * 3
    assert len(agent.asks[1].slots) == 3


def test_a_candidate_the_campaign_has_seen_is_rejected(tmp_path: Path) -> None:
    more = [{"x": 0.4, "y": 0.1}, {"x": 0.4, "y": 0.2}, {"x": 0.4, "y": 0.3}]
    agent = running.agent(GOOD, [GOOD[0], *more[:2]], [more[2]])
    ran = running.run(tmp_path, running.config(), proposer=agent)
    assert ran.dispositions == ["accepted"] * 3 + ["repaired", "accepted", "accepted"]
    (judged,) = [one for one in of(ran, Judged) if (one.round, one.generation) == (2, 1)]
    (said,) = [one for one in judged.verdicts[0].findings if one.status == "reject"]
    assert said.check == "distinct"


def test_a_simulation_starts_before_its_siblings_are_repaired(tmp_path: Path) -> None:
    agent = running.agent([GOOD[0], UNSTABLE, GOOD[1]], [GOOD[2]])
    ran = running.run(tmp_path, one_round(), proposer=agent)
    events = [entry.event for entry in ran.entries]
    first = next(
        i for i, e in enumerate(events) if isinstance(e, TaskStarted) and e.task == SIMULATION
    )
    repair = next(i for i, e in enumerate(events) if isinstance(e, Answered) and e.generation == 2)
    assert first < repair


def test_verifiers_run_in_order_and_stop_at_the_first_rejection(tmp_path: Path) -> None:
    verifiers = [running.verifier("first", "tests:rejects"), running.verifier("second")]
    agent = running.agent([UNSTABLE, *GOOD[:2]], [GOOD[2]])
    ran = running.run(tmp_path, one_round(verifiers=verifiers), proposer=agent)
    seen = [ran.state.points[e.candidate] for e in of(ran, TaskStarted) if e.task == "second"]
    assert UNSTABLE not in seen
    skipped = agent.asks[1].rejections[0].findings[-1]
    assert (skipped.check, skipped.status) == ("second", "skipped")
    assert skipped.reason == "not run: first rejected"


def test_on_rejection_continue_hears_every_verifier(tmp_path: Path) -> None:
    verifiers = [
        running.verifier("first", "tests:rejects", on_rejection="continue"),
        running.verifier("second", "tests:rejects"),
    ]
    agent = running.agent([UNSTABLE, *GOOD[:2]], [GOOD[2]])
    running.run(tmp_path, one_round(verifiers=verifiers), proposer=agent)
    said = [f.check for f in agent.asks[1].rejections[0].findings if f.status == "reject"]
    assert said == ["first", "second"]


def lost(_: Mapping[str, Any]) -> TaskResult:
    return TaskResult(TaskStatus.LOST, reason="worker lost", seconds=0.5)


def crashes(_: Mapping[str, Any]) -> TaskResult:
    return TaskResult(TaskStatus.ERROR, reason="ZeroDivisionError: division by zero", seconds=0.5)


def with_verifier(answer: Any, **policy: Any) -> tuple[Any, Any]:
    functions = running.FUNCTIONS | {"tests:rejects": answer}
    return one_round(**policy), functions


def test_a_verifier_that_fails_is_no_rejection_and_marks_what_it_lets_through(
    tmp_path: Path,
) -> None:
    settings_, functions = with_verifier(crashes)
    agent = running.agent(GOOD)
    ran = running.run(tmp_path, settings_, proposer=agent, functions=functions)
    assert len(agent.asks) == 1
    assert ran.dispositions == ["accepted"] * 3
    assert ran.state.rounds[1].slots[0].unanswered == ["stable"]


def test_a_verifier_failure_under_reject_is_never_sent_to_the_agent(tmp_path: Path) -> None:
    calls = itertools.count()

    def fails_once(_: Mapping[str, Any]) -> Any:
        return crashes({}) if next(calls) == 0 else {"verdict": "pass"}

    settings_, functions = with_verifier(fails_once, policy={"verifier_failure": "reject"})
    agent = running.agent(GOOD, GOOD)
    ran = running.run(tmp_path, settings_, proposer=agent, functions=functions)
    assert len(agent.asks) == 1
    assert sorted(ran.dispositions) == ["accepted", "accepted", "fallback"]


def test_a_verifier_failure_under_fail_run_ends_the_run_by_name(tmp_path: Path) -> None:
    settings_, functions = with_verifier(crashes, policy={"verifier_failure": "fail_run"})
    ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=functions)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert "verifier stable: error: ZeroDivisionError" in ran.ending.reason


def test_only_infrastructure_failures_are_tried_again_and_never_more_than_retries(
    tmp_path: Path,
) -> None:
    verifiers = [running.verifier("stable", "tests:rejects", retries=2)]
    for answer, tries in ((lost, 3), (crashes, 1)):
        folder = tmp_path / answer.__name__
        folder.mkdir()
        settings_, functions = with_verifier(answer, verifiers=verifiers)
        ran = running.run(folder, settings_, proposer=running.agent(GOOD), functions=functions)
        counts = {n for name, n in ran.executor.tries.items() if name.startswith("stable")}
        assert counts == {tries}


def test_a_later_job_verifies_again_what_went_through_unverified(tmp_path: Path) -> None:
    settings_, functions = with_verifier(crashes)
    running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=functions)
    ran = running.run(tmp_path, settings_, proposer=running.agent())
    again = ran.state.rounds[1].reverified
    assert sorted(again) == [0, 1, 2]
    assert all(not one.unanswered and not one.rejected_by for one in again.values())


def test_what_a_later_verification_rejects_no_longer_counts(tmp_path: Path) -> None:
    from campaign.observations import observations

    settings_, functions = with_verifier(crashes)
    running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=functions)
    strict = running.FUNCTIONS | {
        "tests:rejects": lambda c: (
            {"verdict": "reject", "reason": "no"} if c == GOOD[0] else {"verdict": "pass"}
        )
    }
    ran = running.run(tmp_path, settings_, proposer=running.agent(), functions=strict)
    assert ran.state.rounds[1].reverified[0].rejected_by == "stable"
    assert [one.slot.slot for one in observations(ran.state, settings_)] == [1, 2]


@pytest.mark.parametrize(
    ("policy", "ends"),
    [("tombstone", "tombstone"), ("return_last", "returned"), ("fallback", "fallback")],
)
def test_policy_says_what_becomes_of_a_rejected_slot(
    tmp_path: Path, policy: str, ends: str
) -> None:
    agent = running.agent([UNSTABLE, *GOOD[:2]], [UNSTABLE])
    settings_ = one_round(policy={"semantic_rejection": policy})
    ran = running.run(tmp_path, settings_, proposer=agent)
    assert ran.dispositions == [ends, "accepted", "accepted"]
    if policy == "return_last":
        assert ran.state.rounds[1].slots[0].parameters == UNSTABLE


@pytest.mark.parametrize("policy", ["tombstone", "return_last"])
def test_a_slot_without_any_candidate_has_nothing_to_return(tmp_path: Path, policy: str) -> None:
    settings_ = one_round(policy={"structural_failure": policy})
    ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD[:1]))
    assert ran.dispositions == ["tombstone"] * 3
    assert ran.ending.outcome is JobOutcome.FAILED  # nothing was ever observed


def test_fail_run_ends_with_every_attempt_in_the_message(tmp_path: Path) -> None:
    settings_ = one_round(
        policy={"semantic_rejection": "fail_run", "structural_failure": "fail_run"}
    )
    agent = running.agent([UNSTABLE, *GOOD[:2]], [OUTSIDE])
    ran = running.run(tmp_path, settings_, proposer=agent)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert "at most 0.5 is stable" in ran.ending.reason
    assert "1.5" in ran.ending.reason
    assert len([e for e in of(ran, TaskEnded) if e.task == SIMULATION]) == 2  # paid for


def test_a_failed_simulation_is_an_observation(tmp_path: Path) -> None:
    functions = running.FUNCTIONS | {
        "tests:bowl": lambda c: crashes(c) if c == GOOD[0] else {"loss": 1.0}
    }
    ran = running.run(tmp_path, one_round(), proposer=running.agent(GOOD), functions=functions)
    assert ran.dispositions == ["accepted"] * 3
    assert ran.ending.outcome is JobOutcome.DONE


@pytest.mark.parametrize(
    "value", [{"loss": float("inf")}, {"gain": 1.0}, [1.0], None, {"loss": "1"}]
)
def test_an_answer_without_a_finite_objective_is_unreadable(tmp_path: Path, value: Any) -> None:
    functions = running.FUNCTIONS | {"tests:bowl": lambda _: value}
    ran = running.run(tmp_path, one_round(), proposer=running.agent(GOOD), functions=functions)
    ends = [e for e in of(ran, TaskEnded) if e.task == SIMULATION]
    assert {e.status for e in ends} == {"unreadable"}
    assert all("loss" in e.reason for e in ends)


CANDIDATE: st.SearchStrategy[Any] = st.one_of(
    st.fixed_dictionaries(
        {
            "x": st.floats(-0.2, 1.2) | st.just(float("nan")),
            "y": st.sampled_from([0.0, 0.5, 1.0, "high", True, None]),
        }
    ),
    st.sampled_from([*GOOD, UNSTABLE, OUTSIDE, {}, [], "text", None]),
)
ANSWERS = st.lists(st.lists(CANDIDATE, max_size=4), max_size=6)
FAILURES = st.sampled_from(["pass", "reject", "crash", "lost"])


@pytest.mark.slow
@given(
    answers=ANSWERS,
    verdicts=st.lists(FAILURES, min_size=1, max_size=8),
    policy=st.sampled_from(["fallback", "tombstone", "return_last"]),
    backwards=st.booleans(),
)
@settings(max_examples=40)
def test_for_any_script_every_slot_ends_once_and_the_ledger_replays(
    answers: list[Any], verdicts: list[str], policy: str, backwards: bool
) -> None:
    turn = itertools.cycle(verdicts)
    says = {
        "pass": {"verdict": "pass"},
        "reject": {"verdict": "reject", "reason": "no"},
        "crash": crashes({}),
        "lost": lost({}),
    }
    functions = running.FUNCTIONS | {"tests:rejects": lambda _: says[next(turn)]}
    settings_ = running.config(
        policy={"semantic_rejection": policy, "structural_failure": policy},
        budgets={"node_hours": 0.5},
    )
    with TemporaryDirectory() as folder:
        ran = running.run(
            Path(folder),
            settings_,
            proposer=running.agent(*answers),
            functions=functions,
            backwards=backwards,
        )
        entries = ran.entries
    ended = [(e.event.round, e.event.slot) for e in entries if isinstance(e.event, SlotEnded)]
    assert len(ended) == len(set(ended))
    for number, rounds in ran.state.rounds.items():
        if rounds.ended:
            assert sorted(rounds.slots) == [0, 1, 2], number
    assert fold(entries) == ran.state
    for candidate, tries in ran.executor.tries.items():
        assert tries == 1, candidate
    accepted = [s for r in ran.state.rounds.values() for s in r.slots.values()]
    for slot in accepted:
        if slot.disposition in (Disposition.ACCEPTED, Disposition.REPAIRED, Disposition.FALLBACK):
            assert 0 <= slot.parameters["x"] <= 1


@given(answers=ANSWERS)
@settings(max_examples=5)
def test_the_order_in_which_tasks_finish_changes_no_candidate(answers: list[Any]) -> None:
    found = []
    for backwards in (False, True):
        with TemporaryDirectory() as folder:
            ran = running.run(
                Path(folder),
                running.config(),
                proposer=running.agent(*answers),
                backwards=backwards,
            )
            found.append(
                [
                    (number, slot.slot, slot.candidate, slot.disposition)
                    for number, rounds in sorted(ran.state.rounds.items())
                    for _, slot in sorted(rounds.slots.items())
                ]
            )
    assert found[0] == found[1]


def test_reading_back_gives_the_state_the_run_ended_with(tmp_path: Path) -> None:
    ran = running.run(tmp_path, running.config())
    assert fold(read(tmp_path)) == ran.state


def test_a_surrogate_that_has_tried_the_whole_space_ends_the_campaign(tmp_path: Path) -> None:
    ints = {"x": {"type": "int", "min": 1, "max": 2}, "y": {"type": "int", "min": 1, "max": 3}}
    settings_ = running.config(parameters=ints, rounds=5, batch_size=3, verifiers=[])
    ran = running.run(tmp_path, settings_)
    assert ran.ending.outcome is JobOutcome.DONE
    assert ran.ending.reason == "space: 0 of its 6 candidates are left; 3 were asked for"
    assert ran.dispositions == ["accepted"] * 6 + ["tombstone"] * 3
