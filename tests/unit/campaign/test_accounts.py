"""Nodes are paid for in the ledger: reserved before they are there, settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from campaign.accounts import Accounts
from campaign.allocationevents import AllocationEnded, AllocationQueued, AllocationReserved
from campaign.budget import ALLOCATED
from campaign.clock import Clock
from campaign.drive import creation
from campaign.events import Event, JobStarted
from campaign.ledger import Ledger, read
from campaign.model import JobOutcome
from campaign.recorder import Recorder
from campaign.state import CampaignState, fold
from campaign.stop import Stop
from executors.payer import UnaffordableError, Wanted
from executors.ran import Ran, Source
from pretend_slurm import PretendSlurm, pretend_slurm
from running import config

PILOTS = {"kind": "slurm", "nodes": 2, "max_pilots": 4, "pilot": {"walltime": "1h"}}
WANTED = Wanted("simgate-0-default", 2, 3600.0)  # two node-hours
T = TypeVar("T")
STARTED = JobStarted(job=1, host="h", pid=1, python="", numpy="")
NO_ANSWER = "scontrol: error: Unable to contact slurm controller (connect failure)"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    """It knows no job, and keeps no accounts."""
    made = pretend_slurm(tmp_path / "bin", monkeypatch)
    made.says("scontrol", error="slurm_load_jobs error: Invalid job id specified", code=1)
    made.says("sacct", error="Slurm accounting storage is disabled", code=1)
    return made


def knows(slurm: PretendSlurm, state: str, start: str, end: str, name: str = WANTED.name) -> None:
    times = f"StartTime=2026-01-01T{start} EndTime=2026-01-01T{end}"
    slurm.says("scontrol", f"JobId=7 JobName={name} JobState={state} NumNodes=2 {times}\n")


def keep(
    run_dir: Path,
    does: Callable[[Accounts], Awaitable[T]],
    *before: Event,
    clock: Clock | None = None,
    executor: dict[str, Any] = PILOTS,
    **cap: Any,
) -> tuple[T, CampaignState, Stop]:
    """What ``does`` gives with the accounts of a run in which ``before`` has happened."""

    async def work() -> tuple[T, CampaignState, Stop]:
        run_dir.mkdir(exist_ok=True)
        with Ledger(run_dir) as ledger:
            recorder = Recorder(ledger, fold(ledger.recovered))
            budgets = {"node_hours": {"limit": 5, "count": "allocation"} | cap}
            made = config(executors={"default": executor}, budgets=budgets)
            if recorder.state.run is None:
                await recorder.record(creation(made, run_dir), *before)
            stop = Stop(clock)
            return await does(Accounts(made, recorder, stop)), recorder.state, stop

    return asyncio.run(work())


def pilot(number: int = 1) -> AllocationReserved:
    return AllocationReserved(
        allocation=number, what="pilot", name=WANTED.name, nodes=2, walltime=3600.0, reserved=2.0
    )


def test_no_more_is_reserved_than_the_cap_leaves_however_many_ask_at_once(tmp_path: Path) -> None:
    async def five_at_once(accounts: Accounts) -> list[int | BaseException]:
        work = [accounts.reserve(WANTED) for _ in range(5)]
        return await asyncio.gather(*work, return_exceptions=True)

    found, state, _ = keep(tmp_path, five_at_once)
    assert found[:2] == [1, 2]
    refused = "budgets.node_hours: 0 of 5 spent and 4 reserved; the next step may need 2"
    assert [str(one) for one in found[2:]] == [refused] * 3
    assert all(isinstance(one, UnaffordableError) for one in found[2:])
    assert state.usage.counter(ALLOCATED).reserved == 4.0


def test_what_a_pilot_did_not_use_pays_for_another_one(tmp_path: Path) -> None:
    async def one_ends(accounts: Accounts) -> tuple[str, str]:
        numbers = [await accounts.reserve(WANTED) for _ in range(2)]
        before = accounts.blocked(WANTED)
        await accounts.settle(numbers[0], Ran("7", 60.0, Source.SLURM))
        return before, accounts.blocked(WANTED)

    (before, then), state, _ = keep(tmp_path, one_ends)
    assert before.startswith("budgets.node_hours: 0 of 5 spent and 4 reserved")
    assert then == ""
    assert state.allocations.over == pytest.approx(2 / 60)


def test_tasks_are_what_the_cap_counts_unless_it_says_otherwise(tmp_path: Path) -> None:
    (number, state, _) = keep(tmp_path, lambda a: a.reserve(WANTED), limit=0.1, count="tasks")
    assert number == 1
    assert state.usage.counter("node_hours").reserved == 0.0


@pytest.mark.parametrize(
    ("per", "outcome"), [("campaign", JobOutcome.DONE), ("job", JobOutcome.STOPPED)]
)
def test_a_run_that_can_have_no_pilot_ends_by_the_name_of_the_cap(
    tmp_path: Path, per: str, outcome: JobOutcome
) -> None:
    async def nothing_left(accounts: Accounts) -> None:
        assert accounts.blocked(WANTED)
        accounts.exhausted()

    _, _, stop = keep(tmp_path, nothing_left, limit=1, per=per)
    assert (stop.reason.partition(":")[0], stop.outcome) == ("budgets.node_hours", outcome)


# What an earlier driver left


def settled(run_dir: Path, *before: Event, **keys: Any) -> AllocationEnded | None:
    _, state, _ = keep(run_dir, lambda accounts: accounts.settle_left(run_dir), *before, **keys)
    assert fold(read(run_dir)) == state
    again = len(read(run_dir))
    keep(run_dir, lambda accounts: accounts.settle_left(run_dir), **keys)
    ends = [entry.event for entry in read(run_dir) if isinstance(entry.event, AllocationEnded)]
    assert len(ends) <= 1
    assert len(read(run_dir)) == again  # it is settled once
    return ends[0] if ends else None


QUEUED = AllocationQueued(allocation=1, job="7")


def test_a_left_pilot_is_settled_by_slurms_start_and_end(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    knows(slurm, "CANCELLED", "10:00:00", "10:15:00")
    end = settled(tmp_path / "run", STARTED, pilot(), QUEUED)
    assert end == AllocationEnded(allocation=1, seconds=900.0, spent=0.5, source="slurm", job="7")


def test_a_left_pilot_slurm_has_forgotten_is_settled_by_its_accounting(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    slurm.says("sacct", f"7|1800|2026-01-01T10:00:00|{WANTED.name}\n")
    end = settled(tmp_path / "run", STARTED, pilot(), QUEUED)
    assert end is not None
    assert (end.spent, end.source) == (1.0, "sacct")


@pytest.mark.usefixtures("slurm")
def test_a_left_pilot_nobody_knows_any_more_costs_all_that_was_reserved(
    tmp_path: Path,
) -> None:
    end = settled(tmp_path / "run", STARTED, pilot(), QUEUED)
    assert end is not None
    assert (end.spent, end.source) == (2.0, "worst case")


def test_a_number_that_slurm_gave_another_job_since_is_no_word_on_a_pilot(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    knows(slurm, "COMPLETED", "10:00:00", "10:00:01", name="somebody-elses")
    end = settled(tmp_path / "run", STARTED, pilot(), QUEUED)
    assert end is not None
    assert end.source == "worst case"


def test_a_pilot_whose_number_nobody_wrote_down_is_found_by_its_name(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    slurm.says("squeue", f"7|{WANTED.name}\n")
    knows(slurm, "CANCELLED", "10:00:00", "10:15:00")
    end = settled(tmp_path / "run", STARTED, pilot())
    assert end is not None
    assert (end.job, end.spent) == ("7", 0.5)


def test_a_pilot_that_never_came_to_slurm_costs_nothing_where_there_are_accounts(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    slurm.says("sacct", "")
    end = settled(tmp_path / "run", STARTED, pilot())
    assert end is not None
    assert (end.job, end.spent, end.source) == ("", 0.0, "sacct")


@pytest.mark.usefixtures("slurm")
def test_a_pilot_that_may_never_have_come_to_slurm_costs_its_worst_case_without(
    tmp_path: Path,
) -> None:
    end = settled(tmp_path / "run", STARTED, pilot())
    assert end is not None
    assert (end.spent, end.source) == (2.0, "worst case")


def test_while_slurm_does_not_answer_what_was_reserved_stays_reserved(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    slurm.says("scontrol", error=NO_ANSWER, code=1)
    assert settled(tmp_path / "run", STARTED, pilot(), QUEUED) is None
    assert fold(read(tmp_path / "run")).usage.counter(ALLOCATED).reserved == 2.0


# The job the driver is in

ALLOCATION = {"kind": "allocation"}
START = datetime(2026, 1, 1, 10).timestamp()  # of the job; Slurm prints local time


def in_job(slurm: PretendSlurm, now: float) -> Clock:
    """In job 7 of two nodes, which began at START and ends an hour later; ``now`` is after that."""
    knows(slurm, "RUNNING", "10:00:00", "11:00:00", name="mine")
    return Clock("7", now=lambda: START + now)


def test_the_drivers_job_reserves_its_nodes_until_its_end_and_costs_them_until_it_leaves(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    clock = in_job(slurm, 900.0)
    keys: dict[str, Any] = {"clock": clock, "executor": ALLOCATION}
    (event,), _, stop = keep(tmp_path / "run", lambda accounts: accounts.own(), **keys)
    assert (event.nodes, event.walltime, event.reserved, event.since) == (2, 3600.0, 2.0, START)
    assert not stop.requested.is_set()

    async def leave(accounts: Accounts) -> list[AllocationEnded]:
        return accounts.own_ended()

    (end,), _, _ = keep(tmp_path / "again", leave, STARTED, event, **keys)
    assert (end.seconds, end.spent, end.source) == (900.0, 0.5, "clock")


def test_a_second_driver_in_the_same_job_is_counted_from_where_the_first_was(
    tmp_path: Path, slurm: PretendSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first was killed; the job goes on, and Slurm says since when."""
    clock = in_job(slurm, 1800.0)
    monkeypatch.setattr("time.time", lambda: START + 1800.0)
    first = AllocationReserved(
        allocation=1, what="driver", name="mine", nodes=2, walltime=3600.0, reserved=2.0,
        job="7", since=START,
    )  # fmt: skip
    keys: dict[str, Any] = {"clock": clock, "executor": ALLOCATION}

    async def follow(accounts: Accounts) -> list[AllocationReserved]:
        await accounts.settle_left(tmp_path / "run")
        return await accounts.own()

    (second,), state, _ = keep(tmp_path / "run", follow, STARTED, first, **keys)
    assert state.allocations.over == 1.0
    assert (second.since, second.walltime, second.reserved) == (START + 1800.0, 1800.0, 1.0)


