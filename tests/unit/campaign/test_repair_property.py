"""Whatever an agent answers, or fails to: what holds of every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import running
from campaign.agents.base import AgentError
from campaign.config import CampaignConfig
from campaign.events import Asked, Called, CallFailed, Entry, SlotEnded, TaskStarted, Unanswered
from campaign.gateconfig import most_generations
from campaign.model import SIMULATION, Answer, Ask, JobOutcome
from campaign.state import fold
from repairing import LEVEL, config
from speaking import Line, SpeakingAgent, answer, speaking

ROUNDS, BATCH, RETRIES = 2, 3, 1
Kind = Callable[[int], object]
KINDS: dict[str, Kind] = {
    "good": lambda n: {"x": 0.01 + 0.001 * n, "y": 0.2 + 0.003 * n},
    "outside": lambda n: {"x": 2.0 + n, "y": 0.1},
    "far outside": lambda n: {"x": 1e100, "y": -1e100 * n},
    "breaks the rule": lambda n: {"x": 0.4 + 0.001 * n, "y": 0.95},
    "unstable": lambda n: {"x": 0.6 + 0.001 * n, "y": 0.1},
    "the same": lambda _: {"x": 0.15, "y": 0.15},
    "the same, bad": lambda _: {"x": 0.9, "y": 0.05},
    "a twin": lambda n: {"x": 0.05, "y": 0.001 * (n // BATCH)},  # of its siblings
    "of wrong types": lambda n: {"x": str(n), "y": True},
    "without a name": lambda _: {"x": 0.1},
    "with one too many": lambda n: {"x": 0.1, "y": 0.1, f"z{n}": 1},
    "no mapping": lambda n: n,
    "null": lambda _: None,
}
STAGES = ("truncation", "refusal", "filtered", "empty", "schema")
ERRORS = (
    AgentError("the connection was lost"),
    AgentError("HTTP 429", status=429, unspent=True),
    AgentError("the server wants too much", retry_after=7200.0),
)
REFUSED = AgentError("HTTP 401", status=401, retryable=False, unspent=True)


def candidates(kinds: tuple[str, ...], more: int) -> Callable[[Ask], str]:
    """An answer with these kinds of candidates for the slots asked for, or some more or fewer."""

    def line(ask: Ask) -> str:
        start = (10 * ask.round + ask.generation) * BATCH
        slots = [*ask.slots, *range(max(0, more))][: len(ask.slots) + more]
        return answer(*(KINDS[kinds[slot % len(kinds)]](start + slot) for slot in slots))

    return line


def named(stage: str) -> Answer:
    return Answer(stage=stage, reason=f"it ended as {stage}", response=stage)


LINES: st.SearchStrategy[Line] = st.one_of(
    st.builds(
        candidates,
        st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=BATCH).map(tuple),
        st.sampled_from([0] * 8 + [-1, 1]),
    ),
    st.sampled_from(STAGES).map(named),
    st.sampled_from(["no json", "{}", '{"candidates": "none"}', "[" * 200]),
    st.sampled_from(ERRORS),
)
SCRIPTS = st.tuples(
    st.lists(LINES, min_size=1, max_size=8), st.lists(st.just(REFUSED), max_size=1)
).map(lambda parts: [*parts[0], *parts[1]])
POLICY = st.sampled_from(["fallback", "tombstone", "return_last", "fail_run"])


def of(entries: list[Entry], kind: type) -> list[Any]:
    return [entry.event for entry in entries if isinstance(entry.event, kind)]


def held(ran: running.Ran, wanted: CampaignConfig, agent: SpeakingAgent) -> None:
    """Assert everything that holds of any run."""
    assert fold(ran.entries) == ran.state
    slots_end_once(ran, wanted)
    calls_are_counted(ran, agent)
    nothing_bad_is_paid_for(ran)


def slots_end_once(ran: running.Ran, wanted: CampaignConfig) -> None:
    """Each slot has one end, and is asked for no more after it, nor once it was left out."""
    left = {number: {*range(BATCH)} for number in ran.state.rounds}
    open_ = {number: {*range(BATCH)} for number in ran.state.rounds}
    for entry in ran.entries:
        one = entry.event
        if isinstance(one, Asked):
            assert one.slots == sorted({*one.slots} & left[one.round] & open_[one.round])
            open_[one.round] = {*one.slots}
        if isinstance(one, SlotEnded):
            left[one.round].remove(one.slot)
    for number, rounds in ran.state.rounds.items():
        assert not (rounds.ended and left[number]), "nothing is dropped silently"
        assert list(rounds.asked) == list(range(1, len(rounds.asked) + 1))
        assert len(rounds.asked) <= most_generations(wanted)
        assert {*rounds.answers} | {*rounds.unanswered} <= {*rounds.asked}


def calls_are_counted(ran: running.Ran, agent: SpeakingAgent) -> None:
    entries, state = ran.entries, ran.state
    calls = Counter((one.round, one.generation) for one in of(entries, Called))
    assert all(count <= 1 + RETRIES for count in calls.values())
    assert len(agent.asks) == sum(calls.values())
    done = len(of(entries, CallFailed)) + sum(len(one.answers) for one in state.rounds.values())
    assert sum(calls.values()) == done, "every call has one end"
    if ran.ending.outcome is JobOutcome.DONE:
        assert all(rounds.ended for rounds in state.rounds.values())
        assert len(of(entries, Asked)) == len(of(entries, Unanswered)) + sum(
            len(one.answers) for one in state.rounds.values()
        )
        for name in ("tokens", "generations"):
            counter = state.usage.counter(name)
            assert (counter.open, counter.reserved) == (0, 0.0), name


def nothing_bad_is_paid_for(ran: running.Ran) -> None:
    """A verifier sees what the checks let pass; a simulation, unless by policy, what all did."""
    entries, state = ran.entries, ran.state
    let_through = {"accepted", "repaired", "fallback"}
    passed = {one.candidate for one in of(entries, SlotEnded) if one.disposition in let_through}
    for one in of(entries, TaskStarted):
        point: dict[str, Any] = dict(state.points[one.candidate])
        if one.task != SIMULATION or one.candidate in passed:
            assert set(point) == {"x", "y"}
            assert all(0 <= value <= 1 for value in point.values())
            assert point["x"] + point["y"] <= 1
        if one.task == SIMULATION and one.candidate in passed:
            assert point["x"] <= 0.5


@pytest.mark.slow
@given(
    lines=SCRIPTS,
    iterations=st.integers(1, 4),
    structural=st.none() | st.integers(1, 2),
    semantic_policy=POLICY,
    structural_policy=POLICY,
    cap=st.none() | st.integers(1, 5),
)
@settings(max_examples=60)
def test_for_any_script_every_slot_ends_once_within_its_generations(
    lines: list[Line],
    iterations: int,
    structural: int | None,
    semantic_policy: str,
    structural_policy: str,
    cap: int | None,
) -> None:
    budget = {} if structural is None else {"structural_budget": structural}
    wanted = config(
        LEVEL,
        rounds=ROUNDS,
        agent={"retries": RETRIES},
        expect={"max_iterations": iterations, "structural": "auto"} | budget,
        policy={"semantic_rejection": semantic_policy, "structural_failure": structural_policy},
        budgets={} if cap is None else {"generations": cap},
    )
    agent = speaking(*lines)
    with TemporaryDirectory() as folder:
        ran = running.run(Path(folder), wanted, proposer=agent)
        held(ran, wanted, agent)
        if cap is not None:
            assert ran.state.usage.counter("generations").spent <= cap
