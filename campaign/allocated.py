"""What a ledger knows of the nodes a run had; a part of the state, changed by its fold alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.events import TaskEnded

DRIVER, PILOT = "driver", "pilot"
LOST = frozenset({"lost", "cancelled"})
"""How a try ended that bought nothing: not by itself, but by the machine or by our stopping."""


@dataclass(frozen=True, slots=True)
class Bill:
    """Node-hours: ``allocated = tasks + idle + lost``.

    ``tasks`` went into tries that ended by themselves, ``lost`` into tries that were lost or
    cancelled, ``idle`` is the rest: starting, waiting for the agent, and workers without a task.
    Slurm counts whole seconds, so ``idle`` may be below zero by a second of each allocation.
    """

    allocated: float
    tasks: float
    lost: float
    open: int  # allocations that have not ended, counted until now

    @property
    def idle(self) -> float:
        return self.allocated - self.tasks - self.lost


@dataclass(slots=True)
class Open:
    """An allocation that has not ended. ``job`` and ``since`` are "" and 0 while not known."""

    asked: AllocationReserved
    asked_at: float  # seconds since the epoch
    job: str
    since: float

    def spent(self, now: float) -> float:
        """Node-hours until now, within what was reserved."""
        if not self.since:
            return 0.0
        seconds = max(0.0, now - self.since)
        return self.asked.nodes * min(seconds, self.asked.walltime or seconds) / 3600


@dataclass(slots=True)
class Allocations:
    """The pilot jobs of a run, and the jobs its drivers worked in."""

    count: int = 0
    open: dict[int, Open] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)  # those Slurm's ids are known of
    until: dict[str, float] = field(default_factory=dict)  # a driver's job is counted to here
    over: float = 0.0  # node-hours of those that have ended
    tasks: float = 0.0
    lost: float = 0.0

    @property
    def own(self) -> Open | None:
        """The job the driver is in, if the run pays for it."""
        return next((one for one in self.open.values() if one.asked.what == DRIVER), None)

    def bill(self, now: float) -> Bill | None:
        """What it all came to until ``now``, None for a run that never had an allocation."""
        if not self.count:
            return None
        running = sum(one.spent(now) for one in self.open.values())
        return Bill(self.over + running, self.tasks, self.lost, len(self.open))

    def reserved(self, event: AllocationReserved, now: float) -> None:
        self.count = max(self.count, event.allocation)
        self.open[event.allocation] = Open(event, now, event.job, event.since)
        self.jobs |= {event.job} - {""}

    def queued(self, event: AllocationQueued) -> None:
        if (one := self.open.get(event.allocation)) is not None:
            one.job = event.job
        self.jobs.add(event.job)

    def began(self, event: AllocationBegan) -> None:
        if (one := self.open.get(event.allocation)) is not None:
            one.since = event.since

    def ended(self, event: AllocationEnded) -> AllocationReserved | None:
        """What is no longer reserved, None when it had ended before."""
        one = self.open.pop(event.allocation, None)
        if one is None:
            return None
        self.over += event.spent
        self.jobs |= {event.job} - {""}
        if one.asked.what == DRIVER:
            self.until[one.job] = one.since + event.seconds
        return one.asked

    def tried(self, share: float, event: TaskEnded) -> None:
        """A try ended that kept ``share`` nodes of an allocation busy."""
        hours = share * event.seconds / 3600
        if event.status in LOST:
            self.lost += hours
        else:
            self.tasks += hours