def test_a_job_the_cap_has_no_room_for_stops_the_run_by_its_name_and_counts(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    clock = in_job(slurm, 0.0)
    keys: dict[str, Any] = {"clock": clock, "executor": ALLOCATION, "limit": 1.5}
    (event,), _, stop = keep(tmp_path / "run", lambda accounts: accounts.own(), **keys)
    assert event.reserved == 0.0
    assert stop.reason == "budgets.node_hours: 0 of 1.5 spent; the next step may need 2"
    assert stop.outcome is JobOutcome.DONE


def test_a_job_without_a_limit_cannot_be_reserved(tmp_path: Path, slurm: PretendSlurm) -> None:
    clock = in_job(slurm, 0.0)
    slurm.says("scontrol", "JobId=7 JobName=mine JobState=RUNNING NumNodes=2 EndTime=Unknown\n")
    keys: dict[str, Any] = {"clock": clock, "executor": ALLOCATION}
    _, _, stop = keep(tmp_path / "run", lambda accounts: accounts.own(), **keys)
    assert stop.reason.endswith("job 7, whose cost is unbounded; give it a time limit")
    assert stop.outcome is JobOutcome.STOPPED


def test_a_job_the_run_does_not_work_in_is_none_of_its_costs(
    tmp_path: Path, slurm: PretendSlurm
) -> None:
    """The driver submits pilot jobs from somebody's interactive job."""
    clock = in_job(slurm, 0.0)
    found, _, _ = keep(tmp_path / "run", lambda accounts: accounts.own(), clock=clock)
    assert found == []
