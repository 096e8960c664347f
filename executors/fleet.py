"""Several pilot jobs behind one executor label: as many as there is work for, up to a limit.

A task waits here, in order, until a pilot has room for it; it is never promised to one that is
still in Slurm's queue. No pilot is given back while there may be more work: an agent that thinks
for minutes must not cost the next queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from executors import answers
from executors.base import Task, TaskResult
from executors.flight import Load
from executors.payer import UnaffordableError
from executors.pool import Pool


class Fleet:
    """Pools of one pilot job each; keeps what :class:`executors.pool.Pool` promises."""

    unit = "ranks"

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = tuple(pools)
        self.workers = pools[0].workers
        self._waiting: deque[asyncio.Future[Pool]] = deque()
        self._promised = dict.fromkeys(self._pools, 0)
        self._running = 0
        for pool in self._pools:
            pool.crew.on_change = self._pump

    def units(self, task: Task) -> int:
        """See :meth:`executors.pool.Pool.units`."""
        return self._pools[0].units(task)

    def load(self) -> Load:
        """See :class:`Load`."""
        workers = sum(pool.workers for pool in self._pools)
        return Load(workers, self._running, len(self._waiting))

    async def run(self, task: Task) -> TaskResult:
        """Run one task on the first pilot that has room for it.

        Raises :class:`executors.payer.UnaffordableError` when there is none, and nobody pays for
        one.
        """
        again = False
        while True:
            try:
                pool = await self._turn(again)
            except RuntimeError as error:  # no pilot will ever come
                return answers.lost(str(error))
            self._running += 1
            try:
                return await pool.run(task)
            except UnaffordableError:  # its pilot ended before it began; another may have room
                again = True
            finally:
                self._running -= 1
                self._promised[pool] -= 1
                self._pump()

    async def close(self) -> None:
        """See :meth:`executors.pool.Pool.close`."""
        while self._waiting:
            self._refuse(RuntimeError("the run stops"))
        await asyncio.gather(*(pool.close() for pool in self._pools))

    async def forget(self) -> None:
        """See :meth:`executors.pool.Pool.forget`."""
        await asyncio.gather(*(pool.forget() for pool in self._pools))

    async def _turn(self, again: bool) -> Pool:
        """A pilot that has room; who had a turn before goes first."""
        turn: asyncio.Future[Pool] = asyncio.get_running_loop().create_future()
        self._waiting.appendleft(turn) if again else self._waiting.append(turn)
        self._pump()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled() and turn.exception() is None:
                self._promised[turn.result()] -= 1
            raise

    def _pump(self) -> None:
        """Hand out what room there is, and ask for pilots where there is work for more."""
        for pool in self._pools:
            while self._waiting and pool.crew.ready and self._promised[pool] < pool.workers:
                self._promised[pool] += 1
                turn = self._waiting.popleft()
                if not turn.done():
                    turn.set_result(pool)
        if not self._waiting:
            return
        coming = sum(pool.workers for pool in self._pools if pool.crew.coming)
        for pool in self._pools:
            if coming >= len(self._waiting):
                return
            if not pool.crew.ready and not pool.crew.coming and pool.crew.wake():
                coming += pool.workers
        if not coming and not any(pool.crew.ready or pool.crew.ending for pool in self._pools):
            unpaid = next(filter(None, (pool.crew.unpaid for pool in self._pools)), "")
            why = next(filter(None, (pool.crew.why for pool in self._pools)), "no pilot can be had")
            while self._waiting:
                self._refuse(UnaffordableError(unpaid) if unpaid else RuntimeError(why))

    def _refuse(self, why: Exception) -> None:
        turn = self._waiting.popleft()
        if not turn.done():
            turn.set_exception(why)
