"""Bars and plots fill the cells they are given, and show what is not nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from campaign.plot import ASCII, BLOCKS, Part, bar, plot, sample

AMOUNT = st.floats(0, 1e12, allow_nan=False)
VALUE = st.floats(-1e300, 1e300, allow_nan=False)


@given(st.lists(AMOUNT, min_size=1, max_size=9), st.integers(0, 80))
def test_a_bar_is_as_wide_as_it_is_told(amounts: list[float], width: int) -> None:
    marks = "abcdefghi"
    drawn = bar([Part(one, marks[place]) for place, one in enumerate(amounts)], width).plain
    assert len(drawn) == (width if sum(amounts) > 0 else 0)
    if width >= len(amounts):
        assert set(drawn) == {marks[i] for i, one in enumerate(amounts) if one > 0}


def test_parts_are_in_proportion() -> None:
    drawn = bar([Part(30, "a"), Part(0, "b"), Part(10, "c"), Part(0.001, "d")], 41)
    assert drawn.plain == "a" * 30 + "c" * 10 + "d"


@given(st.lists(VALUE, max_size=300), st.integers(1, 50))
def test_a_sample_keeps_the_order_and_ends_with_the_last(values: list[float], width: int) -> None:
    found = sample(values, width)
    assert len(found) == min(len(values), width)
    assert found[-1:] == values[-1:]
    places = iter(values)
    assert all(one in places for one in found)


@given(st.lists(VALUE, max_size=100), st.integers(1, 60), st.integers(1, 8))
def test_a_plot_has_its_rows_and_every_column_is_seen(
    values: list[float], width: int, height: int
) -> None:
    rows = plot(values, width, height, BLOCKS.ramp)
    assert len(rows) == height
    assert {len(row) for row in rows} == {min(width, len(values))}
    assert " " not in rows[-1]


@pytest.mark.parametrize("ramp", [BLOCKS.ramp, ASCII.ramp])
def test_a_plot_rises_where_its_values_do(ramp: str) -> None:
    (row,) = plot([float(one) for one in range(len(ramp))], 80, 1, ramp)
    assert row == ramp
    top, bottom = plot([0.0, 1.0], 80, 2, ramp)
    assert (top, bottom) == (f" {ramp[-1]}", f"{ramp[0]}{ramp[-1]}")


def test_values_over_many_magnitudes_are_drawn_by_their_logarithm() -> None:
    (row,) = plot([10.0**-place for place in range(8)], 80, 1, BLOCKS.ramp)
    assert row == BLOCKS.ramp[::-1]
    assert math.isfinite(len(plot([5e-324, 1e308], 2, 1, ASCII.ramp)))


def test_without_colour_every_disposition_has_its_own_mark() -> None:
    for ink in (BLOCKS, ASCII):
        marks = [*ink.slots.values(), ink.left]
        assert len(set(marks)) == len(marks) == 6
    assert all(mark.isascii() for mark in (*ASCII.slots.values(), ASCII.ramp))
