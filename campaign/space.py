"""The parameter space: what a candidate is made of, and how its content is named."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue, model_validator

from campaign.fields import Model

Value: TypeAlias = float | int | str | bool
Point: TypeAlias = Mapping[str, Value]


_EXACT = 2**53  # whole numbers up to here are floats without loss
_MOST_STEPS = 10**12  # up to here a value tells its number of steps whatever was rounded
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def _scalar(value: object) -> object:
    """One sentence where a union would report every member that did not match."""
    if not isinstance(value, float | int | str) or value in (float("inf"), float("-inf")):
        raise ValueError(f"found {value!r}; a choice is a finite number, a text or a boolean")
    if value != value:
        raise ValueError("found nan; a choice is a finite number, a text or a boolean")
    if isinstance(value, int) and abs(value) > _EXACT:
        raise ValueError("a whole number beyond ±2^53; a choice stays within it, or is a text")
    return value


Choice: TypeAlias = Annotated[Value, BeforeValidator(_scalar)]


class _Parameter(Model):
    unit: str = Field(default="", description="Unit of the value; shown to the agent.")
    description: str = Field(default="", description="What the parameter is; shown to the agent.")
    expectations: Annotated[tuple[JsonValue, ...], Field(strict=False)] | None = Field(
        default=None,
        description="Rules about this parameter, as in `expect.expectations` but without `field`.",
    )


class FloatParameter(_Parameter):
    """A real number in ``[min, max]``."""

    type: Literal["float"] = Field(description="A real number.")
    min: float = Field(description="Smallest value allowed.")
    max: float = Field(description="Largest value allowed.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="How the range is searched; log needs min > 0."
    )
    step: float | None = Field(
        default=None,
        gt=0,
        description="A value is a multiple of it. The agent is then asked for whole numbers of "
        "steps, which small models write better. Any value by default.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _check_range(self.min, self.max, self.scale)
        if self.step is not None:
            _check_grid(self.min, self.max, self.step)
        return self


class IntParameter(_Parameter):
    """A whole number in ``[min, max]``."""

    type: Literal["int"] = Field(description="A whole number.")
    min: int = Field(ge=-_EXACT, le=_EXACT, description="Smallest value allowed.")
    max: int = Field(ge=-_EXACT, le=_EXACT, description="Largest value allowed.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="How the range is searched; log needs min > 0."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        _check_range(self.min, self.max, self.scale)
        return self


class CategoricalParameter(_Parameter):
    """One of a list of choices without an order."""

    type: Literal["categorical"] = Field(description="One of a list of choices.")
    choices: tuple[Choice, ...] = Field(
        min_length=2, strict=False, description="The values allowed, all different."
    )

    @model_validator(mode="after")
    def _different(self) -> Self:
        # 1, 1.0 and true are equal, so they are one choice.
        seen: set[Value] = set()
        for choice in self.choices:
            if choice in seen:
                raise ValueError(f"choices hold {choice!r} twice; name each choice once")
            seen.add(choice)
        return self


Parameter: TypeAlias = Annotated[
    FloatParameter | IntParameter | CategoricalParameter, Field(discriminator="type")
]
Space: TypeAlias = Mapping[str, FloatParameter | IntParameter | CategoricalParameter]


def content_hash(point: Point) -> str:
    """Name a candidate by its content: 16 hex digits, the same on every machine.

    The order of the parameters does not matter; values must be JSON and finite
    (``ValueError`` otherwise), and ``-0.0`` is ``0.0``.
    """
    plain = {
        name: value + 0 if isinstance(value, float) else value for name, value in point.items()
    }
    return hashlib.sha256(_CANONICAL.encode(plain).encode()).hexdigest()[:16]


def grid_ends(low: float, high: float, step: float) -> tuple[int, int]:
    """The least and the greatest number of steps within ``[low, high]``, ends included."""
    exact = Fraction(repr(step))
    first = math.ceil(Fraction(repr(low)) / exact)
    last = math.floor(Fraction(repr(high)) / exact)
    # One further out may be the very end, once it is rounded to a float.
    with contextlib.suppress(OverflowError):
        first -= float(exact * (first - 1)) >= low
        last += float(exact * (last + 1)) <= high
    return first, last


def grid_size(low: Any, high: Any, step: Any) -> float:
    """How many multiples of ``step`` lie within ``[low, high]``; infinite where that is no grid.

    Takes what a file holds, whatever that is.
    """
    try:
        first, last = grid_ends(float(low), float(high), float(step))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return math.inf
    return last - first + 1 if last > first else math.inf


def _check_grid(low: float, high: float, step: float) -> None:
    first, last = grid_ends(low, high, step)
    if last <= first:
        many = "no multiple" if last < first else "only one multiple"
        raise ValueError(
            f"step {step!r}: {many} of it lies from {low!r} to {high!r}; give a smaller step"
        )
    if max(-first, last) > _MOST_STEPS:
        raise ValueError(
            f"step {step!r}: more than 10^12 steps from 0; give a larger step, or none"
        )


def _check_range(low: float, high: float, scale: str) -> None:
    if not low < high:
        raise ValueError(f"min {low!r} is not below max {high!r}; give min < max")
    if not abs(high - low) < float("inf"):
        raise ValueError(f"min {low!r} to max {high!r} is wider than a float; narrow the range")
    if scale == "log" and low <= 0:
        raise ValueError(f"scale log needs min > 0; found min {low!r}")
