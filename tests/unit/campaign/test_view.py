"""The views show every event of a run and never get in its way."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import running
from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.state import CampaignState
from campaign.view import LineView, LiveView, clock, view

ODD = "[/red][bold]:smile:"
SPACE = {
    "x": {"type": "float", "min": 0.0, "max": 1.0},
    "y": {"type": "float", "min": 0.0, "max": 1.0},
    "kind": {"type": "categorical", "choices": [ODD, "b"]},
}
ANSWERS = [
    [{"x": 0.9, "y": 0.1, "kind": ODD}, {"x": 0.1, "y": 7.0, "kind": ODD}, None],
    [{"x": 0.2, "y": 0.1, "kind": ODD}, {"x": 0.3, "y": 0.5, "kind": "b"}, {"kind": 5}],
]


def console(width: int = 100, **more: Any) -> Console:
    return Console(file=io.StringIO(), width=width, height=40, **more)


def written(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def history(directory: Path) -> tuple[CampaignConfig, list[Entry]]:
    config = running.config(parameters=SPACE, budgets={"node_hours": 1})
    ran = running.run(directory, config, proposer=running.agent(*ANSWERS))
    return config, ran.entries


@pytest.mark.parametrize("width", [20, 60, 120])
def test_the_live_view_draws_every_prefix_of_a_run(tmp_path: Path, width: int) -> None:
    config, entries = history(tmp_path)
    shown = console(width, force_terminal=True)

    async def main() -> None:
        state = CampaignState()
        with LiveView(shown, config) as live:
            for entry in entries:
                state.apply(entry)
                live(entry, state)
                live._draw()  # as its timer does

    asyncio.run(main())
    said = written(shown)
    if width == 120:
        assert "round 2 of 2" in said
        assert "FALLBACK, filled by the surrogate" in said
        assert ODD in said
        assert "loss = " in said


def test_the_live_view_draws_at_its_own_pace_and_stops(tmp_path: Path) -> None:
    config, entries = history(tmp_path)
    shown = console(force_terminal=True)

    async def main() -> int:
        state = CampaignState()
        with LiveView(shown, config) as live:
            for entry in entries:
                state.apply(entry)
                live(entry, state)
            return written(shown).count("round")

    assert asyncio.run(main()) <= 2  # one picture, whatever the number of events


@pytest.mark.parametrize("width", [60, 120])
def test_elsewhere_each_decision_is_one_line_with_its_time(tmp_path: Path, width: int) -> None:
    config, entries = history(tmp_path)
    shown = console(width)
    state = CampaignState()
    with view(shown, config) as lines:
        assert isinstance(lines, LineView)
        for entry in entries:
            state.apply(entry)
            lines(entry, state)
    said = written(shown).splitlines()
    assert all(line[2] == line[5] == ":" and line[8] == " " for line in said)
    assert sum("FALLBACK" in line for line in said) == state.dispositions()["fallback"]
    assert any(f"kind={ODD}" in line for line in said)


def test_a_terminal_gets_the_live_view() -> None:
    assert isinstance(view(console(force_terminal=True), running.config()), LiveView)
    assert isinstance(view(console(force_terminal=False), running.config()), LineView)


def test_no_color_means_no_color(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    config, entries = history(tmp_path)
    shown = console(force_terminal=True)

    async def main() -> None:
        state = CampaignState()
        with LiveView(shown, config) as live:
            for entry in entries:
                state.apply(entry)
                live(entry, state)

    asyncio.run(main())
    assert "\x1b[3" not in written(shown).replace("\x1b[3m", "").replace("\x1b[3;", "")


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "00:00"), (59.6, "01:00"), (3599, "59:59"), (3723, "1:02:03")]
)
def test_a_clock(seconds: float, said: str) -> None:
    assert clock(seconds) == said
