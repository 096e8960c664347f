"""Caps are reserved before the spend and settled after it; nothing passes one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import running
from campaign.budget import Usage, blocking
from campaign.config import Budgets
from campaign.events import Asked, Entry, SlotEnded, TaskStarted
from campaign.limits import worst_case
from campaign.model import JobOutcome
from campaign.state import CampaignState
from executors.base import TaskResult, TaskStatus
from square import GOOD

ONE = 15 / 3600  # node-hours that a try of the tests' tasks reserves


def done(value: Any, seconds: float) -> TaskResult:
    return TaskResult(TaskStatus.DONE, value=value, seconds=seconds)


def budgets(**caps: Any) -> Budgets:
    return Budgets.model_validate(caps)


def test_a_try_reserves_its_walltime_and_the_grace_of_a_kill() -> None:
    assert worst_case(running.config().simulation) == pytest.approx(ONE)


def test_what_is_reserved_blocks_like_what_is_spent() -> None:
    usage, caps = Usage(), budgets(node_hours=1)
    usage.reserve("node_hours", 0.6)
    assert blocking(usage, caps, {"node_hours": 0.4}) is None
    blocked = blocking(usage, caps, {"node_hours": 0.5})
    assert blocked is not None
    assert str(blocked) == (
        "budgets.node_hours: 0 of 1 spent and 0.6 reserved; the next step may need 0.5"
    )
    usage.settle("node_hours", 0.6, 0.1)
    assert blocking(usage, caps, {"node_hours": 0.9}) is None
    assert blocking(usage, caps, {"verifier_node_hours": 99}) is None


@given(st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=30))
def test_nothing_is_held_when_everything_is_settled(amounts: list[float]) -> None:
    usage = Usage()
    for amount in amounts:
        usage.reserve("node_hours", amount)
    for amount in reversed(amounts):
        usage.settle("node_hours", amount, 0.0)
    assert usage.counter("node_hours").reserved == 0.0


def test_a_cap_per_job_starts_anew_with_each_job() -> None:
    usage, caps = Usage(), budgets(node_hours={"limit": 1, "per": "job"})
    usage.reserve("node_hours", 1)
    usage.settle("node_hours", 1, 0.9)
    assert "0.9 of 1" in str(blocking(usage, caps, {"node_hours": 0.5}))
    usage.new_job()
    assert blocking(usage, caps, {"node_hours": 0.5}) is None
    assert "0 of 1 spent;" in str(blocking(usage, caps, {"node_hours": 1.5}))


class Watch:
    """Sees every event, and how near the state comes to a cap."""

    def __init__(self) -> None:
        self.most = 0.0
        self.spent = 0.0

    def __call__(self, _: Entry, state: CampaignState) -> None:
        counter = state.usage.counter("node_hours")
        self.most = max(self.most, counter.reserved + counter.spent)
        self.spent = counter.spent


@given(
    limit=st.floats(ONE, 12 * ONE),
    seconds=st.lists(st.floats(0, 15), min_size=1, max_size=9),
    fails=st.lists(st.booleans(), min_size=1, max_size=5),
    backwards=st.booleans(),
)
@settings(max_examples=20)
def test_no_cap_is_ever_overdrawn(
    limit: float, seconds: list[float], fails: list[bool], backwards: bool
) -> None:
    calls = 0

    def takes(candidate: Mapping[str, Any]) -> TaskResult:
        nonlocal calls
        calls += 1
        took = seconds[calls % len(seconds)]
        if fails[calls % len(fails)]:
            return TaskResult(TaskStatus.LOST, reason="gone", seconds=took)
        value = {"verdict": "pass", **running.bowl(candidate)}
        return done(value, took)

    watch = Watch()
    proposals = [[{"x": x / 10, "y": y / 10} for x in range(3)] for y in range(9)]
    with TemporaryDirectory() as folder:
        ran = running.run(
            Path(folder),
            running.config(
                rounds=3,
                budgets={"node_hours": limit},
                verifiers=[running.verifier("stable", "tests:rejects", retries=1)],
            ),
            proposer=running.agent(*proposals),
            functions={"tests:bowl": takes, "tests:rejects": takes},
            backwards=backwards,
            listeners=[watch],
        )
    assert watch.most <= limit + 1e-9
    assert watch.spent <= limit + 1e-9
    assert ran.state.usage.counter("node_hours").reserved == 0.0


def test_a_spent_cap_ends_the_campaign_by_name_and_drops_nothing(tmp_path: Path) -> None:
    slow = running.FUNCTIONS | {"tests:bowl": lambda c: done(running.bowl(c), 10.0)}
    settings_ = running.config(budgets={"node_hours": 4 * ONE}, verifiers=[])
    ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD, GOOD), functions=slow)
    assert ran.ending.outcome is JobOutcome.DONE
    assert ran.ending.reason.startswith("budgets.node_hours: 0.0")
    ended = [one for one in ran.state.tasks.values() if one.last is not None]
    assert len(ended) == 5  # of 10 s each; a sixth might have taken 15
    for rounds in ran.state.rounds.values():
        assert rounds.ended
        assert sorted(rounds.slots) == [0, 1, 2]


def test_a_spent_cap_without_any_result_is_a_failure(tmp_path: Path) -> None:
    lost = running.FUNCTIONS | {
        "tests:bowl": lambda _: TaskResult(TaskStatus.ERROR, reason="no", seconds=15.0)
    }
    settings_ = running.config(budgets={"node_hours": 2 * ONE}, verifiers=[])
    ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=lost)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert ran.ending.reason.endswith("no simulation succeeded")


def test_verifiers_have_a_cap_of_their_own(tmp_path: Path) -> None:
    slow = running.FUNCTIONS | {"tests:rejects": lambda _: done({"verdict": "pass"}, 15.0)}
    settings_ = running.config(budgets={"verifier_node_hours": 2 * ONE})
    ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=slow)
    assert ran.ending.reason.startswith("budgets.verifier_node_hours: ")
    assert sorted(ran.dispositions) == ["accepted", "accepted", "tombstone"]
    assert ran.state.usage.counter("verifier_node_hours").spent == pytest.approx(2 * ONE)
    assert ran.state.usage.counter("node_hours").spent > 2 * ONE  # the simulations went on


def test_without_generations_left_the_surrogate_fills_and_nobody_is_asked(tmp_path: Path) -> None:
    agent = running.agent([{"x": 0.9, "y": 0.1}, *GOOD[:2]], [GOOD[2]], GOOD)
    settings_ = running.config(budgets={"generations": 1}, expect={"max_iterations": 3})
    ran = running.run(tmp_path, settings_, proposer=agent)
    assert len(agent.asks) == 1
    assert ran.dispositions == ["fallback", "accepted", "accepted", *["fallback"] * 3]
    assert sum(isinstance(entry.event, Asked) for entry in ran.entries) == 1
    assert ran.ending.outcome is JobOutcome.DONE


def test_a_cap_per_job_stops_the_job_and_the_next_one_goes_on(tmp_path: Path) -> None:
    settings_ = running.config(
        rounds=1,
        verifiers=[],
        budgets={"node_hours": {"limit": ONE, "per": "job"}},
    )
    slow = running.FUNCTIONS | {"tests:bowl": lambda c: done(running.bowl(c), 9.0)}
    endings = []
    for _ in range(3):
        ran = running.run(tmp_path, settings_, proposer=running.agent(GOOD), functions=slow)
        endings.append(ran.ending.outcome)
    assert endings == [JobOutcome.STOPPED, JobOutcome.STOPPED, JobOutcome.DONE]
    assert ran.dispositions == ["accepted"] * 3
    assert ran.state.usage.counter("node_hours").spent == pytest.approx(27 / 3600)
    tries = [entry.event for entry in ran.entries if isinstance(entry.event, TaskStarted)]
    assert len(tries) == 3
    ended = [entry.event for entry in ran.entries if isinstance(entry.event, SlotEnded)]
    assert len(ended) == 3
