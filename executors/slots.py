"""Which waiting task may start: first come, first served, counted in ranks. Pure, no Parsl."""

from __future__ import annotations

from dataclasses import dataclass

AHEAD = 32
"""Most tasks handed to an executor beyond its workers, so that short ones need not wait for us."""
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

    @property
    def ahead(self) -> int:
        """How many tasks may be handed over beyond the free workers."""
        return min(AHEAD, int(_LOOKAHEAD / max(self.usual, 1e-6)))

    def take(self, ranks: int) -> bool:
        """Take slots for a task of ``ranks``; False (and nothing taken) when it has to wait."""
        limit = self.workers if ranks > 1 or self.wide else self.workers + self.ahead
        if self.used + ranks > limit:
            return False
        self.used += ranks
        self.wide += ranks > 1
        return True

    def give(self, ranks: int, seconds: float) -> None:
        """Give back the slots of a task that took ``seconds``."""
        self.used -= ranks
        self.wide -= ranks > 1
        self.usual += 0.25 * (seconds - self.usual)
