"""Repair requirements on budgets: what is counted, that nothing refills, that all is reported.

Which test shows which requirement stands in docs/adr: what the repair requirements come to.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

import folders
import running
from campaign.agents.base import AgentError
from campaign.configfile import load_config
from campaign.drive import creation
from campaign.events import (
    Answered,
    Asked,
    Called,
    CallFailed,
    Entry,
    JobEnded,
    RunCreated,
    SlotEnded,
    TaskEnded,
    TaskStarted,
)
from campaign.ledger import Ledger, read
from campaign.model import JobOutcome
from campaign.problems import ConfigError
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.state import CampaignState, fold
from campaign.status import status
from campaign.talks import talks
from repairing import OUTSIDE, UNSTABLE, config
from running import of, run
from speaking import WORST, Line, answer, speaking
from square import GOOD

CUT = AgentError("the connection was lost")
DOWN = AgentError("the server is away", unspent=True)


@pytest.mark.parametrize("place", ["expect", "defaults.expect", "agent.expect"])
@pytest.mark.parametrize("key", ["max_iterations", "structural_budget"])
def test_r20_a_budget_of_no_answers_is_refused_when_the_file_is_read(
    tmp_path: Path, place: str, key: str
) -> None:
    folder = folders.folder(tmp_path)
    with pytest.raises(ConfigError) as refused:
        load_config(folder, [f"{place}.{key}=0"])
    assert f"{place}.{key}: 0; it must be a whole number from 1 to 10" in str(refused.value)


def test_r20_one_iteration_is_one_answer_and_no_correction(tmp_path: Path) -> None:
    agent = speaking(answer(OUTSIDE, *GOOD[:2]), answer(GOOD[2]))
    ran = run(tmp_path, config(expect={"max_iterations": 1}), proposer=agent)
    assert [one.correction for one in agent.asks] == [None]
    assert ran.dispositions == ["fallback", "accepted", "accepted"]


FAIL = {"semantic_rejection": "fail_run", "structural_failure": "fail_run"}


@pytest.mark.parametrize("structural", ["fail_run", "tombstone"])
@pytest.mark.parametrize(
    ("said", "used"),
    [
        ([OUTSIDE, UNSTABLE, OUTSIDE | {"x": 0.2}], "3 of 3"),
        ([OUTSIDE, OUTSIDE], "2 of 3"),  # no progress
    ],
)
def test_r20_a_run_that_ends_by_policy_says_how_many_answers_of_how_many_it_had(
    tmp_path: Path, said: list[Any], used: str, structural: str
) -> None:
    settings = config(
        batch_size=1,
        expect={"max_iterations": 3},
        policy=FAIL | {"structural_failure": structural},
    )
    ran = run(tmp_path, settings, proposer=speaking(*map(answer, said)))
    assert ran.ending.outcome is JobOutcome.FAILED
    assert ran.ending.reason.startswith(f"round 1: {used} generations are used; ")
    assert ran.ending.reason.count("attempt ") <= 3


def test_r20_answers_that_hold_no_candidates_have_a_budget_of_their_own(tmp_path: Path) -> None:
    settings = config(expect={"max_iterations": 2, "structural_budget": 1}, policy=FAIL)
    lines = ["no json", answer(OUTSIDE, *GOOD[:2]), answer(UNSTABLE), answer(GOOD[2])]
    agent = speaking(*lines)
    ran = run(tmp_path, settings, proposer=agent)
    assert len(agent.asks) == 3
    assert ran.ending.reason.startswith("round 1: 3 of 3 generations are used; ")


def story(entries: list[Entry]) -> tuple[list[Any], list[str]]:
    """What happened, without when, where and how fast; what overlaps is in no order."""
    told: list[Any] = []
    overlapping = []
    for entry in entries:
        event: Any = entry.event
        if isinstance(event, TaskStarted | TaskEnded | SlotEnded):
            overlapping.append(repr(event))
            continue
        if isinstance(event, RunCreated):
            event = msgspec.structs.replace(event, folder="")
        if isinstance(event, Answered):
            event = msgspec.structs.replace(event, seconds=0.0)
        told.append(event)
    return told, sorted(overlapping)


def test_r23_the_same_campaign_twice_in_one_process_is_the_same(tmp_path: Path) -> None:
    settings = config(rounds=3, expect={"max_iterations": 3}, budgets={"generations": 6})
    lines: list[Line] = [
        DOWN,
        answer(OUTSIDE, *GOOD[:2]),
        "no json",
        answer(GOOD[2]),
        CUT,
        CUT,
        CUT,
    ]
    first = run(tmp_path / "a", settings, proposer=speaking(*lines))
    second = run(tmp_path / "b", settings, proposer=speaking(*lines))
    assert story(first.entries) == story(second.entries)
    assert first.dispositions[:3] == ["repaired", "accepted", "accepted"]


def test_r23_neither_success_nor_a_new_round_gives_generations_back(tmp_path: Path) -> None:
    settings = config(rounds=4, batch_size=1, budgets={"generations": 4})
    good = [{"x": 0.1, "y": 0.1 * n} for n in range(1, 9)]
    lines = [answer(good[0]), answer(OUTSIDE), *map(answer, good[1:])]
    agent = speaking(*lines)
    ran = run(tmp_path, settings, proposer=agent)
    assert len(agent.asks) == 4
    assert ran.dispositions == ["accepted", "repaired", "accepted", "fallback"]
    assert ran.state.usage.counter("generations").spent == 4


def test_r23_a_slot_that_passes_gives_the_others_no_further_answer(tmp_path: Path) -> None:
    lines = [
        answer(GOOD[0], OUTSIDE, OUTSIDE | {"x": 0.2}),
        answer(GOOD[1], OUTSIDE | {"x": 0.3}),
        answer(GOOD[2]),
    ]
    agent = speaking(*lines)
    ran = run(tmp_path, config(expect={"max_iterations": 2}), proposer=agent)
    assert len(agent.asks) == 2
    assert ran.dispositions == ["accepted", "repaired", "fallback"]


def test_r23_answers_between_failures_refill_no_asks_retries(tmp_path: Path) -> None:
    lines: list[Line] = [DOWN, DOWN, answer(OUTSIDE, *GOOD[:2]), DOWN, DOWN, DOWN, answer(GOOD[2])]
    agent = speaking(*lines)
    settings = config(agent={"retries": 2}, expect={"max_iterations": 5})
    ran = run(tmp_path, settings, proposer=agent)
    made = [(one.generation, one.attempt) for one in of(ran, Called)]
    assert made == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert ran.dispositions == ["fallback", "accepted", "accepted"]


@pytest.mark.parametrize(("limit", "each", "fit"), [(100, 7, 14), (100, 100, 1), (99, 100, 0)])
def test_r25_a_hundred_reservations_at_once_never_pass_the_cap(
    tmp_path: Path, limit: int, each: int, fit: int
) -> None:
    settings = running.config(budgets={"tokens": limit})

    async def reserve_all() -> tuple[list[object], CampaignState]:
        with Ledger(tmp_path) as ledger:
            recorder = Recorder(ledger, CampaignState())
            await recorder.record(creation(settings, tmp_path))
            purse = Purse(settings.budgets, recorder)
            called = [Called(round=1, generation=n, attempt=1, tokens=each) for n in range(1, 101)]
            blocked = await asyncio.gather(
                *(purse.reserve(one, {"tokens": one.tokens}) for one in called)
            )
            again = purse.blocked({"tokens": each})
            assert (again is None) == (fit * each + each <= limit), "nothing else is held"
            await recorder.close()
            return list(blocked), recorder.state

    blocked, state = asyncio.run(reserve_all())
    assert sum(one is None for one in blocked) == fit
    assert state.usage.counter("tokens").reserved == fit * each <= limit
    assert fold(read(tmp_path)) == state
    assert all("budgets.tokens" in str(one) for one in blocked if one is not None)


@pytest.mark.parametrize("ends_well", [True, False])
def test_r26_what_every_call_used_is_reported_however_the_run_ends(
    tmp_path: Path, ends_well: bool
) -> None:
    last = answer(GOOD[2]) if ends_well else answer(OUTSIDE | {"x": 0.2})
    lines: list[Line] = [CUT, "no json", DOWN, answer(OUTSIDE, *GOOD[:2]), last]
    settings = config(expect={"max_iterations": 3}, policy=FAIL)
    ran = run(tmp_path, settings, proposer=speaking(*lines))
    assert ran.ending.outcome is (JobOutcome.DONE if ends_well else JobOutcome.FAILED)
    told = talks(fold(ran.entries))
    assert told is not None
    assert (told.answers, told.calls, told.failed) == (3, 5, 2)
    assert (told.input_tokens, told.output_tokens) == (15, 15)
    charged = WORST + 3 * WORST // 10  # the call that was cut may have used all it could
    shown = status(tmp_path)
    assert shown["budgets"]["tokens"]["spent"] == charged
    assert shown["agent"]["calls"] == 5
    by_call = [one.tokens for one in of(ran, CallFailed)] + [
        one.tokens for one in of(ran, Answered)
    ]
    assert sum(by_call) == charged
    assert len(of(ran, Asked)) == 3
    assert len(of(ran, JobEnded)) == 1
