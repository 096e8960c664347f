"""Scrambled Sobol points: evenly spread numbers in the unit cube.

Direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better
two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), first 21 dimensions. Scrambling:
a random lower triangular bit matrix and a digital shift (J. Matousek, 1998). Own code, since
the module of SciPy that offers it costs half a second to import.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_BITS = 30
# (polynomial, initial direction numbers) of dimension 2, 3, ...; dimension 1 needs none.
_TABLE: tuple[tuple[int, tuple[int, ...]], ...] = (
    (0, (1,)),
    (1, (1, 3)),
    (1, (1, 3, 1)),
    (2, (1, 1, 1)),
    (1, (1, 1, 3, 3)),
    (4, (1, 3, 5, 13)),
    (2, (1, 1, 5, 5, 17)),
    (4, (1, 1, 5, 5, 5)),
    (7, (1, 1, 7, 11, 19)),
    (11, (1, 1, 5, 1, 1)),
    (13, (1, 1, 1, 3, 11)),
    (14, (1, 3, 5, 5, 31)),
    (1, (1, 3, 3, 9, 7, 49)),
    (13, (1, 1, 1, 15, 21, 21)),
    (16, (1, 3, 1, 13, 27, 49)),
    (19, (1, 1, 1, 15, 7, 5)),
    (22, (1, 3, 1, 15, 13, 25)),
    (25, (1, 1, 5, 5, 19, 61)),
    (1, (1, 3, 7, 11, 23, 15, 103)),
    (4, (1, 3, 7, 13, 13, 15, 69)),
)


def sobol(count: int, dimensions: int, rng: np.random.Generator) -> Array:
    """``(count, dimensions)`` points in ``[0, 1)``, the same for the same state of ``rng``.

    Beyond the 21 tabulated dimensions the columns are shuffled strata (a Latin hypercube).
    """
    known = min(dimensions, len(_TABLE) + 1)
    columns = _scrambled(_directions(known), rng)
    shift = rng.integers(0, 2**_BITS, size=known, dtype=np.int64)
    index = np.arange(count, dtype=np.int64)
    gray = index ^ (index >> 1)
    digits = np.broadcast_to(shift, (count, known)).copy()
    for bit in range(max(count - 1, 0).bit_length()):
        digits ^= ((gray >> bit) & 1)[:, None] * columns[:, bit]
    points = (digits + 0.5) / 2.0**_BITS
    extra = [
        (rng.permutation(count) + rng.random(count)) / max(count, 1)
        for _ in range(dimensions - known)
    ]
    out: Array = np.column_stack([points, *extra])
    return out


@lru_cache(maxsize=32)
def _directions(dimensions: int) -> NDArray[np.int64]:
    """``(dimensions, bits)`` direction numbers, the first bit the most significant."""
    rows = [[1 << (_BITS - 1 - bit) for bit in range(_BITS)]]
    for polynomial, initial in _TABLE[: dimensions - 1]:
        degree = len(initial)
        row = [m << (_BITS - 1 - bit) for bit, m in enumerate(initial)]
        for bit in range(degree, _BITS):
            value = row[bit - degree] ^ (row[bit - degree] >> degree)
            for k in range(1, degree):
                if (polynomial >> (degree - 1 - k)) & 1:
                    value ^= row[bit - k]
            row.append(value)
        rows.append(row)
    return np.array(rows[:dimensions], dtype=np.int64)


def _scrambled(directions: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    places = np.arange(_BITS - 1, -1, -1)
    bits = (directions[:, None, :] >> places[None, :, None]) & 1  # (dimension, place, bit)
    shape = (len(directions), _BITS, _BITS)
    lower = np.tril(rng.integers(0, 2, size=shape, dtype=np.int64), -1) + np.eye(
        _BITS, dtype=np.int64
    )
    mixed: NDArray[np.int64] = (np.matmul(lower, bits) & 1) << places[None, :, None]
    out: NDArray[np.int64] = mixed.sum(axis=1)
    return out
