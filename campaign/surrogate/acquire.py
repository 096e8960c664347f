"""What a further simulation is worth: the log of the expected improvement, and its gradient.

Below the best value so far: Jones et al. (1998), in the stable log form of Ament et al.,
"Unexpected improvements to expected improvement" (2023). Nearer to a target: the expectation of
``max(0, best distance - |y - target|)`` under the Gaussian, by quadrature.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from campaign.surrogate.warp import Warp

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


class Improvement(Protocol):
    """Log expected improvement where the model has this mean and standard deviation.

    Answers the value and its derivatives by mean and by standard deviation, each of the shape
    of ``mean``. ``belief`` is the value to assume for a simulation under way where the model
    has one, and ``after`` the improvement over that as well.
    """

    def __call__(self, mean: Array, sd: Array) -> tuple[Array, Array, Array]: ...
    def belief(self, mean: float, sd: float, turn: int) -> float: ...
    def after(self, believed: float) -> Improvement: ...


@dataclass(frozen=True, slots=True)
class Below:
    """Improvement ``max(0, best - z)``."""

    best: float

    def __call__(self, mean: Array, sd: Array) -> tuple[Array, Array, Array]:
        u = (self.best - mean) / sd
        log_h = _log_h(u)
        steep = np.exp(log_ndtr(u) - log_h)  # d log h / du
        return log_h + np.log(sd), -steep / sd, (1.0 - steep * u) / sd

    def belief(self, mean: float, sd: float, turn: int) -> float:  # noqa: ARG002
        return mean

    def after(self, believed: float) -> Below:
        return Below(min(self.best, believed))


@dataclass(frozen=True, slots=True)
class Near:
    """Improvement ``max(0, distance - |y - target|)``; ``warp`` maps the output ``y`` to z."""

    target: float
    distance: float
    warp: Warp
    least: float = 0.0  # distances below this are as good as none: the noise hides them

    def __call__(self, mean: Array, sd: Array) -> tuple[Array, Array, Array]:
        z, log_weight = self._nodes(mean, sd)
        off = (z - mean[..., None]) / sd[..., None]
        gain = self.distance - np.abs(self.warp.inverse(z) - self.target)
        with np.errstate(divide="ignore"):
            terms = log_weight + np.log(np.maximum(gain, 0.0)) - 0.5 * off**2
        top = np.maximum(terms.max(-1, keepdims=True), -1e300)
        parts = np.exp(terms - top)
        total = parts.sum(-1)
        parts /= np.where(total > 0.0, total, 1.0)[..., None]
        value = top[..., 0] + np.log(np.maximum(total, 1e-300)) - np.log(sd) - _LOG_ROOT_2PI
        return value, (parts * off).sum(-1) / sd, ((parts * off**2).sum(-1) - 1.0) / sd

    def belief(self, mean: float, sd: float, turn: int) -> float:
        """A miss by one standard deviation, on either side in turn: a believed hit would leave
        nothing to improve, and the two sides bracket the target."""
        return mean + (sd if turn % 2 == 0 else -sd)

    def after(self, believed: float) -> Near:
        y = float(self.warp.inverse(np.array([believed]))[0])
        distance = max(min(self.distance, abs(y - self.target)), self.least)
        return replace(self, distance=distance)

    def _nodes(self, mean: Array, sd: Array) -> tuple[Array, Array]:
        """Nodes where the integrand lives: within 8 sd of the mean, or, where that misses the
        interval, in the decaying piece at its nearer end."""
        edges = self.target + self.distance * np.array([-1.0, 0.0, 1.0])
        low, middle, high = self.warp.forward(edges).tolist()
        off = np.maximum(np.maximum(low - mean, mean - high) / sd, 0.0)
        reach = np.where(off > 4.0, off * sd + 16.0 * sd / np.maximum(off, 1.0), 8.0 * sd)
        left = np.clip(mean - reach, low, high)
        right = np.clip(mean + reach, low, high)
        ends = (left, np.clip(middle, left, right), right)
        nodes, logs = [], []
        for start, end in itertools.pairwise(ends):
            half = 0.5 * (end - start)[..., None]
            nodes.append(start[..., None] + half * (1.0 + _NODES))
            with np.errstate(divide="ignore"):
                logs.append(np.log(half * _WEIGHTS))
        return np.concatenate(nodes, -1), np.concatenate(logs, -1)


def _log_h(u: Array) -> Array:
    """``log(phi(u) + u Phi(u))`` without cancellation (Ament et al., appendix A)."""
    high, low = np.maximum(u, -1.0), np.minimum(u, -1.0)
    gauss = -0.5 * low**2 - _LOG_ROOT_2PI
    near = np.log(np.exp(-0.5 * high**2 - _LOG_ROOT_2PI) + high * ndtr(high))
    tail = low * (math.sqrt(math.pi / 2.0) * erfcx(low * -math.sqrt(0.5)))
    far = np.log(np.where(low > -1e4, 1.0 + tail, low**-2.0))
    out: Array = np.where(u > -1.0, near, gauss + far)
    return out
