"""Nodes that Slurm gives, paid for in the ledger: pilot jobs, and the job the driver is in.

What may be spent on them is reserved before they are there and settled when they are over. With
``budgets.node_hours.count: allocation`` no more is reserved than the cap leaves.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import os
from pathlib import Path

from msgspec.structs import replace

from campaign.allocated import DRIVER, PILOT, Open
from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.budget import ALLOCATED, Exhausted, Usage, blocking, counted_by
from campaign.clock import Clock
from campaign.config import CampaignConfig
from campaign.ledger import LedgerError
from campaign.model import JobOutcome
from campaign.recorder import Recorder
from campaign.state import CampaignState
from campaign.stop import Stop
from executors import ran, slurm
from executors.config import shares_job
from executors.payer import UnaffordableError, Wanted
from executors.ran import Ran, Source

CAP = "node_hours"
_SKEW = 60.0  # seconds by which Slurm's clock and ours may differ
_log = logging.getLogger(__name__)


class Accounts:
    """Keeps the contract of :class:`executors.payer.Payer`, and the driver's own job."""

    def __init__(self, config: CampaignConfig, recorder: Recorder, stop: Stop) -> None:
        self._config = config
        self._recorder = recorder
        self._stop = stop
        self._capped = counted_by(CAP, config.budgets.cap(CAP)) == ALLOCATED
        self._turn = asyncio.Lock()
        self._refused: Exhausted | None = None

    def blocked(self, wanted: Wanted) -> str:
        """See :class:`executors.payer.Payer`, for this and what follows."""
        if not self._capped:
            return ""
        found = self._over_cap(self._state.usage, _hours(wanted.nodes, wanted.walltime))
        return str(found or "")

    async def reserve(self, wanted: Wanted) -> int:
        async with self._turn:  # each is numbered, and held against the cap, after the one before
            if why := self.blocked(wanted):
                raise UnaffordableError(why)
            event = AllocationReserved(
                allocation=self._state.allocations.count + 1,
                what=PILOT,
                name=wanted.name,
                nodes=wanted.nodes,
                walltime=wanted.walltime,
                reserved=_hours(wanted.nodes, wanted.walltime),
            )
            await self._recorder.record(event)
            return event.allocation

    async def queued(self, account: int, job: str) -> None:
        await self._recorder.record(AllocationQueued(allocation=account, job=job))

    async def began(self, account: int, since: float) -> None:
        try:
            await self._recorder.record(AllocationBegan(allocation=account, since=since))
        except LedgerError as error:
            _log.error("allocation %d: %s", account, error)

    async def settle(self, account: int, ran: Ran) -> None:
        open_ = self._state.allocations.open[account]
        try:
            await self._recorder.record(_ended(open_, ran))
        except LedgerError as error:  # a later job finds it open
            _log.error("allocation %d: %s", account, error)

    def exhausted(self) -> None:
        """End the run by the name of the cap; one that starts anew with each job ends the job."""
        if self._refused is not None:
            done = self._refused.per == "campaign"
            outcome = JobOutcome.DONE if done else JobOutcome.STOPPED
            self._stop.request(str(self._refused), outcome)

    async def settle_left(self, run_dir: Path) -> None:
        """Settle what earlier drivers left open, having ended the pilot jobs they left.

        From Slurm if it still knows, else at what was reserved. What a controller that does not
        answer might know is left to a later job.
        """
        left, seen = list(self._state.allocations.open.values()), self._state.changed_at
        if any(one.asked.what == PILOT for one in left):
            from executors.pilots import end_leftovers

            await asyncio.to_thread(end_leftovers, run_dir)
        for one in left:
            known = frozenset(self._state.allocations.jobs)
            try:
                told = await asyncio.to_thread(_told, one, known)
            except slurm.NoAnswerError as error:
                _log.warning("allocation %d: %s", one.asked.allocation, error)
                continue
            await self._recorder.record(_ended(one, told or _worst(one, seen)))

    async def own(self) -> list[AllocationReserved]:
        """What is to be written with the start of the job: its nodes until its end, if it counts.

        A job counts that tasks run in, or that was submitted for the run. One that the cap has
        no room for is asked to stop; until it has, it is counted all the same.
        """
        clock = self._stop.clock
        works_in_it = any(map(shares_job, self._config.executors.values()))
        if not clock.job or not (works_in_it or clock.job in self._state.slurm.all):
            return []
        event = _own(await clock.look(), clock, self._state)
        if self._capped and not self._has_room(event):
            event = replace(event, reserved=0.0)
        return [event]

    def own_ended(self) -> list[AllocationEnded]:
        """What is to be written with the end of the job."""
        open_, clock = self._state.allocations.own, self._stop.clock
        if open_ is None or open_.job != clock.job:
            return []
        seconds = max(0.0, clock.now() - open_.since)
        return [_ended(open_, Ran(open_.job, seconds, Source.CLOCK, open_.since))]

    @property
    def _state(self) -> CampaignState:
        return self._recorder.state

    def _has_room(self, event: AllocationReserved) -> bool:
        """Whether the cap leaves what the driver's job may take; else the run is asked to stop."""
        if not event.walltime:
            why = f"budgets.{CAP}: Slurm tells no end of job {event.job}, whose cost is unbounded"
            self._stop.request(f"{why}; give it a time limit")
            return False
        usage = copy.deepcopy(self._state.usage)
        usage.new_job()
        if self._over_cap(usage, event.reserved) is None:
            return True
        self.exhausted()
        return False

    def _over_cap(self, usage: Usage, hours: float) -> Exhausted | None:
        found = blocking(usage, self._config.budgets, {CAP: hours})
        self._refused = found or self._refused
        return found


