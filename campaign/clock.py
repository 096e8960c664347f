"""When the job this driver runs in ends: from Slurm, not from guesses.

Without Slurm there is no end. A limit can be changed while a job runs, so it is read again and
again, and always before anything is concluded from it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from campaign.jobconfig import MARGIN
from executors import slurm
from executors.base import KILL_GRACE

POLL = 60.0
"""Seconds between two looks at the end of the job."""
FRESH = 5.0
"""Seconds for which what Slurm said is taken for what it would say."""
EARLY = 65.0
"""Seconds by which Slurm may send its signal too early: sixty says its manual; clocks differ."""
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Clock:
    """The end of the job, seconds since the epoch, and what is kept free before it.

    ``job`` is Slurm's id, "" for a driver in no job, whose ``end`` never comes. While Slurm does
    not answer, the last end it told holds.
    """

    job: str = ""
    margin: float = MARGIN
    end: float = math.inf
    now: Callable[[], float] = time.time
    look_up: Callable[[str], slurm.Job | None] = slurm.job
    looked: float = -math.inf
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.end - self.now()

    @property
    def endless(self) -> bool:
        return math.isinf(self.end)

    @property
    def free(self) -> float:
        """Seconds until nothing may be running any more; 0 when that has come."""
        return max(0.0, self.left - self.margin)

    def admits(self, walltime: float) -> bool:
        """Whether a try that starts now is certain to have ended in time."""
        return walltime + KILL_GRACE <= self.left - self.margin

    def last_part(self) -> bool:
        """Whether the end is so near that Slurm may already have said so."""
        return self.left <= self.margin + EARLY

    async def look(self) -> slurm.Job | None:
        """Read the end again; what Slurm told, None when it did not or there is no Slurm."""
        if not self.job:
            return None
        try:
            found = await asyncio.to_thread(self.look_up, self.job)
        except slurm.SlurmError as error:
            _log.warning("the end of job %s: %s", self.job, error)
            return None
        self.looked = self.now()
        if found is not None:
            self.end = found.end or math.inf  # 0: it has no limit
        return found

    async def be_sure(self) -> None:
        """Read the end again unless that was just done; many may ask at once."""
        async with self.looking:
            if self.now() - self.looked > FRESH:
                await self.look()

    def next_look(self) -> float | None:
        """Seconds until it is worth looking again: every minute and at its turns; None: never."""
        if not self.job:
            return None
        turns = (self.left - self.margin - EARLY, self.left - self.margin)
        return min([POLL, *(turn + 0.01 for turn in turns if turn > 0)])

    def __str__(self) -> str:
        at = time.strftime("%H:%M:%S", time.localtime(self.end))
        return f"Slurm job {self.job} ends at {at}"


async def of_this_process(margin: float) -> Clock:
    """The clock of the job this process is in; a shell may still name one that has ended."""
    clock = Clock(slurm.current_job(), margin)
    found = await clock.look()
    return Clock() if found is not None and found.ending is not None else clock
