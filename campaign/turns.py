"""Which try may start now in a job that has an end: one that is certain to have ended by then.

A try that is handed over to a busy executor starts later than now, and would end later than was
promised. So while there is an end, it is handed over when a worker is free for it.
"""

from __future__ import annotations

from collections import Counter
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
        self._taken: Counter[str] = Counter()

    def may_start(self, spec: TaskConfig) -> bool:
        return not self.too_late(spec) and self._has_worker(spec)

    def too_late(self, spec: TaskConfig) -> bool:
        return not self._clock.admits(spec.walltime)

    def why_not(self, what: str, spec: TaskConfig) -> str:
        """Why a task can start no more in this job."""
        needed = duration_text(round(spec.walltime + KILL_GRACE, 3))
        kept = duration_text(self._clock.margin)
        return f"{self._clock}; {what} may need {needed}, and {kept} before the end are kept free"

    @contextmanager
    def taking(self, spec: TaskConfig) -> Iterator[None]:
        """While inside, a try of the task is under way."""
        units = self._units(spec)
        self._taken[spec.executor] += units
        try:
            yield
        finally:
            self._taken[spec.executor] -= units

    def _has_worker(self, spec: TaskConfig) -> bool:
        taken = self._taken[spec.executor]
        if self._clock.endless or not taken or pilot(self._executors[spec.executor]) is not None:
            return True  # pilot jobs come when Slurm likes; what waits for one can be taken back
        load = self._load().get(spec.executor)
        return load is None or taken + self._units(spec) <= load.workers

    def _units(self, spec: TaskConfig) -> int:
        """What a task takes of an executor: whole nodes, or ranks."""
        whole = isinstance(self._executors[spec.executor], MpiConfig)
        return spec.nodes if whole else spec.ranks
