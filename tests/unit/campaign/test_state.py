"""The state of a run is the fold of its ledger, at every event."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.events import Entry, JobEnded, JobStarted, RoundStarted, TaskEnded, TaskStarted
from campaign.state import CampaignState, fold


def test_folding_a_prefix_gives_the_state_the_run_had_then(tmp_path: Path) -> None:
    seen: list[str] = []
    ran = running.run(
        tmp_path,
        running.config(budgets={"node_hours": 1}),
        proposer=running.agent([{"x": 0.9, "y": 0.1}, {"x": 0.1, "y": 0.2}, {"x": 2}]),
        listeners=[lambda _, state: seen.append(repr(state))],
    )
    state = CampaignState()
    for number, entry in enumerate(ran.entries, start=1):
        state.apply(entry)
        assert repr(state) == seen[number - 1], entry
        assert repr(fold(ran.entries[:number])) == seen[number - 1]


def test_reading_a_state_does_not_change_it(tmp_path: Path) -> None:
    from campaign.status import status

    ran = running.run(tmp_path, running.config())
    status(tmp_path)
    assert fold(ran.entries) == ran.state


def test_a_new_job_opens_the_run_again() -> None:
    state = CampaignState()
    started = JobStarted(job=1, host="h", pid=1, python="", numpy="")
    state.apply(Entry(1, 5.0, started))
    state.apply(Entry(2, 6.0, JobEnded(job=1, outcome="stopped", reason="SIGTERM received")))
    ends = [state.job_ended]
    state.apply(Entry(3, 7.0, JobStarted(job=2, host="h", pid=2, python="", numpy="")))
    ends.append(state.job_ended)
    assert [end and end.outcome for end in ends] == ["stopped", None]
    assert state.changed_at == 7.0


def test_a_try_reserves_until_it_ends_and_counts_for_verifiers_twice() -> None:
    state = CampaignState()
    started: dict[str, Any] = {"candidate": "c", "attempt": 1}
    state.apply(
        Entry(1, 1.0, TaskStarted(task="v", round=1, slot=2, nodes=1, reserved=0.5, **started))
    )
    for cap in ("node_hours", "verifier_node_hours"):
        assert state.usage.counter(cap).reserved == 0.5
    assert state.tasks["v", "c"].tries == 1
    ended = TaskEnded(task="v", status="done", spent=0.25, seconds=900.0, **started)
    state.apply(Entry(2, 2.0, ended))
    for cap in ("node_hours", "verifier_node_hours"):
        assert (state.usage.counter(cap).reserved, state.usage.counter(cap).spent) == (0.0, 0.25)
    assert state.result("v", "c") == ended
    assert state.result("v", "other") is None


def test_every_disposition_is_counted_by_name() -> None:
    assert fold([Entry(1, 0.0, RoundStarted(round=1))]).dispositions() == {
        "accepted": 0,
        "repaired": 0,
        "fallback": 0,
        "returned": 0,
        "tombstone": 0,
    }


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(TypeError, match="no ledger event"):
        CampaignState().apply(Entry(1, 0.0, "nothing"))  # type: ignore[arg-type]
    assert {one.name for one in fields(CampaignState)} >= {"rounds", "tasks", "usage"}
