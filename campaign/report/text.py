"""A report for a terminal, and as rows of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from campaign.lines import number, plain, point_text
from campaign.report.figures import Figures, as_data
from campaign.report.gate import HOW


def tables(found: Figures) -> RenderableType:
    """Result, the gate and what it saved, and what the tasks took."""
    return Group(
        _result(found), _steps(found), _checks(found), Text(HOW, style="dim"), _tasks(found)
    )


def rows(found: Figures) -> Iterator[tuple[str, str, str, Any]]:
    """Every figure by itself: its table, its row there, its name, and the number or word."""
    data = as_data(found)
    named = {"funnel": "stage", "checks": "check", "hosts": "host", "tasks": "task"}
    for table, value in data.items():
        if isinstance(value, dict):
            yield from _mapping(table, value)
        elif isinstance(value, list):
            for place, one in enumerate(value):
                name = str(one[named[table]]) if table in named else str(place + 1)
                yield from ((table, name, key, cell) for key, cell in _flat(one, named.get(table)))
        else:
            yield table, "", "", value


def _mapping(table: str, value: dict[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    for name, one in value.items():
        if isinstance(one, dict):
            yield from ((table, name, key, cell) for key, cell in _flat(one))
        else:
            yield table, "", name, _cell(one)


def _flat(one: dict[str, Any], without: str | None = None) -> Iterator[tuple[str, Any]]:
    for key, value in one.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", cell) for inner, cell in value.items())
        elif key != without:
            yield key, _cell(value)


def _cell(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def _result(found: Figures) -> Text:
    name = found.config.objective.name
    best, optimum = found.result.best, found.result.optimum
    if best is None:
        return Text("Result: no simulation has succeeded")
    where = f"r{best.round} s{best.slot.slot}, {best.slot.disposition}"
    said = [f"Best: {name} = {number(best.value)} at {point_text(best.slot.parameters)} ({where})"]
    if optimum is None:
        said.append(f"Surrogate: {found.result.unsure}")
    else:
        span = f"{number(optimum.low)} to {number(optimum.high)} with 95 %"
        said.append(
            f"Surrogate's optimum: {number(optimum.mean)}, {span}, at {point_text(optimum.point)}"
        )
    return Text("\n".join(said))


def _steps(found: Figures) -> Table:
    table = _table("The gate", "step")
    _numbers(table, "entered", "rejected", "could not tell", "later repaired", "later filled")
    for one in found.gate.stages:
        stopped = one.stopped
        cells = (
            *(one.entered, stopped.rejected, stopped.not_checked),
            *(stopped.repaired, stopped.filled),
        )
        table.add_row(Text(plain(one.name)), *map(str, cells))
    return table


def _checks(found: Figures) -> Table:
    table = _table("Node-hours each check saved", "check")
    _numbers(table, "rejected first", "credited", "each", "would have cost", "check cost", "saved")
    for one in found.gate.savings:
        each = f"{one.basis.node_hours:.4g}" + ("" if one.basis.n else " (worst case)")
        spent = (f"{hours:.4g}" for hours in (one.would_have_cost, one.cost, one.saved))
        counts = (str(one.stopped.rejected), str(one.credited))
        table.add_row(Text(plain(one.check)), *counts, each, *spent)
    gate = found.gate
    whole = (f"{hours:.4g}" for hours in (gate.would_have_cost, gate.cost, gate.saved))
    table.add_row("all", "", "", "", *whole, style="bold")
    return table


def _tasks(found: Figures) -> Table:
    table = _table("Tasks", "task")
    _numbers(table, "candidates", "tries", "answered", "rejected", "node-hours", "median s")
    table.add_column("without an answer", overflow="fold")
    for one in found.work.kinds:
        counts = map(str, (one.candidates, one.tries, one.done, one.rejected))
        median = "" if one.median is None else f"{one.median:.4g}"
        lost = ", ".join(f"{count} {status}" for status, count in sorted(one.failed.items()))
        table.add_row(one.task, *counts, f"{one.node_hours:.4g}", median, lost)
    return table


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first, overflow="fold")
    return table


def _numbers(table: Table, *names: str) -> None:
    for name in names:
        table.add_column(name, justify="right", overflow="fold")  # never cut
