"""How a report writes numbers, times and colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import campaign.report
from campaign.report.units import believed, span

CSS = (Path(campaign.report.__file__).parent / "page.css").read_text(encoding="utf-8")
LEAST = 4.5  # the contrast that WCAG 2 wants of text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.27, "0.27 s"), (41.2, "41 s"), (200.0, "3 min 20 s"), (7500.0, "2 h 05 min")],
)
def test_a_duration_is_said_in_the_units_it_needs(seconds: float, said: str) -> None:
    assert span(seconds) == said


@pytest.mark.parametrize(
    ("belief", "said"),
    [
        ((0.553421, 0.543004, 0.563838), ("0.553", "0.543", "0.564")),
        ((-0.00942048, -0.00944305, -0.0093979), ("-0.009420", "-0.009443", "-0.009398")),
        ((1234.56, 1200.0, 1269.12), ("1,235", "1,200", "1,269")),
        ((123456.7, 100000.0, 146913.4), ("123457", "100000", "146913")),
        ((2.5, 2.5, 2.5), ("2.5", "2.5", "2.5")),
    ],
)
def test_an_interval_has_the_digits_that_mean_something(
    belief: tuple[float, float, float], said: tuple[str, str, str]
) -> None:
    assert believed(*belief) == said


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    line = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * line[0] + 0.7152 * line[1] + 0.0722 * line[2]


@pytest.mark.parametrize("scheme", re.findall(r":root \{([^}]*)\}", CSS)[:2])
def test_every_colour_of_text_can_be_read_on_every_ground(scheme: str) -> None:
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", scheme))
    for ground in ("paper", "panel"):
        for name in ("ink", "faint", "good", "bad", "warm", "cool"):
            low, high = sorted((luminance(colours[ground]), luminance(colours[name])))
            assert (high + 0.05) / (low + 0.05) >= LEAST, (ground, name)
