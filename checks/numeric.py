"""The types of rules that read numbers: a name -> its type. A boolean is no number.

Each answers for one value, and for a column of doubles at once with the same operations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from checks.ruletype import Param, Params, RuleType, Test, at_least, flag, number
from checks.values import is_number, kind_of, shown

if TYPE_CHECKING:
    from checks.ruletype import Doubles, Flags

_SLACK = 4 * 2.0**-52  # of a quotient, for its own rounding


def _value_between(params: Params) -> Test:
    low, high = _ends(params)
    above, below = bool(params["exclusive_min"]), bool(params["exclusive_max"])

    def inside(value: float) -> bool:
        return (low < value if above else low <= value) and (
            value < high if below else value <= high
        )

    def column(values: Doubles) -> Flags:
        lower = values > low if above else values >= low
        return lower & (values < high if below else values <= high)

    def detail(value: object) -> str:
        if not is_number(value):
            return f"expected a number, found {kind_of(value)}, {shown(value)}"
        under = value <= low if above else value < low
        if under:
            return f"{shown(value)}, expected {'above' if above else 'at least'} {low!r}"
        return f"{shown(value)}, expected {'below' if below else 'at most'} {high!r}"

    return Test(
        lambda v: is_number(v) and inside(v),
        detail,
        column,
        between=None if above or below else (low, high),
    )


def _ends(params: Params) -> tuple[float, float]:
    low, high = params["min"], params["max"]
    if low is None and high is None:
        raise ValueError("no bound is given; give min or max")
    for end, given in (("min", low), ("max", high)):
        if params[f"exclusive_{end}"] and given is None:
            raise ValueError(f"exclusive_{end} is given without {end}; give {end}, too")
    if low is not None and high is not None:
        exclusive = params["exclusive_min"] or params["exclusive_max"]
        if low > high or (low == high and exclusive):
            raise ValueError(f"min {low} and max {high} leave nothing that can pass")
    return -math.inf if low is None else low, math.inf if high is None else high


def _is_finite(_: Params) -> Test:
    def column(values: Doubles) -> Flags:
        import numpy as np

        return np.isfinite(values)

    def detail(value: object) -> str:
        if is_number(value):
            return f"{shown(value)}, expected a finite number"
        return f"expected a finite number, found {kind_of(value)}, {shown(value)}"

    return Test(lambda v: is_number(v) and (isinstance(v, int) or math.isfinite(v)), detail, column)


def _multiple_of(params: Params) -> Test:
    step, offset, tolerance = (float(params[name]) for name in ("step", "offset", "tolerance"))

    def passes(value: object) -> bool:
        if not is_number(value):
            return False
        try:
            count = (float(value) - offset) / step
        except OverflowError:
            return False
        if not math.isfinite(count):
            return False
        return abs(count - round(count)) <= tolerance + _SLACK * abs(count)

    def column(values: Doubles) -> Flags:
        import numpy as np

        with np.errstate(all="ignore"):
            count = (values - offset) / step
            off = np.abs(count - np.rint(count))
            return np.isfinite(count) & (off <= tolerance + _SLACK * np.abs(count))

    def detail(value: object) -> str:
        if not is_number(value):
            return f"expected a number, found {kind_of(value)}, {shown(value)}"
        start = f"{offset:g} plus " if offset else ""
        return f"{shown(value)}, expected {start}a multiple of {step!r}"

    return Test(passes, detail, column)


TYPES = {
    kind.name: kind
    for kind in (
        RuleType(
            "value_between", _value_between,
            {
                "min": Param(number), "max": Param(number),
                "exclusive_min": Param(flag, default=False),
                "exclusive_max": Param(flag, default=False),
            },
        ),
        RuleType("is_finite", _is_finite),
        RuleType(
            "multiple_of", _multiple_of,
            {
                "step": Param(at_least(0, above=True), required=True),
                "offset": Param(number, default=0.0),
                "tolerance": Param(at_least(0), default=1e-9),
            },
        ),
    )
}  # fmt: skip
