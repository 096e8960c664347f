"""The views show every event of a run and never get in its way."""

from __future__ import annotations

import asyncio
import io
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import running
from campaign.config import CampaignConfig
from campaign.events import Entry, JobEnded
from campaign.state import CampaignState
from campaign.view import Board, LineView, LiveView, View, view
from odd import ANSWERS, ODD, SPACE


def console(width: int = 100, **more: Any) -> Console:
    return Console(file=io.StringIO(), width=width, height=40, **more)


def written(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignConfig, list[Entry]]:
    config = running.config(parameters=SPACE, budgets={"node_hours": 1})
    directory = tmp_path_factory.mktemp("run")
    ran = running.run(directory, config, proposer=running.agent(*ANSWERS))
    return config, ran.entries


def feed(shown: View, entries: list[Entry]) -> CampaignState:
    state = CampaignState()
    for entry in entries:
        state.apply(entry)
        shown(entry, state)
    return state


@pytest.mark.parametrize("width", [20, 60, 120])
def test_the_live_view_draws_every_prefix_of_a_run(
    history: tuple[CampaignConfig, list[Entry]], width: int
) -> None:
    config, entries = history
    shown = console(width, force_terminal=True, no_color=True)
    state = CampaignState()
    with Board(shown, config) as board:
        for entry in entries:
            state.apply(entry)
            board.take(entry, state)
            board.show(board.lines(time.time()))
    said = written(shown)
    if width == 120:
        assert "round 2 of 2" in said
        assert "FALLBACK, filled by the surrogate" in said
        assert ODD in said
        assert "loss = " in said


def test_the_live_view_draws_at_its_own_pace(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    shown = console(force_terminal=True)

    async def main() -> None:
        with LiveView(shown, config) as live:
            feed(live, entries)

    asyncio.run(main())
    assert written(shown).count("so far") <= 2  # one picture, whatever the number of events


def test_the_live_view_follows_the_clock_where_nothing_happens(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    shown = console(force_terminal=True)
    drawn = asyncio.Event()
    times = iter(range(10**9))  # each look at the clock is a second later

    def now() -> float:
        if written(shown).count("so far") >= 3:
            drawn.set()
        return entries[0].t + next(times)

    async def main() -> None:
        with LiveView(shown, config, now) as live:
            feed(live, entries[:3])
            await asyncio.wait_for(drawn.wait(), 60)

    asyncio.run(main())


@contextmanager
def stuck() -> Iterator[tuple[int, int]]:
    """A pipe with nobody at its other end, and no room in it."""
    there, here = os.pipe()
    os.set_blocking(here, False)
    try:
        while os.write(here, b" " * 65536):
            pass
    except BlockingIOError:
        os.set_blocking(here, True)
    yield there, here
    os.close(there)


def test_a_terminal_that_takes_nothing_more_holds_up_no_run(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    with stuck() as (there, here), os.fdopen(here, "w") as file:
        shown = Console(file=io.StringIO(), width=80, height=24, force_terminal=True)
        live = LiveView(shown, config)

        async def main() -> CampaignState:
            state = CampaignState()
            for entry in entries:
                state.apply(entry)
                live(entry, state)
                await asyncio.sleep(0)
            return state

        with live:
            shown.file = file
            state = asyncio.run(asyncio.wait_for(main(), 60))
            assert state.job_ended is not None, "the run went on to its end"
            read = threading.Thread(target=lambda: [*iter(lambda: os.read(there, 65536), b"")])
            read.start()
        file.close()
        read.join(60)
        assert not read.is_alive()


@pytest.mark.parametrize("width", [60, 120])
def test_elsewhere_each_decision_is_one_line_with_its_time(
    history: tuple[CampaignConfig, list[Entry]], width: int
) -> None:
    config, entries = history
    shown = console(width)
    with view(shown, config) as lines:
        assert isinstance(lines, LineView)
        state = feed(lines, entries)
    said = written(shown).splitlines()
    assert all(line[2] == line[5] == ":" and line[8] == " " for line in said)
    assert sum("FALLBACK" in line for line in said) == state.dispositions()["fallback"]
    assert any(f"kind={ODD}" in line for line in said)


def test_a_pipe_that_nobody_reads_any_more_ends_the_lines_and_stays_quiet(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    there, here = os.pipe()
    os.close(there)
    with os.fdopen(here, "w") as file:
        shown = Console(file=file, width=80)
        with view(shown, config) as lines, pytest.raises(SystemExit):
            feed(lines, entries)
        file.write("what is left goes nowhere")


def test_what_a_file_cannot_hold_is_escaped(
    history: tuple[CampaignConfig, list[Entry]], tmp_path: Path
) -> None:
    config, _ = history
    with (tmp_path / "log").open("w", encoding="ascii") as file:
        ended = JobEnded(job=1, outcome="stopped", reason="läuft ab")
        feed(view(Console(file=file), config), [Entry(1, 0.0, ended)])
    assert (tmp_path / "log").read_text().endswith("job 1 stopped: l\\xe4uft ab\n")


@pytest.mark.parametrize("term", ["xterm-256color", "dumb", "unknown"])
def test_a_terminal_that_cannot_move_its_cursor_gets_lines(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    shown = view(console(force_terminal=True), running.config())
    assert isinstance(shown, LiveView if term.startswith("xterm") else LineView)
    assert isinstance(view(console(force_terminal=False), running.config()), LineView)


def test_no_color_means_no_color(
    history: tuple[CampaignConfig, list[Entry]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    config, entries = history
    shown = console(force_terminal=True)

    async def main() -> None:
        with LiveView(shown, config) as live:
            feed(live, entries)

    asyncio.run(main())
    assert "\x1b[3" not in written(shown).replace("\x1b[3m", "").replace("\x1b[3;", "")


def test_a_window_of_another_size_is_wiped_and_drawn_anew(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    shown = console(100, force_terminal=True)
    state = CampaignState()
    with Board(shown, config) as board:
        for entry in entries[:9]:
            state.apply(entry)
            board.take(entry, state)
        board.show(board.lines(time.time()))
        assert "\x1b[2J" not in written(shown)
        shown.width = 50
        board.show(board.lines(time.time()))
    assert "\x1b[2J" in written(shown)
    assert all(line.cell_len <= 50 for line in board.lines(time.time()))
