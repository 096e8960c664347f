"""What a person sees while a campaign runs: a live view on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.lines import line, number, point_text
from campaign.observations import best
from campaign.state import CampaignState
from campaign.summary import allocation_table, budget_table, disposition_table

LAST = 8  # decisions shown in the live view
PERIOD = 0.25  # seconds between two pictures at the least


class View(Protocol):
    """Shows events as they reach the ledger."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def __call__(self, entry: Entry, state: CampaignState) -> None: ...


class LineView:
    """One line per decision, with the time; to be read by a person or by grep."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, entry: Entry, state: CampaignState) -> None:
        for text in _stamped(entry, state):
            self._console.print(text, soft_wrap=True, markup=False, emoji=False, highlight=False)


class LiveView:
    """Round, slots, tasks, node-hours, the best so far, the time left, and the last decisions."""

    def __init__(self, console: Console, config: CampaignConfig) -> None:
        self._config = config
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last: deque[str] = deque(maxlen=LAST)
        self._state: CampaignState | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._began = time.time()
        self._earlier = 0  # rounds of earlier jobs: this one's clock says nothing about them

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._live.stop()

    def __call__(self, entry: Entry, state: CampaignState) -> None:
        if self._state is None:
            self._earlier = _ended(state)
        self._state = state
        self._last.extend(_stamped(entry, state))
        if self._timer is None:
            self._draw()

    def _draw(self) -> None:
        # From the loop's own thread and at its own pace: the state never changes under it.
        assert self._state is not None
        self._live.update(self._picture(self._state), refresh=True)
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._draw)

    def _picture(self, state: CampaignState) -> RenderableType:
        return Group(
            self._headline(state),
            disposition_table(state.dispositions()),
            budget_table(self._config, state),
            *([allocation] if (allocation := allocation_table(state)) else []),
            *(Text(text, overflow="ellipsis", no_wrap=True, style="dim") for text in self._last),
        )

    def _headline(self, state: CampaignState) -> Table:
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        running = sum(task.open is not None for task in state.tasks.values())
        now = min(len(state.rounds), self._config.rounds)
        grid.add_row(self._config.name, f"round {now} of {self._config.rounds}")
        grid.add_row("running", f"{running} tasks")
        if state.signalled is not None:
            grid.add_row("stopping", f"{state.signalled.signal}; once more to stop at once")
        grid.add_row("best", Text(self._best(state)))
        grid.add_row("time", self._time(_ended(state)))
        return grid

    def _best(self, state: CampaignState) -> str:
        found = best(state, self._config)
        if found is None:
            return "nothing yet"
        name = self._config.objective.name
        return f"{name} = {number(found.value)} at {point_text(found.slot.parameters)}"

    def _time(self, done: int) -> str:
        passed = time.time() - self._began
        if done <= self._earlier:
            return f"{clock(passed)} so far"
        left = passed / (done - self._earlier) * (self._config.rounds - done)
        return f"{clock(passed)} so far, at most about {clock(left)} left"


def view(console: Console, config: CampaignConfig) -> View:
    """The live view where somebody can see it, lines where they are kept."""
    return LiveView(console, config) if console.is_terminal else LineView(console)


def _ended(state: CampaignState) -> int:
    return sum(rounds.ended for rounds in state.rounds.values())


def clock(seconds: float) -> str:
    """Seconds as ``1:02:03`` or ``02:03``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


def _stamped(entry: Entry, state: CampaignState) -> list[str]:
    stamp = time.strftime("%H:%M:%S", time.localtime(entry.t))
    return [f"{stamp} {text}" for text in line(entry.event, state).splitlines()]
