"""Whether the driver of a run lives, as its lock file shows it; nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from campaign.lock import LEASE, Holder, lives_here, seen


class Sign(StrEnum):
    """What the lock says of its holder."""

    ALIVE = "alive"
    SILENT = "silent"  # on another host, and without a heartbeat for a whole lease
    ABSENT = "absent"  # there is no lock
    DEAD = "dead"  # its process on this host has ended


class Pulse:
    """Looks again and again, so that the clock of another machine need not be right.

    ``silence`` is for how many seconds nothing was heard of a driver on another host, or there
    was no lock: at first as the clocks have it, from the second look on as ours alone has it.
    """

    def __init__(
        self,
        directory: Path,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._wall = wall
        self._looked = False
        self._beat: tuple[Holder, float] | None = None
        self._since = 0.0  # when the last beat was, by our clock
        self.silence = 0.0

    def look(self) -> Sign:
        """What there is to see now."""
        found, now = seen(self._directory), self._clock()
        if not self._looked or found != self._beat:
            age = 0.0 if found is None or self._looked else max(0.0, self._wall() - found[1])
            self._looked, self._beat, self._since = True, found, now - age
        self.silence = now - self._since
        if found is None:
            return Sign.ABSENT
        here = lives_here(found[0])
        if here is None:
            return Sign.ALIVE if self.silence < LEASE else Sign.SILENT
        return Sign.ALIVE if here else Sign.DEAD
