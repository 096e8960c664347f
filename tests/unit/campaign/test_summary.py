"""What a person reads at the end."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import running
from campaign.summary import gate_table, summary
from executors.base import TaskResult, TaskStatus
from square import GOOD

TARGET = {"name": "loss", "target": 0.0, "tolerance": 0.01}


def text(directory: Path, width: int = 120, *answers: Any, **changes: Any) -> str:
    functions = changes.pop("functions", running.FUNCTIONS)
    config = running.config(rounds=1, **changes)
    ran = running.run(
        directory, config, proposer=running.agent(*(answers or [GOOD])), functions=functions
    )
    console = Console(width=width, file=io.StringIO())
    how = (ran.ending.outcome.value, ran.ending.reason)
    console.print(summary(config, ran.state, directory, how), crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 120])
def test_result_dispositions_budgets_and_place_are_there_at_any_width(
    tmp_path: Path, width: int
) -> None:
    said = text(tmp_path, width, budgets={"node_hours": 2})
    assert "bowl: done (all 1 rounds are done)" in said
    assert "loss = " in said
    assert "x=0.3 y=0.6" in said
    for name in ("accepted", "repaired", "fallback", "returned", "tombstone", "node_hours"):
        assert name in said
    assert said.splitlines()[-1] == f"Everything is in {tmp_path}"  # unbroken, to be copied
    assert all(len(line) <= width for line in said.splitlines()[:-1])


def test_no_figure_is_cut_on_a_narrow_terminal(tmp_path: Path) -> None:
    said = text(tmp_path, 40, budgets={"node_hours": 2, "verifier_node_hours": 1})
    assert "…" not in said
    assert all(len(line) <= 40 for line in said.splitlines()[:-1])


def test_a_fallback_is_shown_as_one(tmp_path: Path) -> None:
    said = text(tmp_path, 120, [{"x": 2.0}, *GOOD[:2]])
    (row,) = [line for line in said.splitlines() if "filled by the surrogate" in line]
    assert "fallback" in row
    assert " 1 " in row
    result = next(line for line in said.splitlines() if line.startswith("Result"))
    assert result.count("slot") == 1


def test_what_the_gate_rejected_is_counted_by_what_rejected_it(tmp_path: Path) -> None:
    wrong = [{"x": 0.9, "y": 0.1}, {"x": 0.1, "y": 7.0}, {"x": 0.1, "y": 0.2}]
    said = text(tmp_path, 120, wrong, [GOOD[1]])
    rows = {line.split()[1] for line in said.splitlines() if line.startswith("│")}
    assert {"stable", "bounds"} <= rows
    assert "What the gate rejected" in said


def test_a_target_says_whether_it_was_reached(tmp_path: Path) -> None:
    assert "target 0 ± 0.01 reached" in text(tmp_path, objective=TARGET)
    far = [{"x": 0.0, "y": 0.0}, {"x": 0.0, "y": 0.1}, {"x": 0.1, "y": 0.0}]
    (tmp_path / "far").mkdir()
    assert "NOT reached" in text(tmp_path / "far", 120, far, objective=TARGET)


def test_without_a_result_it_says_so_and_incomplete_validation_is_never_hidden(
    tmp_path: Path,
) -> None:
    crash = running.FUNCTIONS | {"tests:bowl": lambda _: TaskResult(TaskStatus.ERROR, reason="no")}
    assert "no simulation has succeeded" in text(tmp_path, functions=crash)
    other = tmp_path / "other"
    other.mkdir()
    unsure = running.FUNCTIONS | {
        "tests:rejects": lambda _: TaskResult(TaskStatus.ERROR, reason="no")
    }
    assert "validation incomplete: stable" in text(other, functions=unsure)


def test_nothing_that_others_wrote_is_markup(tmp_path: Path) -> None:
    odd = "[/red]:smile:[bold]"
    space = {"x": {"type": "categorical", "choices": [odd, "plain"]},
             "y": {"type": "float", "min": 0.0, "max": 1.0}}  # fmt: skip
    functions = {"tests:bowl": lambda c: {"loss": c["y"]}, "tests:rejects": running.passes}
    points = [{"x": odd, "y": y / 10} for y in range(3)]
    said = text(tmp_path, 120, points, parameters=space, functions=functions)
    assert f"x={odd}" in said


def test_a_run_that_rejected_nothing_has_no_gate_table(tmp_path: Path) -> None:
    ran = running.run(tmp_path, running.config(rounds=1), proposer=running.agent(GOOD))
    assert gate_table(ran.state) is None
