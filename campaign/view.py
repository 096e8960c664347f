"""What a person sees while a campaign runs: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.lines import line
from campaign.outlet import STAND_IN
from campaign.picture import RUNNING, Canvas, Scene, picture, stamped
from campaign.progress import Progress
from campaign.state import CampaignState

PERIOD = 0.25  # seconds between two pictures at the least
IDLE = 1.0  # seconds between two pictures when nothing but the time has changed
_log = logging.getLogger(__name__)


class View(Protocol):
    """Shows events as they reach the ledger."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def __call__(self, entry: Entry, state: CampaignState) -> None: ...


class LineView:
    """One line per decision, with the time; to be read by a person or by grep."""

    def __init__(self, console: Console) -> None:
        self._file = console.file
        self._encoding = console.encoding

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, entry: Entry, state: CampaignState) -> None:
        told = line(entry.event, state)
        if told:
            self.write("".join(f"{stamped(entry.t, text)}\n" for text in told.splitlines()))

    def write(self, text: str) -> None:
        """Write lines at once, and nothing any more when nobody reads them."""
        text = text.encode(self._encoding, STAND_IN).decode(self._encoding, "replace")
        try:
            self._file.write(text)
            self._file.flush()
        except BrokenPipeError:
            # What is left in the buffer would fail once more when Python closes it.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._file.fileno())
            raise SystemExit(1) from None


class Board:
    """A terminal with the picture of a run on it, drawn anew in its place."""

    def __init__(self, console: Console, config: CampaignConfig) -> None:
        self._console = console
        self._config = config
        self._live = Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )
        self._progress: Progress | None = None
        self._size = console.size

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def take(self, entry: Entry, state: CampaignState) -> None:
        """Take an event that ``state`` has in it already."""
        if self._progress is None:
            self._progress = Progress.of(state, self._config)
            self._progress.tell(entry)
        else:
            self._progress.apply(entry)

    def lines(
        self, now: float, how: tuple[str, str] = (RUNNING, ""), height: int | None = None
    ) -> list[Text]:
        """The picture as it is now, as high as the terminal or as ``height``."""
        assert self._progress is not None
        size = self._console.size
        ascii_only = self._console.options.ascii_only
        canvas = Canvas(size.width, size.height if height is None else height, ascii_only)
        return picture(Scene(self._progress, now, how), canvas)

    def show(self, lines: list[Text]) -> None:
        """Draw; on a terminal that has another size now, after wiping it."""
        if self._size != (size := self._console.size):
            self._live.stop()
            self._console.clear()
            self._live.start()
            self._size = size
        self._live.update(Group(*lines), refresh=True)


class LiveView:
    """The picture of the run this process drives, drawn at its own pace.

    A terminal that takes nothing more, as over a connection that hangs, holds up no campaign:
    another thread writes, and while it cannot there is no further picture.
    """

    def __init__(
        self, console: Console, config: CampaignConfig, now: Callable[[], float] = time.time
    ) -> None:
        self._board = Board(console, config)
        self._now = now
        self._pool = ThreadPoolExecutor(1, "view")
        self._drawing: Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._changed = False
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._board.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._pool.shutdown()
        self._board.__exit__()

    def __call__(self, entry: Entry, state: CampaignState) -> None:
        self._board.take(entry, state)
        self._changed = True
        if self._timer is None:
            self._tick()

    def _tick(self) -> None:
        # From the loop's own thread: the state never changes while its picture is made.
        if self._drawing is not None and self._drawing.done() and self._drawing.exception():
            _log.warning("the live view failed: %s", self._drawing.exception())
            return
        now = self._now()
        free = self._drawing is None or self._drawing.done()
        if free and (self._changed or now - self._drawn >= IDLE):
            self._changed, self._drawn = False, now
            self._drawing = self._pool.submit(self._board.show, self._board.lines(now))
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick)


def is_live(console: Console) -> bool:
    """Whether a picture can be drawn in its place: on a terminal that moves its cursor."""
    return console.is_terminal and not console.is_dumb_terminal


def view(console: Console, config: CampaignConfig) -> View:
    """The live view where somebody can see it, lines where they are kept."""
    return LiveView(console, config) if is_live(console) else LineView(console)
