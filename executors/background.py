"""Blocking work beside the event loop, in threads that cannot keep the interpreter from ending."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_LOOK = 0.2  # seconds between two looks at what may have broken meanwhile
_tasks: set[asyncio.Task[Any]] = set()


async def in_thread(function: Callable[..., _T], *args: object) -> _T:
    """The result of ``function(*args)``; when this is cancelled the thread goes on."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[_T] = loop.create_future()

    def deliver(setter: Callable[[Any], None], value: object) -> None:
        if not outcome.done():
            setter(value)

    def body() -> None:
        try:
            value = function(*args)
        except BaseException as error:
            report: tuple[Callable[[Any], None], object] = (outcome.set_exception, error)
        else:
            report = (outcome.set_result, value)
        try:
            loop.call_soon_threadsafe(deliver, *report)
        except RuntimeError:  # the loop is closed
            return

    threading.Thread(target=body, name="executors", daemon=True).start()
    return await outcome


def has_ended(thread: threading.Thread) -> bool:
    """Whether it ran; one that is about to be started is not alive either."""
    try:
        thread.join(0)
    except RuntimeError:  # not started yet
        return False
    return not thread.is_alive()


async def start_in_thread(
    function: Callable[[], _T], broken: Callable[[], str | None], seconds: float
) -> _T:
    """As :func:`in_thread`, but given up once ``broken`` says why, or after ``seconds``.

    Parsl waits two minutes for an interchange that died while it started.
    Raises ``RuntimeError``, and what ``function`` raises.
    """
    loop = asyncio.get_running_loop()
    work = loop.create_task(in_thread(function))
    deadline = loop.time() + seconds
    while not (await asyncio.wait({work}, timeout=_LOOK))[0]:
        why = broken() or (f"not within {seconds:g} s" if loop.time() > deadline else None)
        if why is not None:
            work.cancel()
            raise RuntimeError(why)
    return work.result()


def go_on(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine nobody waits for; asyncio itself keeps only a weak hold of it."""
    task = asyncio.get_running_loop().create_task(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    """From a thread: call ``function`` in the loop, unless that is closed: then nobody waits."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
