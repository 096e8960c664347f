"""A driver whose loop does not turn, since code of the user's own computes: told, and left.

A check runs in the driver and has no deadline. While one computes nothing is done, and no signal
is heard by the loop; Python's own handlers still run between two instructions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

PATIENCE = 30.0
"""Seconds without a turn of the loop, after which it is told where the driver is."""
DEAF = 2.0
"""Seconds a signal may be left unheard before a further one ends the driver at once."""
RESUMABLE = 75
_log = logging.getLogger(__name__)


def place(frame: FrameType | None) -> str:
    """Where a thread is, in words."""
    if frame is None:
        return "something"
    return f"{frame.f_code.co_filename}, line {frame.f_lineno}, in {frame.f_code.co_name}"


def _leave(said: str) -> NoReturn:
    """End at once, as kill -9 would: nothing of this process can be waited for."""
    os.write(2, f"simgate: {said}\n".encode(errors="backslashreplace"))
    os._exit(RESUMABLE)


@dataclass(slots=True)
class HoldUp:
    """Looks whether the loop turns. Enter it on the thread of the loop, the main one."""

    patience: float = PATIENCE
    deaf: float = DEAF
    tell: Callable[[str], None] = _log.warning
    leave: Callable[[str], object] = _leave
    _since: float | None = None  # when the first signal came that the loop has not heard

    def arrived(self, number: int, frame: FrameType | None) -> None:
        """A signal came. Python's handler: it runs while the loop is held up, too."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        elif now - self._since >= self.deaf:
            name = signal.Signals(number).name
            self.leave(f"{name} again, while {place(frame)} holds up the driver; ended at once")

    def heard(self) -> None:
        """The loop heard of a signal."""
        self._since = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        over = threading.Event()
        loop = asyncio.get_running_loop()
        held = threading.get_ident()
        thread = threading.Thread(
            target=self._watch, args=(loop, held, over), name="holdup", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, held: int, over: threading.Event) -> None:
        while not over.wait(self.patience):
            turned = threading.Event()
            try:
                loop.call_soon_threadsafe(turned.set)
            except RuntimeError:  # closed
                return
            if turned.wait(self.patience) or over.is_set():
                continue
            where = place(sys._current_frames().get(held))
            self.tell(
                f"{where}, has held up the run for {self.patience:g} s: nothing else goes on "
                "meanwhile; end it by two signals"
            )
            while not turned.wait(self.patience) and not over.is_set():
                pass
