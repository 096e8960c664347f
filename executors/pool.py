"""The tasks of one executor label: waiting, handed over, answered.

Everything here runs in the event loop; what blocks is sent to a thread. A task is answered exactly
once: by its worker, or by us when the worker cannot (lost), or because the run stops (cancelled).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any

from parsl.executors.high_throughput.errors import ManagerLost

from executors import adopt, answers, task_main, wire
from executors.background import go_on, in_thread, start_in_thread
from executors.base import KILL_GRACE, Task, TaskResult, TaskStatus
from executors.config import ExecutorConfig, MpiConfig, pilot, several_managers, start_timeout
from executors.flight import Entry, Load
from executors.kernel import Kernel
from executors.slots import Slots

_log = logging.getLogger(__name__)
GRACE = 15.0
"""Seconds beyond walltime and queue within which a healthy worker has answered in any case."""
_WATCH = 0.2  # seconds between two looks at what may have died
_LAST_WORD = 3.0  # seconds a worker has to answer once the guard of an overdue task was killed
_RESTARTS = 3  # times in a row an executor may break without answering a single task
_REQUEUES = 2  # times a task that no worker had begun is handed to the executor's successor
_HAND_OVER = 2.0  # seconds between our handing a task over and its start, at the most
_numbers = count()


class Pool:
    """One executor label; see the module."""

    def __init__(
        self, label: str, config: ExecutorConfig, kernel: Kernel, key: str, workers: int
    ) -> None:
        """``workers`` is how many ranks, or whole nodes, there are at once."""
        self.workers = workers
        self.unit = "nodes" if isinstance(config, MpiConfig) else "ranks"
        self._pilot = pilot(config)
        self._alone = not several_managers(config)
        self._label = label
        self._start_timeout = start_timeout(config)  # None: no workers that could be replaced
        self._kernel = kernel
        self._key = key  # names our guards among those of other runs in this process
        self._slots = Slots(workers, whole=isinstance(config, MpiConfig))
        self._waiting: deque[Entry] = deque()
        self._flying: dict[int, Entry] = {}
        self._ready = False
        self._down = self._pilot is not None  # which is submitted when there is work
        self._breaking = False  # down, and its tasks are still being seen to
        self._failures = 0
        self.why = ""  # it broke, or could not start
        self.on_change: Callable[[], None] = lambda: None  # it got ready, or broke
        self._start_by = 0.0
        self._inbox: deque[tuple[int, Future[Any]]] = deque()
        self._woken = False
        self._loop = asyncio.get_running_loop()
        self._watcher: asyncio.Task[None] | None = None
        self._mender: asyncio.Task[None] | None = None
        self._closed = False

    def started(self) -> None:
        """The executor is there; its workers may still be on their way."""
        self._down = False
        if self._start_timeout is not None:
            self._ready = False
            self._start_by = time.monotonic() + self._start_timeout
            site = self._kernel.sites[self._label]
            future = self._kernel.submit(self._label, task_main.hello)
            future.add_done_callback(lambda said: self._call(self._greeted, site, said))
        else:
            self._ready = True
        if self._watcher is None:
            self._watcher = self._loop.create_task(self._watch())
        self._pump()

    @property
    def ready(self) -> bool:
        """Whether its workers are there."""
        return self._ready and not self._down

    @property
    def coming(self) -> bool:
        """Whether its workers were asked for and may yet be there."""
        return self._mender is not None or not (self._down or self._ready)

    def wake(self) -> bool:
        """Ask for workers where there are none; False when that has failed too often."""
        if self._closed or self._breaking or self._failures >= _RESTARTS:
            return False
        if self._down and self._mender is None:
            self._mender = self._loop.create_task(self._mend())
        return True

    def load(self) -> Load:
        """See :class:`Load`."""
        running = min(len(self._flying), self.workers) if self._ready else 0
        return Load(self.workers, running, len(self._waiting) + len(self._flying) - running)

    async def run(self, task: Task) -> TaskResult:
        """Run one task to its answer; cancelling this kills the task first."""
        entry = Entry(task, self._loop.create_future())
        self._waiting.append(entry)
        self._pump()
        try:
            return await entry.answer
        except asyncio.CancelledError:
            await self._cancel(entry)
            raise

    async def close(self) -> None:
        """Answer every task still here as cancelled, having ended those that run."""
        self._closed = True
        if self._watcher is not None:
            self._watcher.cancel()
        if self._mender is not None:  # half an executor cannot be ended; it has a limit of its own
            await asyncio.wait({self._mender}, timeout=GRACE)
        while self._waiting:
            self._settle(self._waiting.popleft(), answers.cancelled())
        flying = list(self._flying.values())
        begun = [entry for entry in flying if adopt.ask_to_end(entry.task.directory)]
        if begun and not self._down:
            await asyncio.wait([entry.answer for entry in begun], timeout=4.0)
        await in_thread(task_main.close_guards, self._key)
        for entry in list(self._flying.values()):
            self._finish(entry, answers.cancelled(adopt.ran_for(entry.task.directory)))

    def forget(self) -> None:
        """After everything has ended."""
        task_main.forget_pool(self._key)

    # From waiting to handed over to answered

    def _pump(self) -> None:
        """Hand over what fits, in order."""
        if self._down or self._closed:
            idle = self._mender is None and not self._breaking and not self._closed
            if idle and self._waiting:
                self._mender = self._loop.create_task(self._mend())
            return
        if self._pilot is not None and not self._ready:
            return  # who knows when its nodes come: until then a task can still be taken back
        while (entry := self._next()) is not None:
            self._hand_over(entry)

    def _next(self) -> Entry | None:
        """The waiting task that may start now, its slots taken."""
        if not self._waiting:
            return None
        # Who passes whom is a question for whole nodes alone; elsewhere the first is looked at.
        units = [self.units(entry.task) for entry in self._candidates()]
        at = self._slots.choose(units, self._waiting[0].passed)
        if at is None:
            return None
        entry = self._waiting[at]
        if not self._ends_in_time(entry.task):
            if not self._flying:
                go_on(self._retire("too little of its walltime is left"))
            return None
        if at:
            self._waiting[0].passed += 1
        del self._waiting[at]
        self._slots.take(units[at])
        return entry

    def _candidates(self) -> Iterable[Entry]:
        return self._waiting if self._slots.whole else (self._waiting[0],)

    def _ends_in_time(self, task: Task) -> bool:
        """Whether a task that starts now ends before its nodes are taken away."""
        ends = self._kernel.sites[self._label].ends_at()
        needed = task.resources.walltime + KILL_GRACE + _HAND_OVER
        return not ends or time.time() + needed <= ends

    def units(self, task: Task) -> int:
        """What a task takes of :attr:`workers`."""
        return task.resources.nodes if self.unit == "nodes" else task.resources.ranks

    async def _retire(self, why: str) -> None:
        """Give back nodes that can do nothing more; the next are asked for when there is work."""
        if self._down:
            return
        _log.info("executor %s: %s", self._label, why)
        self._down, self._ready = True, False
        await in_thread(self._kernel.discard, self._label)
        self._pump()

    def _hand_over(self, entry: Entry) -> None:
        now = time.monotonic()
        # Whoever is ahead may take its whole walltime, but all workers take turns at it.
        ahead = sum(other.task.resources.walltime for other in self._flying.values())
        start = 0.0 if self._ready else max(0.0, self._start_by - now)
        entry.deadline = now + start + ahead / self.workers + entry.task.resources.walltime + GRACE
        entry.number = number = next(_numbers)
        self._flying[number] = entry
        try:
            request = wire.request(entry.task)
        except (TypeError, ValueError) as error:
            self._finish(entry, TaskResult(TaskStatus.ERROR, reason=f"task: not JSON: {error}"))
            return
        try:
            future = self._kernel.submit(self._label, task_main.run_task, request, self._key)
        except Exception as error:  # Parsl raises what it likes; the task has not started
            self._finish(entry, answers.lost(f"cannot be handed to Parsl: {error}"))
            return
        future.add_done_callback(lambda done: self._arrived(number, done))

    def _arrived(self, number: int, done: Future[Any]) -> None:
        """In a thread of Parsl's: leave the answer for the loop, waking it once for many."""
        self._inbox.append((number, done))
        if not self._woken:
            self._woken = True
            self._call(self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._inbox:
            number, done = self._inbox.popleft()
            entry = self._flying.get(number)
            if entry is None:
                continue  # given up meanwhile
            error = done.exception()
            if error is None:
                self._failures = 0
                self._finish(entry, answers.decoded(done.result()))
            elif isinstance(error, ManagerLost) and self._alone:  # there is no other
                go_on(self._broke(f"ManagerLost: {error}"))
            elif not self._down:  # else it was us who failed it, and it is being seen to
                go_on(self._bereave(entry, f"{type(error).__name__}: {error}"))
        self._pump()

    def _finish(self, entry: Entry, result: TaskResult) -> None:
        if self._flying.pop(entry.number, None) is not None:
            done = result.status is TaskStatus.DONE
            seconds = result.seconds if done else self._slots.usual
            self._slots.give(self.units(entry.task), seconds)
        self._settle(entry, result)

    def _settle(self, entry: Entry, result: TaskResult) -> None:
        if not entry.answer.done():
            entry.answer.set_result(result)

    async def _cancel(self, entry: Entry) -> None:
        """End a task whose ``run`` was cancelled; returns when nothing of it runs."""
        if entry in self._waiting:
            self._waiting.remove(entry)
            return
        entry.answer = self._loop.create_future()
        directory = entry.task.directory
        if entry.number not in self._flying or not adopt.ask_to_end(directory):
            return
        await asyncio.wait([entry.answer], timeout=GRACE)
        if not entry.answer.done():
            await in_thread(adopt.make_sure_it_ended, directory, 0.0)

    # When something breaks

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH)
            if self._down:
                continue
            now = time.monotonic()
            site = self._kernel.sites[self._label]
            why = site.broken()
            if not self._ready and site.waits():  # in the queue; only then the clock starts
                self._start_by = now + (self._start_timeout or 0.0)
            if why is None and not self._ready and now > self._start_by:
                why = f"the worker pool did not start within {self._start_timeout:g} s"
            why = self._overdue(now) or why
            if why is not None:
                await self._broke(why)

    def _overdue(self, now: float) -> str | None:
        """See to tasks whose worker should have answered; why the executor broke, if it did."""
        why = None
        for entry in [e for e in self._flying.values() if now > e.deadline]:
            if entry.overdue and self._start_timeout is not None:
                why = f"no answer from the worker of {entry.task.id}"
            elif entry.overdue:
                ran = adopt.ran_for(entry.task.directory)
                self._finish(entry, answers.lost("no answer from its thread", ran))
            # Its guard alone may hang; without it the worker answers.
            entry.overdue, entry.deadline = True, now + _LAST_WORD
            go_on(in_thread(adopt.make_sure_it_ended, entry.task.directory, 0.0))
        return why

    def _greeted(self, site: object, said: Future[Any]) -> None:
        if self._kernel.sites.get(self._label) is site and said.exception() is None:
            self._ready = True
            self._pump()
            self.on_change()

    async def _broke(self, why: str) -> None:
        """The executor will not answer any more: end it, answer for it, let it be replaced."""
        if self._down:
            return
        _log.warning("executor %s: %s", self._label, why)
        self._down = self._breaking = True
        was_ready, self._ready, self.why = self._ready, False, why
        entries = list(self._flying.values())
        # A pilot that ended while nobody needed it has failed nobody.
        self._failures += not (was_ready and self._pilot is not None and not entries)
        if self._start_timeout is not None:
            await in_thread(self._kernel.discard, self._label)
        for entry in reversed(entries):  # each may go back to the head of the queue
            await self._bereave(entry, why, again=was_ready)
        hopeless = not was_ready and self._pilot is None
        if hopeless or self._failures >= _RESTARTS:
            self._give_up(why)
        self._breaking = False
        self._pump()
        self.on_change()

    async def _bereave(self, entry: Entry, why: str, *, again: bool = False) -> None:
        """Answer for a worker that will not: by what it wrote, or lost, once nothing runs any more.

        A task no worker had begun goes back to the head of the queue (``again``).
        """
        directory = entry.task.directory
        await in_thread(adopt.make_sure_it_ended, directory, 3.0)
        written = adopt.read_result(directory)
        again = again and entry.requeues < _REQUEUES and not adopt.was_started(directory)
        if again and self._flying.pop(entry.number, None) is not None:
            self._slots.give(self.units(entry.task), self._slots.usual)
            entry.requeues += 1
            self._waiting.appendleft(entry)
            return
        self._finish(entry, written or answers.lost(why, adopt.ran_for(directory)))
        self._pump()

    async def _mend(self) -> None:
        """Replace the executor, unless it has broken too often to be worth it."""
        try:
            if self._failures >= _RESTARTS:
                raise RuntimeError(f"{self.why}; it broke {self._failures} times in a row")
            if self._start_timeout is not None:
                await start_in_thread(
                    partial(self._kernel.restart, self._label),
                    self._broken,
                    self._start_timeout,
                )
        except Exception as error:  # whatever kept it from starting, its tasks must not wait
            self._failures += 1
            self.why = f"the executor cannot start: {error}"
            self._give_up(self.why)
            self._mender = None
            self.on_change()
            return
        finally:
            self._mender = None
        self.started()

    def _broken(self) -> str | None:
        site = self._kernel.sites.get(self._label)
        return None if site is None else site.broken()

    def _give_up(self, why: str) -> None:
        while self._waiting:
            self._settle(self._waiting.popleft(), answers.lost(why))

    def _call(self, function: Callable[..., None], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return
