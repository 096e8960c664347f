"""The types of rules that compare a candidate with others: of its batch, or of the past.

The first of two that are too alike keeps its place; the later one is at fault. A NaN is like
nothing. A candidate by itself, without a past, is always distinct.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from checks.ieee import as_float
from checks.ruletype import Param, Params, RuleType, at_least, whole
from checks.values import is_number, kind_of, shown, text_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from checks.ruletype import Doubles

    Digests: TypeAlias = NDArray[np.uint64]

Key: TypeAlias = tuple[Hashable, ...]
Keys: TypeAlias = Sequence[Key | object]  # of each candidate; what is no tuple is like nothing
Bounds: TypeAlias = Mapping[str, tuple[float, float]]

_DECIMALS = 10
_FAR = 1e100  # times its range away from it, a value has no distance from others


@dataclass(frozen=True, slots=True)
class Across:
    """A rule's question about many records.

    ``key`` is what of one record's values is compared, ``None`` when it is like nothing.
    ``repeats`` names for each place at fault the earlier place, or -1 for the past; the number it
    is given of the first places keep theirs, whatever they are like. ``detail`` words that.
    ``unfit`` is the detail when values cannot be compared at all, else ``""``.

    ``rounded`` is there where places are alike that round to the same, which saves keys.
    """

    key: Callable[[Sequence[object]], Key | None]
    repeats: Callable[[Keys, Set[Key], int], dict[int, int]]
    detail: Callable[[int], str]
    unfit: Callable[[Sequence[object]], str] | None = None
    rounded: Rounded | None = None
    past: bool = False  # compares with the past


class Rounded:
    """Values as they are to some decimals."""

    def __init__(self, params: Params) -> None:
        self.places: int = params["decimals"]
        self._scale = 10.0**self.places

    def key(self, values: Sequence[object]) -> Key | None:
        try:
            return tuple(self._finite(values))
        except (OverflowError, ValueError):
            parts = tuple(_part(value, self._scale) for value in values)
            return None if any(part != part for part in parts) else parts

    def apart(self, columns: Iterable[Sequence[object]]) -> bool:
        """Whether one field by itself tells every place from every other."""
        try:
            for values in columns:
                if len(set(self._finite(values))) == len(values):
                    return True
        except (OverflowError, ValueError):
            pass
        return False

    def digests(self, columns: Sequence[Doubles]) -> Digests | None:
        """A number for each place, equal for equal places; ``None``: something is not finite."""
        import numpy as np

        rounded = self._all(columns)
        if not np.isfinite(rounded).all():
            return None
        mixed = np.zeros(len(columns[0]), dtype=np.uint64)
        for bits in rounded.view(np.uint64):
            mixed = (mixed ^ bits) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
        return mixed

    def firsts(self, columns: Sequence[Doubles]) -> list[int]:
        """Of each place the first place that is alike, itself where none is before it."""
        import numpy as np

        rounded = self._all(columns)
        order = np.lexsort(rounded)  # stable: of places that are alike the first stays the first
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = np.any([row[order[1:]] != row[order[:-1]] for row in rounded], axis=0)
        firsts = np.empty_like(order)
        firsts[order] = order[np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))]
        found: list[int] = firsts.tolist()
        return found

    def _all(self, columns: Sequence[Doubles]) -> Doubles:
        """The columns, rounded, one a row; no zero is negative."""
        import numpy as np

        with np.errstate(all="ignore"):
            rounded: Doubles = np.rint(np.array(columns) * self._scale)
        return rounded + 0.0

    def _finite(self, values: Sequence[object]) -> list[Hashable]:
        """What tells each value apart, fast. Raises for a double that is not finite."""
        scale = self._scale
        return [round(v * scale) if type(v) is float else _part(v, scale) for v in values]


def _part(value: object, scale: float) -> Hashable:
    """What tells a value apart; no two kinds share one."""
    if is_number(value):
        double = as_float(value)
        assert double is not None
        return value if not math.isfinite(double * scale) else round(double * scale)
    if isinstance(value, str):
        return value
    return ("null",) if value is None else (kind_of(value), text_of(value))


def _repeated(keys: Keys, _: Set[Key], kept: int) -> dict[int, int]:
    first: dict[object, int] = {}
    found = {}
    for place, key in enumerate(keys):
        if type(key) is tuple:
            earlier = first.setdefault(key, place)
            if earlier != place and place >= kept:
                found[place] = earlier
    return found


def _distinct(params: Params) -> Across:
    rounded = Rounded(params)
    return Across(
        key=rounded.key,
        repeats=_repeated,
        detail=lambda earlier: (
            f"repeats candidate {earlier} of the batch to {rounded.places} decimals; "
            "expected another one"
        ),
        rounded=rounded,
    )


def _distinct_from_history(params: Params) -> Across:
    rounded = Rounded(params)

    def repeats(keys: Keys, past: Set[Key], kept: int) -> dict[int, int]:
        new = enumerate(keys[kept:], kept)
        return {place: -1 for place, key in new if type(key) is tuple and key in past}

    return Across(
        key=rounded.key,
        repeats=repeats,
        detail=lambda _: (
            f"was tried before, to {rounded.places} decimals; expected a new candidate"
        ),
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
        repeats=lambda keys, _, kept: _crowded(keys, distance, kept),
        detail=lambda earlier: (
            f"closer than {distance!r} to candidate {earlier} of the batch, "
            "in the unit cube; expected more distance"
        ),
    )


def _crowded(keys: Keys, distance: float, kept: int) -> dict[int, int]:
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
        if places[later] >= kept and places[earlier] not in found:
            found.setdefault(places[later], places[earlier])
    return found


def _ends(value: object) -> object:
    """mapping of field to `[low, high]`"""
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
