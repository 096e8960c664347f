"""The workers behind one executor label: asked for, watched, ended, replaced.

Everything here runs in the event loop; what blocks is sent to a thread. Workers that broke are
ended first, then whoever has tasks for them sees to those, and only then are others asked for.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum, auto
from functools import partial
from typing import Any

from parsl.executors.high_throughput.errors import ManagerLost

from executors import task_main
from executors.account import Account
from executors.background import go_on, in_loop, in_thread, start_in_thread
from executors.config import ExecutorConfig, MpiConfig, pilot, several_managers, start_timeout
from executors.flight import Tasks
from executors.kernel import Kernel, Site
from executors.lost import LOOK
from executors.payer import Payer
from executors.slurm import PATIENCE

_log = logging.getLogger(__name__)
_WATCH = 0.2  # seconds between two looks at what may have died
_COUNT = 2.0  # seconds between two looks at how many workers there are
_ANSWER = 10.0  # seconds for Slurm to say how many nodes are left
_RESTARTS = 3  # times in a row an executor may break without answering a single task
_CLOSE = 15.0  # seconds for a start that is under way when the run ends
_GRACE = 60.0  # seconds to give up starting an executor after its workers' own limits


class Phase(Enum):
    """Where the workers are."""

    NONE = auto()  # nobody asked for them, or there are no more
    STARTING = auto()  # they are being asked for
    COMING = auto()  # asked for; perhaps in Slurm's queue
    READY = auto()
    BREAKING = auto()  # being ended, and their tasks seen to


class Crew:
    """The workers of one label; see the module."""

    def __init__(
        self, label: str, config: ExecutorConfig, kernel: Kernel, tasks: Tasks, payer: Payer
    ) -> None:
        self.why = ""  # they broke, or could not be had
        self.unpaid = ""  # nobody pays for them
        self.on_change: Callable[[], None] = lambda: None  # they got ready, or broke
        self.piloted = pilot(config) is not None
        self._label, self._kernel, self._tasks = label, kernel, tasks
        self._account = Account(label, kernel, payer if self.piloted else None)
        self._alone = not several_managers(config)
        self._count_every = math.inf if self._alone else _COUNT  # seconds
        if isinstance(config, MpiConfig):
            self._count_every = LOOK
        self._limit = start_timeout(config)  # None: no workers that could be replaced
        self._phase = Phase.NONE
        self._failures = 0
        self._start_by = 0.0
        self._count_at = 0.0
        self._loop = asyncio.get_running_loop()
        self._watcher: asyncio.Task[None] | None = None
        self._mender: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def ready(self) -> bool:
        """Whether they are there."""
        return self._phase is Phase.READY

    @property
    def there(self) -> bool:
        """Whether tasks may be handed over: they are there, or on their way and not in a queue."""
        # Who knows when a pilot's nodes come: until then a task can still be taken back.
        return self.ready or (self._phase is Phase.COMING and not self.piloted)

    @property
    def coming(self) -> bool:
        """Whether they were asked for and may yet be there."""
        return self._phase in (Phase.STARTING, Phase.COMING)

    @property
    def ending(self) -> bool:
        """Whether they are being ended, and others may be asked for after that."""
        return self._phase is Phase.BREAKING

    @property
    def replaceable(self) -> bool:
        return self._limit is not None

    def start_takes(self) -> float:
        """Seconds until they are there, at the most."""
        return 0.0 if self.ready else max(0.0, self._start_by - time.monotonic())

    def ends_at(self) -> float:
        """Seconds since the epoch at which their nodes are taken away; 0 for never."""
        return self._site.ends_at()

    def answered(self) -> None:
        """They are good for something."""
        self._failures = 0

    def started(self) -> None:
        """Parsl's executor is there; the workers may still be on their way."""
        self._phase = Phase.COMING
        if self._limit is not None:
            self._start_by = time.monotonic() + self._limit
            future = self._kernel.submit(self._label, task_main.hello)
            future.add_done_callback(partial(self._heard, self._site))
        else:
            self._phase = Phase.READY
        if self._watcher is None:
            self._watcher = self._loop.create_task(self._watch())
        self._tasks.pump()

    def ask(self) -> None:
        """Ask for workers where there are none."""
        if self._phase is Phase.NONE and not self._closed:
            self._phase = Phase.STARTING
            self._mender = self._loop.create_task(self._mend())

    def wake(self) -> bool:
        """As :meth:`ask`; False when that has failed too often, or nobody would pay."""
        if self._closed or self.ending or self._failures >= _RESTARTS:
            return False
        self.unpaid = self._account.blocked() if self._phase is Phase.NONE else ""
        if self.unpaid:
            return False
        self.ask()
        return True

    async def close(self) -> None:
        """Ask for nothing any more, and watch nothing."""
        self._closed = True
        if self._watcher is not None:
            self._watcher.cancel()
        if self._mender is not None:  # half an executor cannot be ended; it has a limit of its own
            await asyncio.wait({self._mender}, timeout=_CLOSE)

    async def settle(self) -> None:
        """Once they have been ended for good."""
        await self._account.settle()

    async def retire(self, why: str) -> None:
        """Give back nodes that can do nothing more; the next are asked for when there is work."""
        if self._phase is not Phase.READY or self._tasks.busy():
            return
        _log.info("executor %s: %s", self._label, why)
        self._phase = Phase.BREAKING
        await in_thread(self._kernel.discard, self._label)
        await self._account.settle()
        self._phase = Phase.NONE
        self._tasks.pump()
        self.on_change()

    async def broke(self, why: str) -> None:
        """They will not answer any more: end them, see to their tasks, let them be replaced."""
        if self._phase not in (Phase.COMING, Phase.READY):
            return
        _log.warning("executor %s: %s", self._label, why)
        was_ready, self._phase, self.why = self.ready, Phase.BREAKING, why
        hopeless = (not was_ready and not self.piloted) or bool(self._site.in_vain())
        # A pilot that ended while nobody needed it has failed nobody.
        self._failures += not (was_ready and self.piloted and not self._tasks.busy())
        if self._limit is not None:
            await in_thread(self._kernel.discard, self._label)
        await self._tasks.orphaned(why, again=was_ready)
        await self._account.settle()
        if hopeless or self._failures >= _RESTARTS:
            self._tasks.refuse(why)
        self._phase = Phase.NONE
        self._tasks.pump()
        self.on_change()

    async def lost(self, error: BaseException) -> str | None:
        """Why a task came back with ``error`` of Parsl's; None when all of them are as lost."""
        site, phase = self._site, self._phase
        said = f"{type(error).__name__}: {error}"
        if phase not in (Phase.COMING, Phase.READY):
            return None  # it was us who failed it, and it is being seen to
        host = error.hostname if isinstance(error, ManagerLost) else ""
        why = await in_thread(site.why_lost, host)
        if site is not self._site or self._phase is not phase:
            return None
        why = f"{why} ({said})" if why else said
        last = isinstance(error, ManagerLost) and self._alone
        if last or site.broken() is not None:
            await self.broke(site.broken() or why)
            return None
        return why

    @property
    def _site(self) -> Site:
        return self._kernel.sites[self._label]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH)
            if self._phase not in (Phase.COMING, Phase.READY):
                continue
            now = time.monotonic()
            why = self._site.broken()
            if not self.ready and self._site.waits():  # in the queue; only then the clock starts
                self._start_by = now + (self._limit or 0.0)
            if why is None and not self.ready and now > self._start_by:
                why = f"the worker pool did not start within {self._limit:g} s"
            why = self._tasks.overdue(now) or why
            if why is not None:
                await self.broke(why)
            elif self.ready and self._site.leaves() and not self._tasks.busy():
                await self.retire("its walltime is over")
            elif self.ready and now > self._count_at:
                self._count_at = now + self._count_every
                go_on(self.count())

    async def count(self) -> None:
        """Learn how many workers are left: Parsl itself tells only of those that held a task."""
        if math.isfinite(self._count_every):
            await asyncio.wait({asyncio.ensure_future(self._count())}, timeout=_ANSWER)

    async def _count(self) -> None:
        site = self._site
        workers = await in_thread(site.workers)
        if workers is None or not self.ready or site is not self._site:
            return
        if workers:
            self._tasks.counted(workers)
            return
        why = await in_thread(site.why_lost, "")
        if site is self._site:
            await self.broke(site.broken() or why or "none of its worker pools is left")

    def _heard(self, site: Site, said: Future[Any]) -> None:
        """In a thread of Parsl's."""
        in_loop(self._loop, self._greeted, site, said)

    def _greeted(self, site: Site, said: Future[Any]) -> None:
        current = self._kernel.sites.get(self._label) is site and self._phase is Phase.COMING
        if current and said.exception() is None:
            self._phase, site.came_up, self._count_at = Phase.READY, True, 0.0
            go_on(self._account.began())
            self._tasks.counted(None)
            self.on_change()

    async def _mend(self) -> None:
        """Have others in their place, unless they have broken too often to be worth it."""
        if self._failures >= _RESTARTS:
            self._end_mending(f"{self.why}; given up after {self._failures} times in a row")
            return
        try:
            self.unpaid = await self._account.open()
            if self.unpaid:
                self._phase, self._mender = Phase.NONE, None
                self._tasks.unpaid(self.unpaid)
                self.on_change()
                return
            if self._limit is not None:
                await start_in_thread(
                    partial(self._kernel.restart, self._label),
                    self._broken,
                    self._limit + _GRACE + (PATIENCE if self.piloted else 0.0),
                )
            await self._account.queued()
        except Exception as error:  # whatever kept it from starting, its tasks must not wait
            self._failures += 1
            self.why = f"the executor cannot start: {error}"
            if self._limit is not None:
                await in_thread(self._kernel.discard, self._label)
            await self._account.settle()
            self._end_mending(self.why)
        else:
            self._mender = None
            self.started()

    def _end_mending(self, why: str) -> None:
        self._mender = None
        self._phase = Phase.NONE
        self._tasks.refuse(why)
        self.on_change()

    def _broken(self) -> str | None:
        site = self._kernel.sites.get(self._label)
        return None if site is None else site.broken()
