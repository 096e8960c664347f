"""What a driver attends to while it works: signals, and the clock of the job it is in.

Slurm's early signal may come a minute too soon, and the end can be moved while a job runs. So the
signal is a hint to look at the clock; only one that comes long before the end is somebody's word
to stop. The clock alone decides what may still start, and when nothing may run any more.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from campaign.chain import Chain
from campaign.events import Signalled
from campaign.holdup import HoldUp
from campaign.recorder import Recorder
from campaign.stop import Stop

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
LAST_WORDS = 3.0
"""Seconds for running tasks when Slurm ends a job: it has told them to end as well."""
_NEAR = 5.0  # seconds before the end of a job that count as its end
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Attention:
    """Who told the driver to stop: ``told`` by a person, and not by the job's end."""

    stop: Stop
    chain: Chain
    recorder: Recorder
    grace: float
    told: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)
    busy: set[asyncio.Task[None]] = field(default_factory=set)  # the loop holds tasks only weakly
    holdup: HoldUp = field(default_factory=HoldUp)

    async def watch(self) -> None:
        """Follow the clock until the driver is done."""
        clock = self.stop.clock
        while True:
            if clock.free == 0:
                self.stop.request(f"{clock}, and nothing may be running any more")
                self.stop.cut()
            if clock.last_part():
                await self.chain.extend()
            try:
                await asyncio.wait_for(self.over.wait(), clock.next_look())
                return
            except TimeoutError:
                await clock.look()

    def heard(self, number: signal.Signals) -> None:
        """A signal arrived."""
        self.holdup.heard()
        clock = self.stop.clock
        if number is signal.SIGUSR1 and clock.job:
            self.begin(self._hint())
            return
        self.told = True
        grace = self.grace
        if number is signal.SIGTERM and clock.job:
            self.begin(self._by_whom(clock.left <= _NEAR))
            grace = min(grace, LAST_WORDS)
        self._stop(number.name, grace)

    async def _hint(self) -> None:
        clock = self.stop.clock
        await clock.look()
        if clock.last_part():
            _log.info("early signal: %s", clock)
            await self.chain.extend()
        else:
            self._stop(signal.SIGUSR1.name, self.grace)

    async def _by_whom(self, at_the_end: bool) -> None:
        """A job that was preempted, or still runs and ends soon, ends by nobody's word."""
        found = await self.stop.clock.look()
        preempted = found is not None and found.preempted
        soon = found is not None and found.state == "RUNNING" and self.stop.clock.last_part()
        self.told = not (at_the_end or preempted or soon)

    def _stop(self, name: str, grace: float) -> None:
        first = not self.stop.signalled
        self.stop.signal(name, grace)
        if first:
            self.begin(self.recorder.record(Signalled(signal=name, grace=grace)))

    async def rest(self) -> None:
        """Follow the clock no longer, and end what was begun."""
        self.over.set()
        while self.busy:
            await asyncio.wait(self.busy)

    def begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.busy.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.busy.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("%s: %s", type(error).__name__, error)


@asynccontextmanager
async def attending(
    stop: Stop, chain: Chain, recorder: Recorder, grace: float
) -> AsyncIterator[Attention]:
    """Attend to signals and to the clock while inside; what was begun is ended with it."""
    attention = Attention(stop, chain, recorder, grace)
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, attention.heard, number)
        # The loop hears of the signal all the same: by a pipe that is written before any handler.
        signal.signal(number, attention.holdup.arrived)
        signal.siginterrupt(number, False)
    attention.begin(attention.watch())
    try:
        with attention.holdup.watching():
            yield attention
    finally:
        await attention.rest()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
