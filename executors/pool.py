"""The tasks of one executor label: waiting, handed over, answered.

Everything here runs in the event loop; what blocks is sent to a thread. A task is answered exactly
once: by its worker, or by us when the worker cannot (lost), or because the run stops (cancelled).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from executors import adopt, answers, task_main, wire
from executors.background import go_on, in_loop, in_thread
from executors.base import KILL_GRACE, Task, TaskResult, TaskStatus
from executors.config import ExecutorConfig, MpiConfig
from executors.crew import Crew
from executors.flight import Entry, Load
from executors.kernel import Kernel
from executors.payer import Payer, UnaffordableError
from executors.traffic import GRACE, Traffic

_LAST_WORD = 3.0  # seconds a worker has to answer once the guard of an overdue task was killed
_HAND_OVER = 2.0  # seconds between our handing a task over and its start, at the most


class Pool:
    """One executor label; see the module. Its workers are a :class:`executors.crew.Crew`."""

    def __init__(
        self,
        label: str,
        config: ExecutorConfig,
        kernel: Kernel,
        key: str,
        workers: int,
        payer: Payer,
    ) -> None:
        """``workers`` is how many ranks, or whole nodes, there are at once."""
        self.workers = workers
        self.unit = "nodes" if isinstance(config, MpiConfig) else "ranks"
        self.crew = Crew(label, config, kernel, self, payer)
        self._label = label
        self._kernel = kernel
        self._key = key  # names our guards among those of other runs in this process
        self._traffic = Traffic(workers, whole=isinstance(config, MpiConfig))
        self._inbox: deque[tuple[int, Future[Any]]] = deque()
        self._woken = False
        self._loop = asyncio.get_running_loop()
        self._closed = False

    def load(self) -> Load:
        """See :class:`Load`."""
        return self._traffic.load(ready=self.crew.ready)

    async def run(self, task: Task) -> TaskResult:
        """Run one task to its answer; cancelling this kills the task first.

        Raises :class:`executors.payer.UnaffordableError` when nobody pays for its workers.
        """
        entry = Entry(task, self._loop.create_future())
        self._traffic.waiting.append(entry)
        self.pump()
        try:
            return await entry.answer
        except asyncio.CancelledError:
            await self._cancel(entry)
            raise

    async def close(self) -> None:
        """Answer every task still here as cancelled, having ended those that run."""
        self._closed = True
        await self.crew.close()
        while self._traffic.waiting:
            self._settle(self._traffic.waiting.popleft(), answers.cancelled())
        flying = list(self._traffic.flying.values())
        begun = [entry for entry in flying if adopt.ask_to_end(entry.task.directory)]
        if begun and self.crew.there:
            await asyncio.wait([entry.answer for entry in begun], timeout=4.0)
        await in_thread(task_main.close_guards, self._key)
        for entry in list(self._traffic.flying.values()):
            self._finish(entry, answers.cancelled(adopt.ran_for(entry.task.directory)))

    async def forget(self) -> None:
        """After everything has ended."""
        task_main.forget_pool(self._key)
        await self.crew.settle()

    # From waiting to handed over to answered

    def pump(self) -> None:
        """Hand over what fits, in order; ask for workers where there are none."""
        if self._closed:
            return
        if not self.crew.there:
            if self._traffic.waiting:
                self.crew.ask()
            return
        if self._traffic.left < self.workers and self._too_few_are_left():
            return
        while (entry := self._traffic.choose()) is not None:
            if not self._ends_in_time(entry.task):
                if not self._traffic.flying:
                    go_on(self.crew.retire("too little of its walltime is left"))
                return
            self._hand_over(entry)

    def _too_few_are_left(self) -> bool:
        """See to tasks that are too wide by now; whether a pilot is given back for them."""
        left, wide = self._traffic.left, self._traffic.too_wide()
        useless = self.crew.piloted and bool(wide) and not self._traffic.flying
        if useless:
            go_on(self.crew.retire(f"{left} of its {self.workers} nodes are left"))
        for entry in () if self.crew.piloted else wide:
            self._traffic.waiting.remove(entry)
            self._settle(entry, answers.too_wide(entry.task, self._label, left, self.workers))
        return useless

    def _ends_in_time(self, task: Task) -> bool:
        """Whether a task that starts now ends before its nodes are taken away."""
        ends = self.crew.ends_at()
        needed = task.resources.walltime + KILL_GRACE + _HAND_OVER
        return not ends or time.time() + needed <= ends

    def units(self, task: Task) -> int:
        """What a task takes of :attr:`workers`."""
        return self._traffic.units(task)

    def _hand_over(self, entry: Entry) -> None:
        self._traffic.fly(entry, time.monotonic() + self.crew.start_takes())
        number = entry.number
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
            in_loop(self._loop, self._drain)

    def _drain(self) -> None:
        self._woken = False
        while self._inbox:
            number, done = self._inbox.popleft()
            entry = self._traffic.flying.get(number)
            if entry is None:
                continue  # given up meanwhile
            error = done.exception()
            if error is None:
                self.crew.answered()
                result = answers.decoded(done.result())
                if self._traffic.whole and result.status is TaskStatus.LOST:
                    go_on(self._recount(entry, result))
                else:
                    self._finish(entry, result)
            else:
                go_on(self._bereave(entry, error))
        self.pump()

    async def _recount(self, entry: Entry, result: TaskResult) -> None:
        """A node may be lost with a task: whoever tries again must not count on it."""
        await self.crew.count()
        if entry.number in self._traffic.flying:
            self._finish(entry, result)
            self.pump()

    def _finish(self, entry: Entry, result: TaskResult) -> None:
        self._traffic.land(entry, result)
        self._settle(entry, result)

    def _settle(self, entry: Entry, result: TaskResult) -> None:
        if not entry.answer.done():
            entry.answer.set_result(result)

    async def _cancel(self, entry: Entry) -> None:
        """End a task whose ``run`` was cancelled; returns when nothing of it runs."""
        if entry in self._traffic.waiting:
            self._traffic.waiting.remove(entry)
            return
        entry.answer = self._loop.create_future()
        directory = entry.task.directory
        if entry.number not in self._traffic.flying or not adopt.ask_to_end(directory):
            return
        await asyncio.wait([entry.answer], timeout=GRACE)
        if not entry.answer.done():
            await in_thread(adopt.see_ended, [directory], 0.0)

    # When its workers break

    def busy(self) -> bool:
        """See :class:`executors.flight.Tasks`, for this and what follows."""
        return bool(self._traffic.flying)

    def counted(self, workers: int | None) -> None:
        self._traffic.counted(workers)
        self.pump()

    def refuse(self, why: str) -> None:
        while self._traffic.waiting:
            self._settle(self._traffic.waiting.popleft(), answers.lost(why))

    def unpaid(self, why: str) -> None:
        while self._traffic.waiting:
            entry = self._traffic.waiting.popleft()
            if not entry.answer.done():
                entry.answer.set_exception(UnaffordableError(why))

    def overdue(self, now: float) -> str | None:
        why = None
        for entry in [e for e in self._traffic.flying.values() if now > e.deadline]:
            if entry.overdue and self.crew.replaceable:
                why = f"no answer from the worker of {entry.task.id}"
            elif entry.overdue:
                ran = adopt.ran_for(entry.task.directory)
                self._finish(entry, answers.lost("no answer from its thread", ran))
            # Its guard alone may hang; without it the worker answers.
            entry.overdue, entry.deadline = True, now + _LAST_WORD
            go_on(in_thread(adopt.make_sure_it_ended, entry.task.directory, 0.0))
        return why

    async def orphaned(self, why: str, *, again: bool) -> None:
        entries = list(self._traffic.flying.values())
        await self._see_ended(entries)
        for entry in reversed(entries):  # each may go back to the head of the queue
            self._answer_for(entry, why, again=again)

    async def _bereave(self, entry: Entry, error: BaseException) -> None:
        """A task came back with an error of Parsl's: its worker was lost, or all workers were."""
        why = await self.crew.lost(error)
        if why is None or entry.number not in self._traffic.flying:
            return
        await self._see_ended([entry])
        # Slurm may have learned of a lost node only now.
        why = await self.crew.lost(error)
        if why is None or entry.number not in self._traffic.flying:
            return
        self._answer_for(entry, why, again=False)
        self.pump()

    async def _see_ended(self, entries: Iterable[Entry]) -> None:
        await in_thread(adopt.see_ended, [entry.task.directory for entry in entries], 3.0)

    def _answer_for(self, entry: Entry, why: str, *, again: bool) -> None:
        """Answer for a worker that will not, once nothing runs: by what it wrote, or lost.

        A task no worker had begun goes back to the head of the queue (``again``).
        """
        directory = entry.task.directory
        if again and not adopt.was_started(directory) and self._traffic.send_back(entry):
            return
        written = adopt.read_result(directory)
        if written is None or written.status is TaskStatus.CANCELLED:  # because we asked it to end
            written = answers.lost(why, adopt.ran_for(directory))
        self._finish(entry, written)
