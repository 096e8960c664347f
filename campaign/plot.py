"""Bars and small plots out of characters; everything here is a function of its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from campaign.model import Disposition

WIDE_RANGE = 100.0  # values that span more are drawn by their logarithm


@dataclass(frozen=True, slots=True)
class Ink:
    """The characters that things are drawn with; each has its own, so that no colour is needed."""

    spent: str
    reserved: str
    left: str
    ramp: str  # from low to high
    dot: str  # between two things that are told
    slots: dict[Disposition, str]


BLOCKS = Ink(
    "█",
    "▒",
    "·",
    "▁▂▃▄▅▆▇█",
    "·",
    {
        Disposition.ACCEPTED: "█",
        Disposition.REPAIRED: "▓",
        Disposition.FALLBACK: "▒",
        Disposition.RETURNED: "!",
        Disposition.TOMBSTONE: "x",
    },
)
ASCII = Ink(
    "#",
    "=",
    ".",
    "_.-=+*#",
    "|",
    {
        Disposition.ACCEPTED: "a",
        Disposition.REPAIRED: "r",
        Disposition.FALLBACK: "f",
        Disposition.RETURNED: "!",
        Disposition.TOMBSTONE: "x",
    },
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a bar: how much, drawn with what."""

    amount: float
    mark: str
    style: str = ""


def bar(parts: Sequence[Part], width: int) -> Text:
    """The parts side by side, ``width`` cells in all; what is not nothing is seen if it fits."""
    cells = _shares([max(0.0, part.amount) for part in parts], width)
    text = Text(no_wrap=True)
    for part, count in zip(parts, cells, strict=True):
        text.append(part.mark * count, part.style)
    return text


def _shares(amounts: Sequence[float], width: int) -> list[int]:
    """Whole cells in proportion, by the largest remainder, at least one for each that is not 0."""
    total = math.fsum(amounts)
    if total <= 0 or width <= 0:
        return [0] * len(amounts)
    exact = [amount / total * width for amount in amounts]
    cells = [
        max(math.floor(one), int(amount > 0)) for one, amount in zip(exact, amounts, strict=True)
    ]
    while sum(cells) < width:
        cells[min(range(len(cells)), key=lambda at: cells[at] - exact[at])] += 1
    while sum(cells) > width:
        most = max(range(len(cells)), key=lambda at: (cells[at] > 1, cells[at] - exact[at]))
        cells[most] -= 1
    return cells


def sample(values: Sequence[float], width: int) -> list[float]:
    """At most ``width`` of the values, evenly spaced; the last one always, if there is any."""
    count = len(values)
    if count <= width:
        return list(values)
    return [values[(place + 1) * count // width - 1] for place in range(width)]


def is_wide(values: Sequence[float]) -> bool:
    """Whether values are better drawn by their logarithm."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > WIDE_RANGE


def plot(values: Sequence[float], width: int, height: int, ramp: str) -> list[str]:
    """Columns of the sampled values, in ``height`` rows from the top; the least is still seen."""
    shown = sample(values, width)
    if is_wide(shown):
        shown = [math.log(value) for value in shown]
    low, high = min(shown, default=0.0), max(shown, default=0.0)
    steps = height * len(ramp)
    span = high - low
    levels = [
        1 + round((value / span - low / span) * (steps - 1)) if span > 0 else 1 for value in shown
    ]
    return [
        "".join(_cell(level - below * len(ramp), ramp) for level in levels)
        for below in reversed(range(height))
    ]


def _cell(level: int, ramp: str) -> str:
    return " " if level <= 0 else ramp[min(level, len(ramp)) - 1]
