"""Every decision is one line that can be searched; a fallback always says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import running
from campaign import events
from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.events import Entry, FindingRecord, VerdictRecord
from campaign.lines import line, number, plain, point_text
from campaign.state import CampaignState


def say(*history: Any) -> str:
    """The line of the last event."""
    state = CampaignState()
    for place, event in enumerate(history, start=1):
        state.apply(Entry(place, 0.0, event))
    return line(history[-1], state)


START = events.TaskStarted(
    task="stable", candidate="c", attempt=1, round=2, slot=3, nodes=1, reserved=0.1
)
SIMULATION = events.TaskStarted(
    task="simulation", candidate="c", attempt=1, round=2, slot=3, nodes=1, reserved=0.1
)


def end(task: str, status: str = "done", **more: Any) -> events.TaskEnded:
    return events.TaskEnded(
        task=task, candidate="c", attempt=1, status=status, spent=0.0, seconds=1.25, **more
    )


def slot(disposition: str, **more: Any) -> events.SlotEnded:
    return events.SlotEnded(round=2, slot=3, disposition=disposition, generation=1, **more)


REJECT = {"verdict": "reject", "reason": "drifts\n\x1b[31mby 2 %"}


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ([events.Asked(round=1, generation=2, slots=[0, 2])], "r1 g2 asks for 2 candidates: s0 s2"),
        (
            [events.Answered(round=1, generation=1, stage="empty", reason="nothing")],
            "r1 g1 answer rejected at empty: nothing",
        ),
        ([events.Answered(round=1, generation=1, candidates=[])], ""),
        (
            [
                events.Asked(round=1, generation=1, slots=[0, 1]),
                events.Answered(round=1, generation=1, candidates=[{"x": 0.5}]),
            ],
            "r1 g1 answer rejected at count: 1 candidates; give exactly 2",
        ),
        (
            [events.Asked(round=1, generation=1, slots=[*range(9_000), 9_001])],
            "r1 g1 asks for 9001 candidates: s0-s8999 s9001",
        ),
        (
            [events.Filled(round=1, draw=1, slots=list(range(0, 9_000, 2)), candidates=[])],
            f"r1 the surrogate fills {' '.join(f's{n}' for n in range(0, 64, 2))} and more",
        ),
        ([events.Filled(round=1, draw=1, slots=[1], candidates=[])], "r1 the surrogate fills s1"),
        (
            [events.Filled(round=1, draw=2, slots=[1], candidates=[])],
            "r1 the surrogate fills s1, draw 2",
        ),
        ([START, end("stable", value={"verdict": "pass"})], "r2 s3 stable passed (1.2 s)"),
        (
            [START, end("stable", value=REJECT)],
            r"r2 s3 rejected by stable: drifts \x1b[31mby 2 % (1.2 s)",
        ),
        (
            [START, end("stable", "lost", reason="gone")],
            "r2 s3 stable FAILED, lost: gone (1.2 s)",
        ),
        (
            [SIMULATION, end("simulation", value={"loss": 1 / 3, "log": "x"}, adopted=True)],
            "r2 s3 simulation: loss=0.333333 (1.2 s, adopted)",
        ),
        ([slot("accepted", parameters={"x": 0.5, "n": 3})], "r2 s3 accepted x=0.5 n=3"),
        (
            [slot("fallback", parameters={"x": 0.5})],
            "r2 s3 FALLBACK, filled by the surrogate x=0.5",
        ),
        (
            [slot("returned", parameters={"x": 9.0}, reason="slot 3: bounds")],
            "r2 s3 RETURNED, runs although it was rejected x=9: slot 3: bounds",
        ),
        ([slot("tombstone", reason="cap")], "r2 s3 TOMBSTONE, nothing runs: cap"),
        (
            [slot("accepted", parameters={"x": 0.5}, unanswered=["a", "b"])],
            "r2 s3 accepted x=0.5 (validation incomplete: a, b)",
        ),
        (
            [events.Reverified(round=2, slot=3, rejected_by="a", reason="no")],
            "r2 s3 verified again: rejected by a: no; it no longer counts",
        ),
        (
            [events.Reverified(round=2, slot=3, unanswered=["a"])],
            "r2 s3 verified again: still no answer from a",
        ),
        ([events.Reverified(round=2, slot=3)], "r2 s3 verified again: complete"),
        ([events.RoundEnded(round=2)], "r2 ended, 0 node-hours spent"),
        ([events.RoundStarted(round=2)], ""),
        ([START], ""),
    ],
)
def test_a_decision_in_words(history: list[Any], said: str) -> None:
    assert say(*history) == said


def test_each_rejection_of_a_judgement_is_a_line_of_its_own() -> None:
    findings = [
        FindingRecord("type", "domain", "pass"),
        FindingRecord("bounds", "domain", "reject", "x: 2; at most 1"),
        FindingRecord("distinct", "domain", "reject", "repeats slot 0"),
    ]
    judged = events.Judged(round=1, generation=1, verdicts=[VerdictRecord(1, findings)])
    assert say(judged).splitlines() == [
        "r1 s1 rejected by bounds: x: 2; at most 1",
        "r1 s1 rejected by distinct: repeats slot 0",
    ]


def test_what_others_wrote_is_one_bounded_line_without_control_characters() -> None:
    said = plain("a\r\n\tb\x1b[2J\x07\u202e" + "c" * 10_000)
    assert said.startswith("a b\\x1b[2J\\x07\\u202ec")
    assert len(said) == 300
    assert said.isprintable()


def test_numbers_are_short_and_texts_stay_on_the_line() -> None:
    assert number(0.123456789) == "0.123457"
    assert number(float("nan")) == "nan"
    assert number(5) == "5"
    assert point_text({"x": 1e-9, "kind": "a\nb"}) == "x=1e-09 kind=a b"


def test_every_event_of_a_run_has_words_for_it(tmp_path: Path) -> None:
    said: list[str] = []
    running.run(
        tmp_path,
        running.config(),
        proposer=running.agent([{"x": 0.9, "y": 0.1}, {"x": 2}, None]),
        listeners=[lambda entry, state: said.append(line(entry.event, state))],
    )
    assert sum("FALLBACK" in one for one in said) == 6
    assert any("rejected by stable" in one for one in said)


CALLED = [
    events.Asked(round=1, generation=2, slots=[0]),
    events.Called(round=1, generation=2, attempt=1, tokens=9),
]


def failed(attempt: int = 1, **more: Any) -> events.CallFailed:
    return events.CallFailed(
        round=1, generation=2, attempt=attempt, reason="HTTP 503:\nbusy", tokens=0, **more
    )


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (failed(wait=4.0), "r1 g2 call 1 failed: HTTP 503: busy; again in 4 s"),
        (failed(), "r1 g2 call 1 failed: HTTP 503: busy"),
        (
            events.Unanswered(round=1, generation=2, reason="HTTP 503: busy"),
            "r1 g2 NO ANSWER, the round asks no more: HTTP 503: busy",
        ),
    ],
)
def test_a_call_without_an_answer_in_words(event: Any, said: str) -> None:
    assert say(*CALLED, event) == said


def test_of_a_server_that_comes_up_slowly_ever_fewer_calls_are_told() -> None:
    told = [bool(say(*CALLED, failed(number, free=True, wait=1.0))) for number in range(1, 101)]
    assert sum(told) == 7
    assert told[:4] == [True, True, False, True]


def test_votes_of_the_judge_are_not_told_one_by_one() -> None:
    asked = events.VoteAsked(key="k", vote=1, tokens=9)
    assert say(asked) == ""
    assert say(asked, events.Voted(key="k", vote=1, tokens=9, error="no server")) == ""


def test_what_becomes_of_a_pilot_job_in_words() -> None:
    reserved = AllocationReserved(
        allocation=1, what="pilot", name="p", nodes=2, walltime=5400.0, reserved=3.0
    )
    queued = AllocationQueued(allocation=1, job="81")
    began = AllocationBegan(allocation=1, since=5.0)
    ended = AllocationEnded(allocation=1, seconds=60.0, spent=1 / 30, source="slurm", job="81")
    history = [reserved, queued, began, ended]
    assert [say(*history[: place + 1]) for place in range(4)] == [
        "",
        "pilot job 81 queued: 2 nodes for 1h30m, at most 3 node-hours",
        "pilot job 81 has its 2 nodes",
        "Slurm job 81 is over: 0.03333 node-hours, by Slurm",
    ]
