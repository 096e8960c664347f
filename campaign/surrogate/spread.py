"""Candidates that need no model: those still free, spread over the space."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from campaign.surrogate.encode import Encoder, Key
from campaign.surrogate.sobol import sobol
from campaign.trial import SpaceExhaustedError

Array = NDArray[np.float64]

LISTED = 2048  # a space of at most this many candidates is listed whole
_GREEDY = 512  # beyond this many at once, evenly spread points are taken as they come
_TRIES = 1000


def free_rows(encoder: Encoder, taken: set[Key], count: int) -> Array | None:
    """Every row not taken where the space is small, None where a draw meets free rows soon.

    ``ValueError``: fewer than ``count`` are left.
    """
    if encoder.size > max(LISTED, 2 * (len(taken) + count)):
        return None
    rows = encoder.all_rows()
    kept = fresh(encoder, rows, taken)
    if len(kept) < count:
        raise SpaceExhaustedError(
            f"space: {len(kept)} of its {len(rows)} candidates are left; {count} were asked for"
        )
    return kept


def fresh(encoder: Encoder, rows: Array, taken: set[Key]) -> Array:
    """The rows whose candidates are neither taken nor the same as an earlier row's."""
    seen: set[Key] = set()
    keep = []
    for point in encoder.points(rows):
        key = encoder.key(point)
        keep.append(key not in taken and key not in seen)
        seen.add(key)
    kept: Array = rows[np.array(keep, dtype=bool)]
    return kept


def draw(encoder: Encoder, taken: set[Key], count: int, rng: np.random.Generator) -> Array:
    """``count`` free rows of a large space, evenly spread."""
    width = len(encoder.columns)
    rows = np.empty((0, width))
    for _ in range(_TRIES):
        more = encoder.snapped(sobol(max(count, 16), width, rng))
        rows = fresh(encoder, np.vstack([rows, more]), taken)
        if len(rows) >= count:
            return rows[:count]
    raise SpaceExhaustedError(f"space: no {count} further candidates found in {_TRIES} draws")


def spread(
    encoder: Encoder,
    known: Array,
    taken: set[Key],
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
