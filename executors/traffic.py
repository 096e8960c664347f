"""The tasks of one executor label: who waits, who is with a worker, and the slots those take.

Values alone: nothing here hands a task over, waits for one or answers it.
"""

from __future__ import annotations

from collections import deque
from itertools import count

from executors.base import Task, TaskResult, TaskStatus
from executors.flight import Entry, Load
from executors.slots import Slots

GRACE = 15.0
"""Seconds beyond walltime and queue within which a healthy worker has answered in any case."""
_REQUEUES = 2  # times a task that no worker had begun is handed to the executor's successor
_numbers = count()


class Traffic:
    """See the module. A task waits, then flies, then has landed; it may be sent back to wait."""

    def __init__(self, workers: int, *, whole: bool) -> None:
        """``workers`` is how many ranks, or where they are ``whole`` nodes, there should be."""
        self.workers = workers
        self.whole = whole
        self.waiting: deque[Entry] = deque()
        self.flying: dict[int, Entry] = {}
        self._slots = Slots(workers, whole=whole)

    @property
    def left(self) -> int:
        """How many of the workers there are at the moment."""
        return self._slots.workers

    def counted(self, workers: int | None) -> None:
        """So many workers are left; None for all there should be."""
        self._slots.workers = self.workers if workers is None else min(self.workers, workers)

    def units(self, task: Task) -> int:
        """What a task takes of the workers."""
        return task.resources.nodes if self.whole else task.resources.ranks

    def load(self, *, ready: bool) -> Load:
        """How many tasks run and wait; ``ready`` is whether the workers are there."""
        running = min(len(self.flying), self.workers) if ready else 0
        return Load(self.left, running, len(self.waiting) + len(self.flying) - running)

    def too_wide(self) -> list[Entry]:
        """Waiting tasks that want more than is left."""
        return [entry for entry in self.waiting if self.units(entry.task) > self.left]

    def choose(self) -> Entry | None:
        """The waiting task that is next, if it may start now."""
        if not self.waiting:
            return None
        # Who passes whom is a question for whole nodes alone; elsewhere the first is looked at.
        looked_at = self.waiting if self.whole else (self.waiting[0],)
        units = [self.units(entry.task) for entry in looked_at]
        at = self._slots.choose(units, self.waiting[0].passed)
        return None if at is None else self.waiting[at]

    def fly(self, entry: Entry, now: float) -> None:
        """A waiting task takes its slots. ``now`` is when workers can begin, in monotonic time."""
        if entry is not self.waiting[0]:
            self.waiting[0].passed += 1
        self.waiting.remove(entry)
        self._slots.take(self.units(entry.task))
        # Whoever is ahead may take its whole walltime, but all workers take turns at it.
        ahead = sum(other.task.resources.walltime for other in self.flying.values()) / self.left
        entry.deadline = now + ahead + entry.task.resources.walltime + GRACE
        entry.number = next(_numbers)
        self.flying[entry.number] = entry

    def land(self, entry: Entry, result: TaskResult) -> None:
        """A task was answered; one that was not flying changes nothing."""
        done = result.status is TaskStatus.DONE
        self._land(entry, result.seconds if done else self._slots.usual)

    def send_back(self, entry: Entry) -> bool:
        """Put a flying task at the head of those that wait; False once it was often enough."""
        if entry.requeues >= _REQUEUES or not self._land(entry, self._slots.usual):
            return False
        entry.requeues += 1
        self.waiting.appendleft(entry)
        return True

    def _land(self, entry: Entry, seconds: float) -> bool:
        if self.flying.pop(entry.number, None) is None:
            return False
        self._slots.give(self.units(entry.task), seconds)
        return True
