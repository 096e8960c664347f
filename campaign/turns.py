"""Which try may start now in a job that has an end: one that is certain to have ended by then.

A try that is handed to a busy executor starts when those before it have ended. So while there is
an end, no more are handed over than could all end in time, each taking its whole walltime.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from campaign.clock import Clock
from campaign.config import TaskConfig
from campaign.fields import duration_text
from executors.base import KILL_GRACE
from executors.config import ExecutorConfig, MpiConfig, pilot
from executors.flight import Load


class Turns:
    """The tries that are under way, by executor, and whether another one may join them."""

    def __init__(
        self,
        executors: Mapping[str, ExecutorConfig],
        load: Callable[[], Mapping[str, Load]],
        clock: Clock,
    ) -> None:
        self._executors = executors
        self._load = load
        self._clock = clock
        self._taken: Counter[str] = Counter()  # workers, or nodes
        self._ahead: Counter[str] = Counter()  # the same, times seconds

    def may_start(self, spec: TaskConfig) -> bool:
        """Whether a try that is handed over now finds its nodes, and is certain to end in time."""
        if self._left(spec) < self._units(spec):
            return False
        waits = 0.0 if self._clock.endless else self._waits(spec)
        return self._clock.admits(waits + spec.walltime)

    def why_not(self, what: str, spec: TaskConfig) -> str:
        """Why a task can start no more in this job."""
        if (left := self._left(spec)) < (units := self._units(spec)):
            return (
                f"{what} needs {units} nodes; executor {spec.executor!r} has {left:g} left, "
                "the others are lost"
            )
        needed = duration_text(round(spec.walltime + KILL_GRACE, 3))
        kept = duration_text(self._clock.margin)
        return f"{self._clock}; {what} may need {needed}, and {kept} before the end are kept free"

    @contextmanager
    def taking(self, spec: TaskConfig) -> Iterator[None]:
        """While inside, a try of the task is under way."""
        units = self._units(spec)
        work = units * math.ceil(spec.walltime + KILL_GRACE)
        self._taken[spec.executor] += units
        self._ahead[spec.executor] += work
        try:
            yield
        finally:
            self._taken[spec.executor] -= units
            self._ahead[spec.executor] -= work

    def _left(self, spec: TaskConfig) -> float:
        """Whole nodes of the driver's own job that are not lost; elsewhere others may come."""
        config = self._executors[spec.executor]
        if not isinstance(config, MpiConfig) or config.pilot is not None:
            return math.inf
        load = self._load().get(spec.executor)
        return math.inf if load is None else load.workers

    def _waits(self, spec: TaskConfig) -> float:
        """Seconds a try may wait for its workers at the most, which are busy until it starts."""
        config, label = self._executors[spec.executor], spec.executor
        if pilot(config) is not None:
            return 0.0  # pilot jobs come when Slurm likes; what waits for one can be taken back
        taken, units, load = self._taken[label], self._units(spec), self._load().get(label)
        if load is None or not taken or taken + units <= load.workers:
            return 0.0
        if isinstance(config, MpiConfig):
            return math.inf  # where narrow tasks may pass wide ones, nobody knows who is next
        return self._ahead[label] / max(1, load.workers - units + 1)

    def _units(self, spec: TaskConfig) -> int:
        """What a task takes of an executor: whole nodes, or ranks."""
        whole = isinstance(self._executors[spec.executor], MpiConfig)
        return spec.nodes if whole else spec.ranks


class Line:
    """Those who wait for room, by what they need.

    Of those who need the same only the first looks whether there is room now; it calls the next.
    """

    def __init__(self) -> None:
        self._waiting: defaultdict[str, deque[asyncio.Future[None]]] = defaultdict(deque)

    async def wait(self, need: str, *, again: bool = False) -> None:
        """Return when it is time to look; who has looked ``again`` in vain stays the first."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[need]
        waiting.appendleft(mine) if again else waiting.append(mine)
        await mine

    def call(self, need: str) -> None:
        """Let the first of those who need this look."""
        waiting = self._waiting[need]
        while waiting:
            first = waiting.popleft()
            if not first.done():  # else it was cancelled
                first.set_result(None)
                return

    def call_all(self) -> None:
        """Something has changed: let the first of every kind look."""
        for need in tuple(self._waiting):
            self.call(need)
