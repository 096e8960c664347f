"""Candidates as rows of the unit cube, and back.

A row has one coordinate per parameter in the order of the space. A number lies at its place in
its range (on its scale); an int owns an interval of equal length on that scale; choice ``i`` of
``k`` owns ``[i/k, (i+1)/k)``. ``features`` maps rows to what a kernel measures distances in.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space, Value

Array = NDArray[np.float64]
Key: TypeAlias = "tuple[float | int, ...]"

_MANY = 10**15  # levels of a float that count as endless
PLACES = 10  # two candidates that agree to this many decimal places are one


class Encoder:
    """One space; rows are ``(n, parameters)``, features ``(n, columns)``, all in ``[0, 1]``."""

    def __init__(self, space: Space) -> None:
        self.columns = tuple(_column(name, parameter) for name, parameter in space.items())
        self.groups = np.repeat(  # the parameter each feature column belongs to
            np.arange(len(self.columns)), [column.width for column in self.columns]
        )
        self.smooth = np.array([isinstance(column, _Float) for column in self.columns])
        self.numeric = np.array([not isinstance(column, _Choice) for column in self.columns])
        self.size = math.prod(column.levels for column in self.columns)

    def rows(self, points: Sequence[Point]) -> Array:
        """``(len(points), parameters)``; ``ValueError`` names a parameter that is missing, not
        of the space, or of a value that cannot be placed."""
        table = np.empty((len(points), len(self.columns)))
        for row, point in zip(table, points, strict=True):
            if len(point) != len(self.columns):
                self._check_names(point)
            for place, column in enumerate(self.columns):
                if column.name not in point:
                    self._check_names(point)
                row[place] = column.unit(point[column.name])
        return table

    def points(self, rows: Array) -> tuple[Point, ...]:
        """Candidates within bounds, ints whole, choices from the list."""
        return tuple(
            {column.name: column.value(u) for column, u in zip(self.columns, row, strict=True)}
            for row in rows.tolist()
        )

    def snapped(self, rows: Array) -> Array:
        """The rows of the candidates that ``points`` would make of them (floats as they are)."""
        out = rows.copy()
        for place, column in enumerate(self.columns):
            if not isinstance(column, _Float):
                out[:, place] = column.snap(rows[:, place])
        return out

    def features(self, rows: Array) -> Array:
        """Numbers as they are; a choice as one-hot whose distance to any other choice is 1."""
        if self.numeric.all():
            return rows
        return np.column_stack(
            [column.features(rows[:, place]) for place, column in enumerate(self.columns)]
        )

    def key(self, point: Point) -> Key:
        """Equal for two candidates exactly when they count as the same."""
        return tuple(column.key(point[column.name]) for column in self.columns)

    def all_rows(self) -> Array:
        """Every candidate of a finite space, ``(size, parameters)``."""
        grid = itertools.product(*(column.all_units() for column in self.columns))
        return np.array(list(grid), dtype=np.float64)

    def neighbours(self, row: Array) -> Array:
        """``row`` first, then it with one int a step away or one choice replaced."""
        near = [row]
        for place, column in enumerate(self.columns):
            for unit in column.near(float(row[place])):
                other = row.copy()
                other[place] = unit
                near.append(other)
        return np.array(near)

    def _check_names(self, point: Point) -> None:
        known = [column.name for column in self.columns]
        if sorted(point) != sorted(known):
            raise ValueError(
                f"candidate: parameters {sorted(point)!r}; the space has {sorted(known)!r}"
            )


class _Float:
    width = 1

    def __init__(self, name: str, parameter: FloatParameter) -> None:
        self.name, self.min, self.max = name, parameter.min, parameter.max
        self.log = parameter.scale == "log"
        self.low, self.high = self._scaled(self.min), self._scaled(self.max)
        # Ten significant digits of the range: what is proposed reads well and ends in bounds.
        self.digits = 10 - math.ceil(math.log10(self.max - self.min))
        steps = (self.max - self.min) * 10**PLACES
        self.first = math.ceil(round(self.min * 10**PLACES, 3)) if steps < _MANY else 0
        self.levels = max(1, math.floor(steps + 1e-3) + 1) if steps < _MANY else _MANY

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.log else value

    def unit(self, value: Value) -> float:
        number = _number(self.name, value)
        inside = min(max(number, self.min), self.max)
        return (self._scaled(inside) - self.low) / (self.high - self.low)

    def value(self, unit: float) -> float:
        scaled = self.low + unit * (self.high - self.low)
        exact = float(f"{math.exp(scaled):.10g}") if self.log else round(scaled, self.digits)
        return min(max(exact, self.min), self.max)

    def features(self, units: Array) -> Array:
        return units

    def snap(self, units: Array) -> Array:
        return units

    def key(self, value: Value) -> float:
        return round(float(value), PLACES) + 0.0

    def all_units(self) -> list[float]:
        steps = range(self.first, self.first + self.levels)
        return sorted({self.unit(step / 10**PLACES) for step in steps})

    def near(self, unit: float) -> list[float]:  # noqa: ARG002
        return []


class _Int:
    width = 1

    def __init__(self, name: str, parameter: IntParameter) -> None:
        self.name, self.min, self.max = name, parameter.min, parameter.max
        self.log = parameter.scale == "log"
        self.low, self.high = self._scaled(self.min - 0.5), self._scaled(self.max + 0.5)
        self.levels = self.max - self.min + 1

    def _scaled(self, value: float) -> float:
        return math.log(value) if self.log else float(value)

    def unit(self, value: Value) -> float:
        number = min(max(_number(self.name, value), self.min), self.max)
        return (self._scaled(number) - self.low) / (self.high - self.low)

    def value(self, unit: float) -> int:
        scaled = self.low + unit * (self.high - self.low)
        return min(max(round(math.exp(scaled) if self.log else scaled), self.min), self.max)

    def features(self, units: Array) -> Array:
        return units

    def snap(self, units: Array) -> Array:
        span = self.high - self.low
        scaled = self.low + units * span
        whole = np.clip(np.rint(np.exp(scaled) if self.log else scaled), self.min, self.max)
        return ((np.log(whole) if self.log else whole) - self.low) / span

    def key(self, value: Value) -> float:
        return round(float(value), PLACES)

    def all_units(self) -> list[float]:
        return [self.unit(value) for value in range(self.min, self.max + 1)]

    def near(self, unit: float) -> list[float]:
        value = self.value(unit)
        return [self.unit(v) for v in (value - 1, value + 1) if self.min <= v <= self.max]


class _Choice:
    def __init__(self, name: str, parameter: CategoricalParameter) -> None:
        self.name, self.choices = name, parameter.choices
        self.width = self.levels = len(self.choices)
        self.index = {repr(choice): place for place, choice in enumerate(self.choices)}

    def _place(self, value: Value) -> int:
        place = self.index.get(repr(value))
        if place is None and value in self.choices:
            place = self.choices.index(value)
        if place is None:
            raise ValueError(f"{self.name}: {value!r}; choices are {list(self.choices)!r}")
        return place

    def unit(self, value: Value) -> float:
        return (self._place(value) + 0.5) / self.levels

    def value(self, unit: float) -> Value:
        return self.choices[min(int(unit * self.levels), self.levels - 1)]

    def snap(self, units: Array) -> Array:
        return (np.minimum(np.floor(units * self.levels), self.levels - 1) + 0.5) / self.levels

    def features(self, units: Array) -> Array:
        place = np.minimum((units * self.levels).astype(np.int64), self.levels - 1)
        return np.eye(self.levels)[place] / math.sqrt(2.0)

    def key(self, value: Value) -> int:
        return self._place(value)

    def all_units(self) -> list[float]:
        return [(place + 0.5) / self.levels for place in range(self.levels)]

    def near(self, unit: float) -> list[float]:
        here = min(int(unit * self.levels), self.levels - 1)
        return [u for place, u in enumerate(self.all_units()) if place != here]


def _column(
    name: str, parameter: FloatParameter | IntParameter | CategoricalParameter
) -> _Float | _Int | _Choice:
    if isinstance(parameter, CategoricalParameter):
        return _Choice(name, parameter)
    if isinstance(parameter, IntParameter):
        return _Int(name, parameter)
    return _Float(name, parameter)


def _number(name: str, value: Value) -> float:
    if isinstance(value, str) or not math.isfinite(value):
        raise ValueError(f"{name}: {value!r}; a finite number is needed")
    return float(value)
