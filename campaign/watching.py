"""Following a run from its ledger and its lock alone; reads, never writes.

What Slurm has of the run is not asked for: that costs its controller a question at every look.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from rich.console import Console

from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.ledger import NAME, LedgerError, NoLedgerError, opened
from campaign.model import JobOutcome
from campaign.picture import RUNNING, stamped
from campaign.pulse import Pulse, Sign
from campaign.state import CampaignState, fold
from campaign.status import config_of, stands
from campaign.tail import LedgerRewrittenError, Tail
from campaign.view import PERIOD, Board, LineView, is_live
from campaign.waiting import Queue, standing

POLL = 0.5  # seconds between two looks
QUIET = 3  # looks at a driver that has died, nothing new having come, until that is believed
ABSENCE = 90.0  # seconds without a lock; a network file system may not show a new one before
PATIENCE = 20  # looks in a row at a ledger that the file system refuses to read
_FIRST = 1 << 16  # bytes read of a ledger to see what run it is
_NOT_ASKED = Queue(unknown="simgate status asks Slurm")

How: TypeAlias = tuple[str, str]
"""How a run stands: ``running``, ``queued``, ``done``, ``failed`` or ``stopped``, and why."""


class Shown(Protocol):
    """Where a run that is watched is shown."""

    def take(self, entry: Entry, state: CampaignState) -> None:
        """An event; ``state`` has it already."""

    def refresh(self, how: How) -> None:
        """All there is has been taken; the run stands like this."""


class Follower:
    """What is known of the run in ``directory``; ``state`` grows with every :meth:`catch_up`.

    With ``once`` there is no second look: a driver that cannot be seen is dead.
    """

    def __init__(self, directory: Path, pulse: Pulse | None = None, *, once: bool = False) -> None:
        self.state = CampaignState()
        self._tail = Tail(directory)
        self._pulse = pulse or Pulse(directory)
        self._once = once
        self._sign = Sign.ALIVE
        self._quiet = 0  # looks in a row that brought nothing new
        self._refused = 0  # looks in a row that the file system refused

    def catch_up(self, take: Callable[[Entry, CampaignState], None]) -> How:
        """Take everything that is new, and tell how the run stands."""
        self._sign = self._pulse.look()  # first: what a driver wrote before it left is then read
        self._quiet += 1
        while entries := self._read():
            self._quiet = 0
            for entry in entries:
                self.state.apply(entry)
                take(entry, self.state)
        return self._stands()

    def is_over(self, how: How) -> bool:
        """Whether the run has come to an end, and no driver is there that may go on with it."""
        ended = how[0] in (JobOutcome.FAILED, JobOutcome.STOPPED)
        return how[0] == JobOutcome.DONE or (ended and self._sign is not Sign.ALIVE)

    def _stands(self) -> How:
        state, sign = self.state, self._sign
        if state.job_ended is None and not state.slurm.ahead:
            if sign is Sign.SILENT:
                silence = f"{self._pulse.silence:.0f} s without a sign of life from its driver"
                return RUNNING, f"{silence}, it seems dead"
            if not self._believed(sign):
                return RUNNING, ""
        return standing(stands(state, alive=sign is Sign.ALIVE), state, _NOT_ASKED)

    def _believed(self, sign: Sign) -> bool:
        if self._once or sign is Sign.ALIVE:
            return True
        if sign is Sign.DEAD:
            return self._quiet >= QUIET
        return self._pulse.silence >= ABSENCE and self._quiet >= QUIET

    def _read(self) -> Sequence[Entry]:
        try:
            entries = self._tail.read()
        except LedgerError as error:
            self._refused += 1
            passes = isinstance(error.__cause__, OSError) and not isinstance(error, NoLedgerError)
            if not passes or self._refused > PATIENCE:
                raise
            return ()
        self._refused = 0
        return entries


class Lines:
    """One line per decision, and one where the run stands differently without one."""

    def __init__(self, console: Console) -> None:
        self._view = LineView(console)
        self._told = (RUNNING, False)

    def take(self, entry: Entry, state: CampaignState) -> None:
        self._view(entry, state)

    def refresh(self, how: How) -> None:
        now = (how[0], bool(how[1]))  # the reason may hold a number that grows
        if now != self._told:
            told = f"the run is {how[0]}" + (f": {how[1]}" if how[1] else "")
            self._view.write(f"{stamped(time.time(), told)}\n")
        self._told = now


class Screen:
    """The live view."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._drawn = 0.0

    def take(self, entry: Entry, state: CampaignState) -> None:
        self._board.take(entry, state)
        if time.monotonic() - self._drawn >= PERIOD:  # a long ledger takes a while to read
            self.refresh((RUNNING, "its ledger is being read"))

    def refresh(self, how: How) -> None:
        self._board.show(self._board.lines(time.time(), how))
        self._drawn = time.monotonic()


def awaited(directory: Path, missing: Callable[[], None]) -> CampaignConfig:
    """What the run in ``directory`` was created with; ``missing`` is called while it was not."""
    while True:
        with contextlib.suppress(NoLedgerError):
            if entries := Tail(directory, _FIRST).read():
                return config_of(fold(entries), directory)
        missing()


def watch(
    directory: Path, console: Console, missing: Callable[[], None], pause: Callable[[], None]
) -> tuple[CampaignState, How]:
    """Show a run until it has ended. ``pause`` is called between two looks.

    Raises ``LedgerError`` for a ledger that does not read.
    """
    while True:
        config = awaited(directory, missing)
        follower = Follower(directory)
        try:
            if not is_live(console):
                return follower.state, until_over(follower, Lines(console), pause)
            with Board(console, config) as board:
                return follower.state, until_over(follower, Screen(board), pause)
        except LedgerRewrittenError as error:
            LineView(console).write(f"{error}; from the beginning:\n")


def until_over(follower: Follower, shown: Shown, pause: Callable[[], None]) -> How:
    """Show what a follower finds, until its run is over."""
    while True:
        how = follower.catch_up(shown.take)
        if follower.is_over(how):
            return how
        shown.refresh(how)
        pause()


def glance(directory: Path, console: Console) -> tuple[How, bool]:
    """Print the picture of a run as it is now; how it stands, and whether it is over.

    Raises ``LedgerError``, where there is no run ``NoLedgerError``.
    """

    def missing() -> None:
        with opened(directory / NAME):  # which says what is missing
            raise NoLedgerError(f"{directory}: its {NAME} is empty")

    board = Board(console, awaited(directory, missing))
    follower = Follower(directory, once=True)
    how = follower.catch_up(board.take)
    for line in board.lines(time.time(), how, height=sys.maxsize):
        console.print(line)
    return how, follower.is_over(how)
