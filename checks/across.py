"""The types of rules that compare a candidate with others: of its batch, or of the past.

The first of two that are too alike keeps its place; the later one is at fault. A NaN is like
nothing. A candidate by itself, without a past, is always distinct.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from checks.ieee import as_float
from checks.ruletype import Param, Params, RuleType, at_least, whole
from checks.values import is_number, kind_of, shown, text_of

if TYPE_CHECKING:
    from checks.ruletype import Doubles

Key: TypeAlias = tuple[Hashable, ...]
Keys: TypeAlias = Sequence[Key | object]  # of each candidate; what is no tuple is like nothing
Bounds: TypeAlias = Mapping[str, tuple[float, float]]

_DECIMALS = 10
_FAR = 1e100  # times its range away from it, a value has no distance from others


@dataclass(frozen=True, slots=True)
class Across:
    """A rule's question about many records.

    ``key`` is what of one record's values is compared, ``None`` when it is like nothing.
    ``repeats`` names for each place at fault the earlier place, or -1 for the past, and ``detail``
    words that. ``unfit`` is the detail when values cannot be compared at all, else ``""``.
    """

    key: Callable[[Sequence[object]], Key | None]
    repeats: Callable[[Keys, Set[Key]], dict[int, int]]
    detail: Callable[[int], str]
    unfit: Callable[[Sequence[object]], str] | None = None
    column: Callable[[list[Doubles]], bool] | None = None  # whether no two places are alike
    past: bool = False  # compares with the past


def _decimals(params: Params) -> tuple[int, Callable[[Sequence[object]], Key | None]]:
    places = params["decimals"]
    scale = 10.0**places

    def key(values: Sequence[object]) -> Key | None:
        try:  # the usual case: finite doubles
            return tuple(
                [round(v * scale) if type(v) is float else _part(v, scale) for v in values]
            )
        except (OverflowError, ValueError):
            pass
        parts = tuple(_part(value, scale) for value in values)
        return None if any(part != part for part in parts) else parts

    return places, key


def _part(value: object, scale: float) -> Hashable:
    """What tells a value apart; no two kinds share one."""
    if is_number(value):
        double = as_float(value)
        assert double is not None
        return value if not math.isfinite(double * scale) else round(double * scale)
    if isinstance(value, str):
        return value
    return ("null",) if value is None else (kind_of(value), text_of(value))


def _repeated(keys: Keys, _: Set[Key]) -> dict[int, int]:
    first: dict[object, int] = {}
    found = {}
    for place, key in enumerate(keys):
        if type(key) is tuple and (earlier := first.setdefault(key, place)) != place:
            found[place] = earlier
    return found


def _distinct(params: Params) -> Across:
    places, key = _decimals(params)
    return Across(
        key=key,
        repeats=_repeated,
        detail=lambda earlier: (
            f"repeats candidate {earlier} of the batch to {places} decimals; expected another one"
        ),
        column=lambda columns: _all_differ(columns, 10.0**places),
    )


def _all_differ(columns: list[Doubles], scale: float) -> bool:
    """Whether no two rows round to the same; may say no when in doubt."""
    import numpy as np

    with np.errstate(all="ignore"):
        mixed = np.zeros(len(columns[0]), dtype=np.uint64)
        for values in columns:
            rounded = np.rint(values * scale)
            if not np.isfinite(rounded).all():
                return False
            mixed = (mixed ^ (rounded + 0.0).view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
    mixed.sort()
    return not bool((mixed[1:] == mixed[:-1]).any())


def _distinct_from_history(params: Params) -> Across:
    places, key = _decimals(params)

    def repeats(keys: Keys, past: Set[Key]) -> dict[int, int]:
        return {place: -1 for place, key in enumerate(keys) if type(key) is tuple and key in past}

    return Across(
        key=key,
        repeats=repeats,
        detail=lambda _: f"was tried before, to {places} decimals; expected a new candidate",
        past=True,
    )


def _min_separation(params: Params) -> Across:
    distance: float = params["distance"]
    bounds: list[tuple[float, float]] = params["bounds"]
    most = math.sqrt(len(bounds))
    if distance > most:
        raise ValueError(f"distance {distance} is above {most:.4g}, the unit cube's diagonal")

    def position(value: object, low: float, high: float) -> float:
        double = as_float(value)
        return math.nan if double is None else (double - low) / (high - low)

    def key(values: Sequence[object]) -> tuple[float, ...]:
        return tuple(position(v, *ends) for v, ends in zip(values, bounds, strict=True))

    def unfit(values: Sequence[object]) -> str:
        for value, place in zip(values, key(values), strict=True):
            if not abs(place) < _FAR:
                return f"{shown(value)}, expected a number in or near its range"
        return ""

    return Across(
        unfit=unfit,
        key=key,
        repeats=lambda keys, _: _crowded(keys, distance),
        detail=lambda earlier: (
            f"closer than {distance!r} to candidate {earlier} of the batch, "
            "in the unit cube; expected more distance"
        ),
    )


def _crowded(keys: Keys, distance: float) -> dict[int, int]:
    """Each place that is too close to an earlier one that kept its place."""
    import numpy as np
    from scipy.spatial import cKDTree

    places = [place for place, key in enumerate(keys) if type(key) is tuple]
    if len(places) < 2:
        return {}
    points = np.array([keys[place] for place in places], dtype=np.float64)
    near = cKDTree(points).query_pairs(distance, output_type="ndarray")
    gaps = np.linalg.norm(points[near[:, 0]] - points[near[:, 1]], axis=1)
    pairs = np.sort(near[gaps < distance], axis=1)
    found: dict[int, int] = {}
    for earlier, later in sorted(pairs.tolist(), key=lambda pair: (pair[1], pair[0])):
        if places[earlier] not in found:
            found.setdefault(places[later], places[earlier])
    return found


def _ends(value: object) -> object:
    if not isinstance(value, Mapping):
        raise ValueError(f"{shown(value)}; it must map each field to its [low, high]")
    found: dict[str, tuple[float, float]] = {}
    for name, ends in value.items():
        fine = isinstance(ends, list | tuple) and len(ends) == 2 and all(map(is_number, ends))
        if not fine or not -math.inf < ends[0] < ends[1] < math.inf:
            raise ValueError(f"{name}: {shown(ends)}; it must be [low, high], low below high")
        found[str(name)] = (float(ends[0]), float(ends[1]))
    return found


_ROUNDING = {"decimals": Param(whole(0, 15), default=_DECIMALS)}

TYPES = {
    kind.name: kind
    for kind in (
        RuleType("distinct", _distinct, _ROUNDING, together=True, each=False),
        RuleType("distinct_from_history", _distinct_from_history, _ROUNDING, together=True,
                 each=False),
        RuleType(
            "min_separation", _min_separation,
            {"distance": Param(at_least(0, above=True), required=True), "bounds": Param(_ends)},
            together=True, each=False,
        ),
    )
}  # fmt: skip