def _own(found: slurm.Job | None, clock: Clock, state: CampaignState) -> AllocationReserved:
    """The job the driver is in, of which Slurm told ``found``."""
    since = state.allocations.until.get(clock.job, 0.0) or (found.start if found else 0.0)
    since = since or clock.now()
    nodes = found.nodes if found else int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    walltime = 0.0 if clock.endless else max(0.0, clock.end - since)
    return AllocationReserved(
        allocation=state.allocations.count + 1,
        what=DRIVER,
        name=found.name if found else os.environ.get("SLURM_JOB_NAME", ""),
        nodes=nodes,
        walltime=walltime,
        reserved=_hours(nodes, walltime),
        job=clock.job,
        since=since,
    )


def _told(one: Open, known: frozenset[str]) -> Ran | None:
    """What Slurm says of an allocation an earlier driver left, None when it does not know."""
    try:
        if one.job:
            return ran.of_number(one.job, one.asked.name)
        return ran.of_name(one.asked.name, one.asked_at - _SKEW, known)
    except slurm.NoAnswerError:
        raise
    except slurm.SlurmError as error:
        _log.warning("allocation %d: %s", one.asked.allocation, error)
        return None


def _worst(one: Open, seen: float) -> Ran:
    """All that was reserved; of a job without a limit, what it was ``seen`` to take."""
    if one.asked.walltime or not one.since:
        return Ran(one.job, one.asked.walltime, Source.WORST, one.since)
    return Ran(one.job, max(0.0, seen - one.since), Source.CLOCK, one.since)


def _ended(one: Open, ran: Ran) -> AllocationEnded:
    """The event that settles an allocation; a driver's job may have been counted in part before."""
    seconds = ran.seconds
    if one.asked.what == DRIVER:
        seconds = max(0.0, ran.since + ran.seconds - one.since)
    return AllocationEnded(
        allocation=one.asked.allocation,
        seconds=seconds,
        spent=_hours(one.asked.nodes, seconds),
        source=ran.source.value,
        job=ran.job or one.job,
    )


def _hours(nodes: int, seconds: float) -> float:
    return nodes * seconds / 3600
