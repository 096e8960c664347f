"""The plots of a report: Matplotlib to SVG that takes its colours and its font from the page.

Colours are drawn as marks that stand for the page's own (``var(--…)``), so that a plot follows
dark and light. Text stays text. No name of the run is read as mathematics.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from campaign.lines import plain
from campaign.report.chronicle import Curve
from campaign.report.figures import Figures
from campaign.report.funnel import Stage
from campaign.report.nodes import Timeline
from campaign.report.result import Step
from campaign.report.units import amount

_INK, _FAINT, _GRID = "#010101", "#020202", "#030303"
_GOOD, _BAD, _WARM, _COOL = "#040404", "#050505", "#060606", "#070707"
_MARKS = {
    _INK: "currentColor",
    _FAINT: "var(--faint)",
    _GRID: "var(--line)",
    _GOOD: "var(--good)",
    _BAD: "var(--bad)",
    _WARM: "var(--warm)",
    _COOL: "var(--cool)",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "font.size": 10,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _GRID,
    "ytick.color": _GRID,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
}
_WIDTH = 4.4  # inches: as wide as a phone at the size its letters are read at
_POINTS = 1500  # observations that are drawn
_FEW = 100  # observations that can each be looked at
_KNEES = 300  # of a curve
Draw: TypeAlias = Callable[[Figure], None]


def plots(found: Figures) -> dict[str, str]:
    """SVG by name; a plot that would be empty is left out."""
    drawn: dict[str, tuple[float, Draw]] = {}
    if found.steps:
        drawn["convergence"] = 3.0, lambda figure: _convergence(figure, found)
    if found.gate.stages[0].entered:
        height = 1.0 + 0.36 * len(found.gate.stages)
        drawn["funnel"] = height, lambda figure: _funnel(figure, found.gate.stages)
    if curves := _curves(found):
        height = 0.5 + 1.15 * len(curves)
        drawn["budgets"] = height, lambda figure: _budgets(figure, found, curves)
    if len(found.told.tries):
        drawn["nodes"] = 2.6, lambda figure: _nodes(figure, found.nodes.timeline)
    with mpl.rc_context(_STYLE):
        return {name: _svg(name, *one) for name, one in drawn.items()}


def _svg(name: str, height: float, draw: Draw) -> str:
    with mpl.rc_context({"svg.hashsalt": name}):
        figure = Figure(figsize=(_WIDTH, height))
        FigureCanvasSVG(figure)
        draw(figure)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r"#(0[1-7])\1\1\b", lambda mark: _MARKS[mark[0]], text)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{name}"', 1).strip()


def _convergence(figure: Figure, found: Figures) -> None:
    axes: Axes = figure.subplots()
    steps = found.steps
    shown = [steps[place] for place in _evenly(len(steps), _POINTS)]
    x, y = _of(shown)
    few = len(steps) <= _FEW
    size, alpha, above = (22, 1.0, 3) if few else (9, 0.7, 1)
    dots = axes.scatter(x, y, s=size, color=_FAINT, alpha=alpha, linewidths=0, zorder=above)
    dots.set_label("observation")
    bx, by = _of([one for one in steps if one.best])
    end = steps[-1].node_hours
    axes.step([*bx, end], [*by, by[-1]], where="post", color=_COOL, linewidth=1.8, label="best")
    if few:
        axes.scatter(bx, by, s=26, color=_COOL, linewidths=0, zorder=4)
    optimum = found.result.optimum
    if optimum is not None:
        axes.axhspan(optimum.low, optimum.high, color=_WARM, alpha=0.2, linewidth=0)
        axes.axhline(optimum.mean, color=_WARM, linewidth=1.2, label="surrogate's optimum, 95 %")
    objective = found.config.objective
    if objective.target is not None and objective.tolerance is not None:
        low, high = objective.target - objective.tolerance, objective.target + objective.tolerance
        axes.axhspan(low, high, color=_GOOD, alpha=0.2, linewidth=0, label="target")
    _focus(axes, y, by)
    axes.set_xlabel("node-hours of tasks")
    axes.set_ylabel(plain(objective.name))
    axes.set_xlim(left=max(0.0, axes.get_xlim()[0]))
    _ticks(axes)
    figure.legend(loc="outside upper left", ncols=2, handlelength=1.4, columnspacing=1.2)


def _of(steps: Sequence[Step]) -> tuple[list[float], list[float]]:
    return [one.node_hours for one in steps], [one.value for one in steps]


def _focus(axes: Axes, values: Sequence[float], best: Sequence[float]) -> None:
    """Show the way of the best, however wild other values and the first of the best are."""
    shown = list(best)
    while len(shown) > 3 and abs(shown[0] - shown[1]) > 10 * float(np.ptp(shown[1:])):
        del shown[0]
    span = float(np.ptp(shown)) or 1.5 * float(np.subtract(*np.percentile(values, [75, 25])))
    span = max(span, 1e-9 * abs(shown[-1]), 1e-12)
    low, high = min(shown) - 0.35 * span, max(shown) + 0.35 * span
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low), min(top, high))


def _funnel(figure: Figure, stages: Sequence[Stage]) -> None:
    axes: Axes = figure.subplots()
    names = [_clip(one.name) for one in stages]
    places = np.arange(len(stages))
    stopped = np.array([one.stopped.rejected for one in stages])
    untold = np.array([one.stopped.not_checked for one in stages])
    entered = np.array([one.entered for one in stages])
    passed = entered - stopped - untold
    axes.barh(places, passed, color=_COOL, label="went on")
    axes.barh(places, stopped, left=passed, color=_BAD, label="rejected")
    if untold.any():
        axes.barh(places, untold, left=passed + stopped, color=_WARM, label="could not tell")
    room = 0.012 * max(1, int(entered.max()))
    for place, one in enumerate(stages):
        rejected = one.stopped.rejected
        text = f"{one.entered:,}" + (f", {rejected:,} rejected" if rejected else "")
        axes.text(one.entered + room, place, text, va="center", fontsize=9, color=_INK)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, 1.35 * max(1, int(entered.max())))
    axes.set_xlabel("candidates")
    axes.tick_params(length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.0, columnspacing=1.2)


def _clip(name: str) -> str:
    name = plain(name)
    return name if len(name) <= 18 else f"{name[:17]}…"


def _curves(found: Figures) -> dict[str, tuple[float, Curve]]:
    """The caps that have a limit, with the curve of what was spent."""
    caps = ((name, found.config.budgets.cap(name)) for name in found.told.spent)
    return {name: (cap.limit, found.told.spent[name]) for name, cap in caps if cap is not None}


def _budgets(figure: Figure, found: Figures, curves: dict[str, tuple[float, Curve]]) -> None:
    every = figure.subplots(len(curves), 1, sharex=True, squeeze=False)[:, 0]
    start, end = found.state.started_at, found.state.changed_at
    scale, unit = _time_unit(end - start)
    for axes, (name, (limit, curve)) in zip(every, curves.items(), strict=True):
        places = _evenly(len(curve.times), _KNEES)
        x = [(curve.times[place] - start) / scale for place in places]
        y = [max(0.0, limit - curve.values[place]) for place in places]
        x, y = [0.0, *x, (end - start) / scale], [limit, *y, y[-1] if y else limit]
        axes.fill_between(x, y, step="post", color=_COOL, alpha=0.2, linewidth=0)
        axes.step(x, y, where="post", color=_COOL, linewidth=1.5)
        axes.set_ylim(0, 1.05 * limit)
        axes.set_title(f"{name}: {amount(y[-1])} of {amount(limit)} left", loc="left", fontsize=10)
        axes.set_yticks([0, limit / 2, limit], [amount(part * limit) for part in (0, 0.5, 1)])
        axes.tick_params(length=0)
    every[-1].set_xlabel(f"{unit} since the start")


def _nodes(figure: Figure, line: Timeline) -> None:
    axes: Axes = figure.subplots()
    scale, unit = _time_unit(3600 * float(line.edges[-1]))
    edges = line.edges * 3600 / scale
    stacks = [("busy", line.busy, _COOL), ("lost", line.lost, _BAD)]
    if line.allocated:
        stacks.append(("idle", line.idle, _FAINT))
    base = np.zeros(len(line.busy))
    for name, height, colour in stacks:
        bars = axes.stairs(base + height, edges, baseline=base, fill=True, color=colour)
        bars.set_label(name)
        bars.set_alpha(0.35 if name == "idle" else 1.0)
        base = base + height
    axes.set_xlim(0, float(edges[-1]))
    axes.set_ylim(0, 1.08 * max(float(base.max()), 1e-9))
    axes.set_xlabel(f"{unit} since the start")
    axes.set_ylabel("nodes")
    _ticks(axes)
    figure.legend(loc="outside upper left", ncols=3, handlelength=1.0, columnspacing=1.2)


def _ticks(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.tick_params(length=0)


def _time_unit(seconds: float) -> tuple[float, str]:
    """Seconds of the unit a span is told in, and its name."""
    if seconds > 3 * 86400:
        return 86400.0, "days"
    if seconds > 2 * 3600:
        return 3600.0, "hours"
    return (60.0, "minutes") if seconds > 120 else (1.0, "seconds")


def _evenly(count: int, most: int) -> list[int]:
    """Places of at most ``most`` of ``count``, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [place * (count - 1) // (most - 1) for place in range(most)]
