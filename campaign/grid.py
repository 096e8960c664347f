"""Parameters on a grid: whole numbers of steps where a model is asked or the surrogate searches.

A server enforces the bounds of whole numbers and not those of others, and a small model writes
them better. So what passes a boundary of the loop is *wired*: a stepped parameter is its number
of steps there, and its value everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from campaign.space import FloatParameter, IntParameter, Point, Space, Value, grid_ends
from checks.domain import whole_steps


def wired(space: Space) -> Space:
    """The space with every stepped parameter as its number of steps, and all others as they are.

    The unit says what one step is: ``steps of 0.001 mm``.
    """
    steps = _steps(space)
    return {
        name: _counted(parameter, steps[name])
        if isinstance(parameter, FloatParameter) and name in steps
        else parameter
        for name, parameter in space.items()
    }


def decode(space: Space, candidate: object) -> object:
    """A wired candidate with the values it stands for.

    Untrusted: what is no number stays as it is, a number that is not whole gives a value off the
    grid, and one beyond any float is infinite.
    """
    if not isinstance(candidate, Mapping):
        return candidate
    steps = _steps(space)
    return {
        name: _value(found, steps[name]) if name in steps else found
        for name, found in candidate.items()
    }


def encode(space: Space, point: Point) -> dict[str, Value]:
    """A candidate as it is wired; a value off the grid is no whole number of steps."""
    steps = _steps(space)
    return {
        name: _count(value, steps[name]) if name in steps else value
        for name, value in point.items()
    }


def is_stepped(space: Space) -> bool:
    """Whether wiring changes anything."""
    return bool(_steps(space))


def _steps(space: Space) -> dict[str, float]:
    return {
        name: parameter.step
        for name, parameter in space.items()
        if isinstance(parameter, FloatParameter) and parameter.step is not None
    }


def _counted(parameter: FloatParameter, step: float) -> IntParameter:
    low, high = grid_ends(parameter.min, parameter.max, step)
    return IntParameter(
        type="int",
        min=low,
        max=high,
        scale=parameter.scale,
        unit=f"steps of {step!r} {parameter.unit}".rstrip(),
        description=parameter.description,
        expectations=parameter.expectations,
    )


def _value(count: object, step: float) -> object:
    if isinstance(count, bool) or not isinstance(count, int | float) or not _is_finite(count):
        return count
    exact = Fraction(repr(step))  # the decimal that was written, not the float it became
    if isinstance(count, float):
        exact, count = exact * Fraction(repr(count)), 1
    try:
        return count * exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if count * exact > 0 else -math.inf


def _count(value: Value, step: float) -> Value:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        return value
    whole = whole_steps(value, step)
    if whole is not None:
        return whole
    exact = Fraction(value) if isinstance(value, int) else Fraction(repr(value))
    try:
        return float(exact / Fraction(repr(step)))
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _is_finite(number: float) -> bool:
    return isinstance(number, int) or math.isfinite(number)
