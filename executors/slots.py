"""Which waiting task may start: first come, first served, counted in ranks. Pure, no Parsl."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

AHEAD = 32
"""Most tasks handed to an executor beyond its workers, so that short ones need not wait for us."""
PASSES = 16
"""Times a task that waits for several nodes is passed by narrower ones."""
_LOOKAHEAD = 0.05
"""Seconds of work worth handing ahead; what takes longer gains nothing from it."""


@dataclass(slots=True)
class Slots:
    """``workers`` slots of which a task of R ranks takes R.

    Tasks of one rank may be handed over ahead of a free worker when tasks have been short: the
    round trip through the driver then costs more than the task. While a task of several ranks
    is in flight nothing is handed ahead, and one that waits lets nobody pass: it cannot starve.
    """

    workers: int
    used: int = 0
    wide: int = 0
    usual: float = 1.0  # seconds a task has taken of late; a long task until shown otherwise
    whole: bool = False  # slots are nodes: nothing is handed ahead, and narrow tasks may pass

    @property
    def ahead(self) -> int:
        """How many tasks may be handed over beyond the free workers."""
        return min(AHEAD, int(_LOOKAHEAD / max(self.usual, 1e-6)))

    def take(self, ranks: int) -> bool:
        """Take slots for a task of ``ranks``; False (and nothing taken) when it has to wait."""
        if not self._fits(ranks):
            return False
        self.used += ranks
        self.wide += ranks > 1
        return True

    def _fits(self, ranks: int) -> bool:
        alone = ranks > 1 or self.wide or self.whole
        limit = self.workers if alone else self.workers + self.ahead
        return self.used + ranks <= limit

    def choose(self, waiting: Sequence[int], passed: int) -> int | None:
        """Which of the waiting tasks, of so many slots each, is next; None while none may start.

        Where slots are nodes, the widest that fits goes first, which leaves the fewest nodes
        idle; but once the oldest was passed ``PASSES`` times, nobody passes it any more.
        """
        if not waiting:
            return None
        if not self.whole or passed >= PASSES:
            return 0 if self._fits(waiting[0]) else None
        free = self.workers - self.used
        fitting = [at for at, wanted in enumerate(waiting) if wanted <= free]
        return max(fitting, key=lambda at: (waiting[at], -at), default=None)

    def give(self, ranks: int, seconds: float) -> None:
        """Give back the slots of a task that took ``seconds``."""
        self.used -= ranks
        self.wide -= ranks > 1
        self.usual += 0.25 * (seconds - self.usual)
