"""The sums a view keeps are at every event those of the whole state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import running
from campaign import events
from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.progress import LAST, Progress
from campaign.state import CampaignState

ANSWERS = [
    [{"x": 0.9, "y": 0.1}, {"x": 0.1, "y": 7.0}, {"x": 0.2, "y": 0.6}],
    [{"x": 0.2, "y": 0.1}, {"x": 0.3, "y": 0.5}],
    [{"x": 0.21, "y": 0.1}, {"x": 0.31, "y": 0.61}, {"x": 0.2, "y": 0.6}],
]


def follow(config: CampaignConfig, entries: list[Entry]) -> Progress:
    """Take events one by one, and compare with the sum of everything at each."""
    state = CampaignState()
    kept = Progress(config, state)
    for entry in entries:
        state.apply(entry)
        kept.apply(entry)
        anew = Progress.of(state, config)
        for name in ("rounds_ended", "nodes", "running", "talks", "best"):
            assert getattr(kept, name) == getattr(anew, name), (name, entry)
        assert +kept.slots == +anew.slots
        assert +kept.busy == +anew.busy
        assert sorted(kept.trace[-1:]) == sorted(anew.trace[-1:])
    return kept


@pytest.mark.parametrize(
    "objective",
    [
        {"name": "loss", "direction": "minimize"},
        {"name": "loss", "direction": "maximize"},
        {"name": "loss", "target": 0.05, "tolerance": 1e-9},
    ],
)
def test_event_by_event_or_all_at_once_the_sums_are_the_same(
    tmp_path: Path, objective: dict[str, Any]
) -> None:
    config = running.config(objective=objective)
    ran = running.run(tmp_path, config, proposer=running.agent(*ANSWERS), backwards=True)
    kept = follow(config, ran.entries)
    assert sum(kept.slots.values()) == 6
    assert kept.running == {}
    assert len(kept.trace) == 6
    assert len(kept.last) == LAST


CREATED = events.RunCreated(
    version=1, simgate="0", name="n", mode="campaign", folder="/", config={}
)
STARTED = events.JobStarted(job=1, host="h", pid=1, python="", numpy="")
CANDIDATES = ({"x": 0.25, "y": 0.5}, {"x": 0.5, "y": 0.5})


def simulated(slot: int, value: float) -> list[events.Event]:
    """The events of a slot whose candidate was let through and simulated."""
    candidate = f"hash-{slot}"
    more: dict[str, Any] = {"task": "simulation", "candidate": candidate, "attempt": 1}
    return [
        events.SlotEnded(
            round=1, slot=slot, disposition="accepted", generation=1, candidate=candidate,
            parameters=CANDIDATES[slot],
        ),
        events.TaskStarted(**more, round=1, slot=slot, nodes=2, reserved=0.1),
        events.TaskEnded(**more, status="done", spent=0.1, seconds=1.0, value={"loss": value}),
    ]  # fmt: skip


def entries(*history: events.Event) -> list[Entry]:
    return [Entry(n, 100.0 + n, event) for n, event in enumerate(history, start=1)]


def test_a_best_that_a_later_verification_rejects_is_the_best_no_more() -> None:
    history = [CREATED, STARTED, *simulated(0, 1.0), *simulated(1, 2.0)]
    kept = follow(running.config(), entries(*history))
    assert kept.best is not None
    assert kept.best.value == 1.0
    again = events.Reverified(round=1, slot=0, rejected_by="stable")
    kept = follow(running.config(), entries(*history, again))
    assert kept.best is not None
    assert kept.best.value == 2.0


def test_what_the_agent_is_asked_is_known_until_it_answers() -> None:
    asked = events.Asked(round=1, generation=1, slots=[0, 1])
    called = events.Called(round=1, generation=1, attempt=1, tokens=50)
    failed = events.CallFailed(
        round=1, generation=1, attempt=1, reason="HTTP 503", tokens=0, wait=2.0
    )
    again = events.Called(round=1, generation=1, attempt=2, tokens=50)
    answered = events.Answered(
        round=1, generation=1, candidates=[], tokens=30, input_tokens=20, output_tokens=10
    )
    history: list[events.Event] = [CREATED, STARTED, asked, called, failed]
    asking = follow(running.config(), entries(*history)).asking
    assert asking is not None
    assert (asking.slots, asking.since, asking.call, asking.failed) == (2, 103.0, 1, "HTTP 503")
    asking = follow(running.config(), entries(*history, again)).asking
    assert asking is not None
    assert (asking.since, asking.call, asking.failed) == (103.0, 2, "")
    kept = follow(running.config(), entries(*history, again, answered))
    assert kept.asking is None
    assert kept.talks is not None
    assert (kept.talks.calls, kept.talks.failed, kept.talks.output_tokens) == (2, 1, 10)


def test_whoever_resumes_asks_anew() -> None:
    asked = events.Asked(round=1, generation=1, slots=[0])
    second = events.JobStarted(job=2, host="h", pid=2, python="", numpy="")
    kept = follow(running.config(), entries(CREATED, STARTED, asked, second))
    assert kept.asking is None
    assert kept.job_at == 104.0
