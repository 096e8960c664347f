"""The picture of a run fits every terminal, and leaves out what matters least first."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import running
from campaign import events
from campaign.allocationevents import (
    AllocationBegan,
    AllocationQueued,
    AllocationReserved,
)
from campaign.config import CampaignConfig
from campaign.events import Entry
from campaign.picture import Canvas, Scene, clock, fitted, flow, picture
from campaign.progress import Progress
from campaign.state import CampaignState
from odd import ANSWERS, ODD, SPACE

SIZES = [(1, 1), (7, 3), (20, 10), (40, 15), (60, 20), (80, 24), (120, 40), (200, 60)]


def shown(config: CampaignConfig, *history: Any, at: float = 100.0) -> Progress:
    """What is known after some events, a second apart."""
    state = CampaignState()
    progress = Progress(config, state)
    for n, event in enumerate(history):
        entry = Entry(n + 1, at + n, event)
        state.apply(entry)
        progress.apply(entry)
    return progress


def text(progress: Progress, width: int = 100, height: int = 40, **more: Any) -> str:
    how, now = more.pop("how", ("running", "")), more.pop("now", 160.0)
    lines = picture(Scene(progress, now, how), Canvas(width, height, **more))
    return "\n".join(line.plain.rstrip() for line in lines)


CREATED = events.RunCreated(
    version=1, simgate="0", name="bowl", mode="campaign", folder="/", config={}
)
STARTED = events.JobStarted(job=2, host="node7", pid=1, python="", numpy="", slurm="4711")
ROUND = events.RoundStarted(round=1)
ASKED = events.Asked(round=1, generation=1, slots=[0, 1, 2])


def task(slot: int, name: str = "simulation") -> events.TaskStarted:
    return events.TaskStarted(
        task=name, candidate=f"c{slot}", attempt=1, round=1, slot=slot, nodes=1, reserved=0.25
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignConfig, list[Entry]]:
    config = running.config(parameters=SPACE, budgets={"node_hours": 1, "generations": 9})
    directory = tmp_path_factory.mktemp("run")
    ran = running.run(directory, config, proposer=running.agent(*ANSWERS))
    return config, ran.entries


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_every_prefix_of_a_run_fits_every_terminal(
    history: tuple[CampaignConfig, list[Entry]], size: tuple[int, int], ascii_only: bool
) -> None:
    config, entries = history
    state = CampaignState()
    progress = Progress(config, state)
    for entry in entries:
        state.apply(entry)
        progress.apply(entry)
        lines = picture(Scene(progress, time.time()), Canvas(*size, ascii_only))
        assert 1 <= len(lines) <= size[1]
        assert all(line.cell_len <= size[0] for line in lines)
        assert all(line.no_wrap for line in lines)
        if ascii_only:
            assert all(line.plain.isascii() for line in lines)
    assert len(entries) > 30


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (200, 60)])
def test_from_60_by_20_on_everything_is_told(
    history: tuple[CampaignConfig, list[Entry]], size: tuple[int, int]
) -> None:
    config, entries = history
    state = CampaignState()
    progress = Progress(config, state)
    for entry in entries[:-3]:
        state.apply(entry)
        progress.apply(entry)
    said = text(progress, *size)
    assert "bowl · round 2 of 2 · running" in said
    assert "▓ 2 repaired  ▒ 4 fallback" in said or "▓ 2 repaired  ▒ 3 fallback" in said
    assert " left" in said
    assert "default (threads)" in said
    assert "best  loss = " in said
    assert f"kind={ODD}" in said or size[0] < 200
    assert said.splitlines()[-1].startswith(time.strftime("%H:", time.localtime(entries[-4].t)))
    assert "▁" in said, "the plot"


def test_what_matters_least_is_left_out_first(
    history: tuple[CampaignConfig, list[Entry]],
) -> None:
    config, entries = history
    state = CampaignState()
    progress = Progress(config, state)
    for entry in entries:
        state.apply(entry)
        progress.apply(entry)
    marks = {
        "gaps": "\n\n",
        "plot": "▁",
        "executors": "default (threads)",
        "budgets": "generations",
        "slots": "slots to come",
        "decisions": "job 1 done",
        "best": "best  ",
        "job": "job 1 on h",
        "name": "bowl",
    }
    last: dict[str, int] = {}  # the least height at which each is still there
    for height in range(40, 0, -1):
        said = text(progress, 100, height)
        last |= {name: height for name, mark in marks.items() if mark in said}
    assert sorted(marks, key=lambda name: -last[name]) == list(marks)


def test_the_head_tells_the_job_the_time_and_what_may_be_left() -> None:
    first = [CREATED, STARTED, ROUND, events.RoundEnded(round=1)]
    said = text(shown(running.config(rounds=3), *first)).splitlines()
    assert said[0] == "bowl · round 1 of 3 · running"
    assert said[1] == "job 2 on node7, Slurm job 4711 · 00:59 so far · at most about 01:58 left"


def test_the_head_tells_the_mode_and_that_a_run_is_stopping() -> None:
    surrogate = events.RunCreated(
        version=1, simgate="0", name="bowl", mode="surrogate_only", folder="/", config={}
    )
    signalled = events.Signalled(signal="SIGTERM", grace=30.0)
    said = text(shown(running.config(), surrogate, STARTED, signalled)).splitlines()[0]
    assert said == (
        "bowl · round 1 of 2 · surrogate only · stopping: SIGTERM; once more to stop at once"
    )


def test_a_run_that_is_over_has_its_time_and_its_reason() -> None:
    ended = events.JobEnded(job=2, outcome="stopped", reason="SIGTERM received")
    progress = shown(running.config(), CREATED, STARTED, ended)
    said = text(progress, how=("stopped", "SIGTERM received"), now=9e9).splitlines()
    assert said[0].endswith("stopped: SIGTERM received")
    assert said[1] == "job 2 on node7, Slurm job 4711 · 00:01 long"


def test_what_is_spent_reserved_and_left_is_told_per_cap() -> None:
    budgets = {"node_hours": 2, "tokens": 1_000_000}
    config = running.config(budgets=budgets)
    called = events.Called(round=1, generation=1, attempt=1, tokens=20_000)
    ended = events.TaskEnded(
        task="simulation", candidate="c0", attempt=1, status="done", spent=0.125, seconds=1.0,
        value={"loss": 1.0},
    )  # fmt: skip
    first = [CREATED, STARTED, ASKED, called, task(0), task(1), ended]
    said = text(shown(config, *first), 120)
    assert "0.125 spent, 0.25 reserved, 1.625 left" in said
    assert "0 spent, 20,000 reserved, 980,000 left" in said
    assert "██▒▒▒▒▒···" in said
    narrow = text(shown(config, *first), 46)
    assert "0.125+0.25 of 2, 1.62 left" in narrow
    assert "0+20k of 1M, 980k left" in narrow


def test_workers_that_are_busy_and_tasks_that_wait_for_one() -> None:
    first = [CREATED, STARTED, *(task(slot) for slot in range(3))]
    assert "2 of 2 workers busy, 1 waited for" in text(shown(running.config(), *first))
    assert "1 of 2 workers busy" in text(shown(running.config(), *first[:3]))


def pilot(number: int) -> AllocationReserved:
    return AllocationReserved(
        allocation=number, what="pilot", name="p", nodes=4, walltime=3600.0, reserved=4.0
    )


def test_pilot_jobs_that_wait_and_work_are_told_from_the_ledger_alone() -> None:
    executor = {
        "kind": "slurm", "nodes": 4, "workers_per_node": 8, "max_pilots": 2,
        "pilot": {"walltime": "1h"},
    }  # fmt: skip
    config = running.config(executors={"default": executor})
    first = [pilot(1), AllocationQueued(allocation=1, job="81"), pilot(2)]
    second = [AllocationBegan(allocation=1, since=101.0), AllocationQueued(allocation=2, job="82")]
    waiting = text(shown(config, CREATED, STARTED, *first, task(0)))
    assert "Slurm: 1 pilot job in the queue (81)" in waiting
    assert "0 of 0 workers busy, 1 waited for" in waiting
    working = text(shown(config, CREATED, STARTED, *first, *second, task(0)))
    assert "Slurm: 1 pilot job with 4 nodes; 1 pilot job in the queue (82)" in working
    assert "1 of 32 workers busy" in working


def test_the_agent_is_told_with_what_it_is_asked_and_has_used() -> None:
    called = events.Called(round=1, generation=1, attempt=1, tokens=50)
    failed = events.CallFailed(
        round=1, generation=1, attempt=1, reason="HTTP 503\nbusy", tokens=0, wait=2.0
    )
    first = [CREATED, STARTED, ASKED, called]
    assert "agent: asked for r1 g1, 3 candidates, 58 s ago; 1 calls, 0 tokens" in text(
        shown(running.config(), *first)
    )
    said = text(shown(running.config(), *first, failed), 120)
    assert "call 1 failed: HTTP 503 busy; 1 calls, 1 without an answer" in said


def test_a_judge_is_told_in_one_line() -> None:
    votes = [events.VoteAsked(key="k", vote=number, tokens=9) for number in (1, 2)]
    voted = events.Voted(key="k", vote=1, tokens=5, passed=True)
    said = text(shown(running.config(), CREATED, STARTED, *votes, voted))
    assert "judge: 2 calls, 1 of them open" in said


def test_a_target_is_told_with_how_far_off_the_runs_were(tmp_path: Path) -> None:
    objective = {"name": "loss", "target": 0.05, "tolerance": 1e-9}
    config = running.config(objective=objective)
    ran = running.run(tmp_path, config)
    state = CampaignState()
    progress = Progress(config, state)
    for entry in ran.entries:
        state.apply(entry)
        progress.apply(entry)
    said = text(progress, 160)
    assert "; target 0.05 ± 1e-09" in said
    assert "      off by " in said
    assert " after 6 simulations" in said


def test_text_of_others_is_cut_by_cells_and_never_by_markup() -> None:
    wide = fitted(Text("界" * 50), Canvas(21, 5))
    assert wide.cell_len <= 21
    assert wide.plain.endswith("…")
    assert fitted(Text("± [bold]界…"), Canvas(80, 5, ascii=True)).plain == "+- [bold]\\u754c..."


def test_words_flow_onto_lines_of_the_width() -> None:
    lines = flow([Text(word) for word in ("aaa", "bb", "cccc", "d")], 8)
    assert [line.plain for line in lines] == ["aaa  bb", "cccc  d"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "00:00"), (59.6, "01:00"), (3599, "59:59"), (3723, "1:02:03")]
)
def test_a_clock(seconds: float, said: str) -> None:
    assert clock(seconds) == said
