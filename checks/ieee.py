"""Arithmetic of IEEE 754 doubles, which never raises: 1/0 is infinite, 0/0 and sqrt(-1) are NaN."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from checks.values import is_number


def as_float(value: object) -> float | None:
    """A number as a double, beyond the largest one infinite; ``None`` for anything else."""
    if not is_number(value):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def divide(a: float, b: float) -> float:
    if b:
        return a / b
    if a != a or b != b or not a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1, b)


def power(a: float, b: float) -> float:
    odd = b % 2 == 1 if math.isfinite(b) else False
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        if a:  # a root of a negative number
            return math.nan
        return math.copysign(math.inf, a) if odd else math.inf


def square_root(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan


def logarithm(a: float) -> float:
    if a > 0:
        return math.log(a)
    return -math.inf if a == 0 else math.nan


def exponential(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": divide, "**": power,
}  # fmt: skip
FUNCTION: dict[str, Callable[[float], float]] = {
    "abs": abs, "sqrt": square_root, "log": logarithm, "exp": exponential,
}  # fmt: skip
EXTREMES: dict[str, Callable[[list[float]], float]] = {"min": min, "max": max}
