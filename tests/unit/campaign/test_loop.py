"""How a campaign goes on where an earlier job left it, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

import running
from campaign.events import Asked, TaskStarted
from campaign.model import SIMULATION, JobOutcome
from executors.base import TaskResult, TaskStatus
from square import GOOD

ONE = 15 / 3600


def test_a_slot_that_a_later_verification_rejects_in_an_open_round_is_neither_asked_for_nor_run(
    tmp_path: Path,
) -> None:
    settings = running.config(
        rounds=1, batch_size=1, budgets={"node_hours": {"limit": ONE, "per": "job"}}
    )
    crash = TaskResult(TaskStatus.ERROR, reason="no", seconds=9.0)
    unsure = running.FUNCTIONS | {"tests:rejects": lambda _: crash}
    first = running.run(tmp_path, settings, proposer=running.agent(GOOD[:1]), functions=unsure)
    assert first.ending.outcome is JobOutcome.STOPPED  # nothing is left for the simulation
    assert first.dispositions == ["accepted"]

    no = TaskResult(TaskStatus.DONE, value={"verdict": "reject", "reason": "no"}, seconds=0.0)
    strict = running.FUNCTIONS | {"tests:rejects": lambda _: no}
    agent = running.agent(GOOD[1:2])
    second = running.run(tmp_path, settings, proposer=agent, functions=strict)
    assert agent.asks == []
    assert second.dispositions == ["accepted"]
    assert second.state.rounds[1].reverified[0].rejected_by == "stable"
    assert not [name for name in second.executor.tries if name.startswith(SIMULATION)]
    assert second.ending.outcome is JobOutcome.FAILED  # its one candidate does not count


def test_a_slot_that_a_later_verification_confirms_in_an_open_round_is_run(tmp_path: Path) -> None:
    settings = running.config(
        rounds=1, batch_size=1, budgets={"node_hours": {"limit": 2 * ONE, "per": "job"}}
    )
    crash = TaskResult(TaskStatus.ERROR, reason="no", seconds=15.0)
    slow = TaskResult(TaskStatus.LOST, reason="gone", seconds=15.0)
    first = running.run(
        tmp_path,
        settings,
        proposer=running.agent(GOOD[:1]),
        functions={"tests:rejects": lambda _: crash, "tests:bowl": lambda _: slow},
    )
    assert first.ending.outcome is JobOutcome.FAILED
    second = running.run(tmp_path, settings, proposer=running.agent())
    assert second.state.rounds[1].reverified[0].unanswered == []
    assert second.state.rounds[1].reverified[0].rejected_by == ""


@pytest.mark.parametrize("error", [OSError("no route"), RuntimeError("no\nroute"), ValueError()])
def test_an_agent_that_gives_no_answer_ends_the_run_by_its_message(
    tmp_path: Path, error: Exception
) -> None:
    ran = running.run(tmp_path, running.config(), proposer=running.agent(error))
    assert ran.ending.outcome is JobOutcome.FAILED
    assert ran.ending.reason == " ".join(f"agent: {type(error).__name__}: {error}".split())
    asked = [entry.event for entry in ran.entries if isinstance(entry.event, Asked)]
    assert len(asked) == 1

    again = running.run(tmp_path, running.config(rounds=1), proposer=running.agent(GOOD))
    assert again.dispositions == ["accepted"] * 3
    asked = [entry.event for entry in again.entries if isinstance(entry.event, Asked)]
    assert len(asked) == 1  # its generation was paid for already


def test_a_done_campaign_starts_nothing(tmp_path: Path) -> None:
    running.run(tmp_path, running.config(), proposer=running.agent(GOOD))
    before = running.run(tmp_path, running.config()).entries
    again = running.run(tmp_path, running.config())
    assert again.ending.outcome is JobOutcome.DONE
    assert again.executor.tries.total() == 0
    new = again.entries[len(before) :]
    assert not [entry for entry in new if isinstance(entry.event, TaskStarted)]


def test_a_space_that_is_used_up_ends_a_surrogate_only_campaign_as_done(tmp_path: Path) -> None:
    space = {
        "x": {"type": "categorical", "choices": [0.1, 0.2]},
        "y": {"type": "categorical", "choices": [0.5, 0.6]},
    }
    ran = running.run(tmp_path, running.config(parameters=space, batch_size=2, rounds=5))
    assert ran.ending.outcome is JobOutcome.DONE
    assert sum(rounds.ended for rounds in ran.state.rounds.values()) == len(ran.state.rounds)
    assert len([one for one in ran.executor.tries if one.startswith(SIMULATION)]) == 4
