"""Candidates that need no model: those still free, spread over the space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from campaign.space import Point
from campaign.surrogate.encode import Encoder, Key
from campaign.surrogate.sobol import sobol
from campaign.trial import Fits, SpaceExhaustedError

Array = NDArray[np.float64]


@dataclass(slots=True)
class Taken:
    """What is never proposed: the candidates of ``keys``, and what ``fits`` does not let pass."""

    keys: set[Key]
    fits: Fits | None = None

    @property
    def why(self) -> str:
        return "" if self.fits is None else " that the rules let pass"

    def add(self, encoder: Encoder, points: Sequence[Point]) -> None:
        self.keys.update(map(encoder.key, points))

    def free(self, encoder: Encoder, rows: Array) -> NDArray[np.bool_]:
        """Which rows may be proposed: none that is the same as an earlier row."""
        points = encoder.points(rows)
        seen: set[Key] = set()
        free = np.zeros(len(points), dtype=bool)
        for at, point in enumerate(points):
            key = encoder.key(point)
            free[at] = key not in self.keys and key not in seen
            seen.add(key)
        if self.fits is not None and free.any():
            where = np.flatnonzero(free)
            free[where] = self.fits([points[at] for at in where])
        return free


LISTED = 2048  # a space of at most this many candidates is listed whole
_GREEDY = 512  # beyond this many at once, evenly spread points are taken as they come
_TRIES = 1000


def free_rows(encoder: Encoder, taken: Taken, count: int) -> Array | None:
    """Every row not taken where the space is small, None where a draw meets free rows soon.

    ``ValueError``: fewer than ``count`` are left.
    """
    if encoder.size > max(LISTED, 2 * (len(taken.keys) + count)):
        return None
    rows = encoder.all_rows()
    kept = fresh(encoder, rows, taken)
    if len(kept) < count:
        raise SpaceExhaustedError(
            f"space: {len(kept)} of its {len(rows)} candidates are left{taken.why}; "
            f"{count} were asked for"
        )
    return kept


def fresh(encoder: Encoder, rows: Array, taken: Taken) -> Array:
    """The rows that may be proposed."""
    kept: Array = rows[taken.free(encoder, rows)]
    return kept


def draw(encoder: Encoder, taken: Taken, count: int, rng: np.random.Generator) -> Array:
    """``count`` free rows of a large space, evenly spread."""
    width = len(encoder.columns)
    rows = np.empty((0, width))
    for _ in range(_TRIES):
        more = encoder.snapped(sobol(max(count, 16), width, rng))
        rows = fresh(encoder, np.vstack([rows, more]), taken)
        if len(rows) >= count:
            return rows[:count]
    raise SpaceExhaustedError(f"space: no {count} further candidates in {_TRIES} draws{taken.why}")


def spread(
    encoder: Encoder,
    known: Array,
    taken: Taken,
    listed: Array | None,
    count: int,
    rng: np.random.Generator,
) -> Array:
    """``count`` free rows, each the farthest of a pool from ``known`` and from those before it.

    With nothing known: the first points of a scrambled Sobol sequence.
    """
    greedy = count <= _GREEDY and len(known) > 0
    if listed is not None:
        pool = listed[rng.permutation(len(listed))]
    else:
        pool = draw(encoder, taken, 4 * count + 16 if greedy else count, rng)
    if not greedy:
        return pool[:count]
    x, centres = encoder.features(pool), encoder.features(known)
    gap = np.full(len(pool), np.inf)
    for centre in centres:
        np.minimum(gap, np.square(x - centre).sum(1), out=gap)
    chosen = []
    for _ in range(count):
        best = int(np.argmax(gap))
        chosen.append(best)
        gap = np.minimum(gap, np.square(x - x[best]).sum(1))
        gap[chosen] = -1.0
    return pool[chosen]
