"""Monotone maps of the outputs that a Gaussian process fits better than the outputs themselves.

Yeo and Johnson, "A new family of power transformations to improve normality or symmetry",
Biometrika 87 (2000). Which map serves best is judged by the model built on it
(``surrogate.model``); ``Warp`` with ``power=1`` only standardises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_POWERS = np.linspace(-4.0, 5.0, 91)


@dataclass(frozen=True, slots=True)
class Warp:
    """``z = (yj((y - centre) / spread, power) - shift) / scale``; increasing in ``y``."""

    centre: float
    spread: float
    power: float = 1.0
    shift: float = 0.0
    scale: float = 1.0

    def forward(self, y: Array) -> Array:
        out: Array = (_bend((y - self.centre) / self.spread, self.power) - self.shift) / self.scale
        return out

    def inverse(self, z: Array) -> Array:
        """Values the map never reaches give the end of the line: plus or minus infinity."""
        return self.centre + self.spread * _unbend(z * self.scale + self.shift, self.power)

    def log_slope(self, y: Array) -> Array:
        """``log dz/dy``."""
        u = (y - self.centre) / self.spread
        bend = (self.power - 1.0) * np.sign(u) * np.log1p(np.abs(u))
        out: Array = bend - np.log(self.scale * self.spread)
        return out


def standard(y: Array) -> Warp:
    """To mean 0 and variance 1; equal values are only shifted."""
    largest = max(float(np.abs(y).max()), 1e-300)  # so that no square overflows
    spread = largest * float((y / largest).std())
    centre = largest * float((y / largest).mean())
    return Warp(centre, spread if spread > 1e-12 * largest else 1.0)


def bent(y: Array) -> Warp:
    """The Yeo-Johnson map under which ``y`` is most nearly Gaussian, then to mean 0, variance 1."""
    base = standard(y)
    u = (y - base.centre) / base.spread
    logs = (np.sign(u) * np.log1p(np.abs(u))).sum()
    scores = [
        (power - 1.0) * logs - 0.5 * len(u) * np.log(max(_bend(u, power).var(), 1e-300))
        for power in _POWERS.tolist()
    ]
    power = float(_POWERS[int(np.argmax(scores))])
    v = _bend(u, power)
    return Warp(base.centre, base.spread, power, float(v.mean()), max(float(v.std()), 1e-12))


def _bend(u: Array, power: float) -> Array:
    up, down = np.log1p(np.maximum(u, 0.0)), np.log1p(np.maximum(-u, 0.0))
    return _expm1(up, power) - _expm1(down, 2.0 - power)


def _expm1(logs: Array, power: float) -> Array:
    if abs(power) < 1e-12:
        return logs
    out: Array = np.expm1(power * logs) / power
    return out


def _unbend(v: Array, power: float) -> Array:
    return _root(np.maximum(v, 0.0), power) - _root(np.maximum(-v, 0.0), 2.0 - power)


def _root(v: Array, power: float) -> Array:
    if abs(power) < 1e-12:
        return np.expm1(v)
    inside = power * v
    with np.errstate(divide="ignore", over="ignore"):
        out: Array = np.expm1(np.log1p(np.maximum(inside, -1.0)) / power)
    return out
