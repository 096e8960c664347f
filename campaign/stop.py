"""Stopping: asked for once, obeyed everywhere, told apart by how the run may go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

from campaign.clock import Clock
from campaign.model import JobOutcome

_T = TypeVar("_T")


class StoppedError(Exception):
    """Nothing new may start; why is in :class:`Stop`."""


class Stop:
    """The first request counts. After it nothing starts; what runs may finish within the grace.

    ``outcome`` says what the request makes of the job: ``STOPPED`` can be resumed, ``DONE`` is a
    cap that ended the campaign, ``FAILED`` a policy that did. ``clock`` tells when the job ends.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.reason = ""
        self.outcome = JobOutcome.STOPPED
        self.requested = asyncio.Event()
        self._signals = 0
        self._over = False  # the grace
        self._running: set[asyncio.Task[object]] = set()

    def request(self, reason: str, outcome: JobOutcome = JobOutcome.STOPPED) -> None:
        if not self.requested.is_set():
            self.reason, self.outcome = reason, outcome
            self.requested.set()

    @property
    def signalled(self) -> bool:
        """Whether a signal asked for it, at first or later."""
        return self._signals > 0

    def check(self) -> None:
        """Raise :class:`StoppedError` once a stop was requested."""
        if self.requested.is_set():
            raise StoppedError(self.reason)

    async def pause(self, seconds: float) -> None:
        """Wait so long, or until a stop is requested."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.requested.wait()

    def signal(self, name: str, grace: float) -> None:
        """A signal arrived: the first leaves running tasks ``grace`` seconds, the second none."""
        self._signals += 1
        if self._signals > 1:
            self.cut()
            return
        self.request(f"{name} received")
        asyncio.get_running_loop().call_later(grace, self.cut)

    @contextlib.contextmanager
    def cancels(self, task: asyncio.Task[object]) -> Iterator[None]:
        """While inside, ``task`` is cancelled when the grace of a stop is over."""
        self._running.add(task)
        if self._over:
            task.cancel()
        try:
            yield
        finally:
            self._running.discard(task)

    async def until_cut(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """The task that did ``work``, ended; one that is ``cancelled()`` was cut by the stop.

        When whoever waits for it is cancelled, the work is cancelled too and has ended by then.
        """
        task = asyncio.ensure_future(work)
        try:
            with self.cancels(task):
                await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        return task

    def cut(self) -> None:
        """The grace is over: cancel what runs."""
        self._over = True
        for task in self._running:
            task.cancel()
