"""What the trials teach: a model of the output, and one of where simulations end well."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from campaign.surrogate.gp import Hyper, Posterior, Prior, fit
from campaign.surrogate.warp import Warp, bent, standard

Array = NDArray[np.float64]
Groups = NDArray[np.int64]

FIT_POINTS = 300  # hyperparameters are fitted to at most this many trials,
_DOUBT = math.log(0.98)
_SHUNNED = 30.0
_CAREFUL = 1.65  # the quantile of 0.95
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
MODEL_POINTS = 1000  # and predictions rest on at most this many


@dataclass(frozen=True, slots=True)
class Model:
    """``warp`` takes an output to the units of ``posterior``."""

    posterior: Posterior
    warp: Warp


def learn(x: Array, y: Array, rank: NDArray[np.int64], groups: Groups) -> Model:
    """Fit on features ``x`` and outputs ``y``; ``rank`` lists the rows from best to worst.

    The outputs enter as they are or bent, whichever gives the outputs the greater density when
    each is predicted from the others.
    """
    few = thinned(x, rank, FIT_POINTS)
    best: tuple[float, Warp, Hyper] | None = None
    for warp in _warps(y[few]):
        z = warp.forward(y[few])
        starts = () if best is None else (best[2],)
        hyper = fit(x[few], z, groups, Prior.of_outputs(int(groups[-1]) + 1), starts)
        mean, sd = Posterior(x[few], z, hyper, groups).left_out()
        density = -0.5 * ((z - mean) / sd) ** 2 - np.log(sd) + warp.log_slope(y[few])
        score = float(density.sum())
        if best is None or score > best[0]:
            best = (score, warp, hyper)
    assert best is not None
    many = thinned(x, rank, MODEL_POINTS)
    return Model(Posterior(x[many], best[1].forward(y[many]), best[2], groups), best[1])


def _warps(y: Array) -> Sequence[Warp]:
    base = standard(y)
    return (base,) if len(y) < 4 or float(np.ptp(y)) == 0.0 else (base, bent(y))


@dataclass(frozen=True, slots=True)
class Success:
    """A process over labels +1 (ended well) and -1 (failed), ``shift`` far from them.

    ``least``: chances below the one of this normal quantile are shunned. Where a model is sure
    that nothing is to be gained elsewhere, no factor alone would keep a batch from the failures.
    """

    posterior: Posterior
    shift: float
    least: float

    def log_chance(self, mean: Array, sd: Array) -> tuple[Array, Array, Array]:
        """Log probability of success from the moments of ``posterior``, less a penalty below
        ``least``; and the derivatives."""
        wide = np.sqrt(sd**2 + self.posterior.hyper.noise)
        u = (mean + self.shift) / wide
        value = log_ndtr(u)
        steep = np.exp(-0.5 * u**2 - _LOG_ROOT_2PI - value) + _SHUNNED * (u < self.least)
        value = value + _SHUNNED * np.minimum(u - self.least, 0.0)
        return value, steep / wide, -steep * u * sd / wide**2

    def after(self, x: Array) -> tuple[float, Success]:
        """The label to assume of a simulation under way at ``x``, and what to hold to then.

        A doubtful one is taken to fail, and one such doubt is enough for a batch.
        """
        chance = self.log_chance(*self.posterior.predict(x))[0][0]
        if chance > _DOUBT:
            return 1.0 - self.shift, self
        return -1.0 - self.shift, replace(self, least=max(self.least, _CAREFUL))


def learn_success(x: Array, failed: NDArray[np.bool_], groups: Groups) -> Success | None:
    """None while nothing failed."""
    if not failed.any():
        return None
    order = np.argsort(~failed, kind="stable")  # failures are the news: keep them
    labels = np.where(failed, -1.0, 1.0)
    few = thinned(x, order, FIT_POINTS)
    shift = 0.5
    prior = _label_prior(int(groups[-1]) + 1)
    lengths = np.full(int(groups[-1]) + 1, math.exp(prior.length_mean))
    start = Hyper(lengths, 1.0, 1e-2, 1e-6)
    hyper = fit(x[few], labels[few] - shift, groups, prior, (start,))
    many = thinned(x, order, MODEL_POINTS)
    least = float(ndtri(np.clip(0.6 + 1.5 * failed.mean(), 0.6, 0.95)))
    return Success(Posterior(x[many], labels[many] - shift, hyper, groups), shift, least)


def thinned(x: Array, rank: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most ``most`` rows: a quarter the best, a quarter the nearest to the best, and then
    always the row farthest from those taken. Sorted."""
    if len(rank) <= most:
        return np.sort(rank)
    taken = np.zeros(len(x), dtype=bool)
    taken[rank[: most // 4]] = True
    away = np.square(x - x[rank[0]]).sum(1)
    near = rank[np.argsort(away[rank], kind="stable")]
    taken[near[~taken[near]][: most // 4]] = True
    gap = np.full(len(x), -1.0)
    gap[rank] = np.inf
    new = np.flatnonzero(taken)
    for start in range(0, len(new), 64):
        block = x[new[start : start + 64]]
        squares = np.square(x[:, None, :] - block).sum(2).min(1)
        gap = np.minimum(gap, squares)
    while int(taken.sum()) < most:
        gap[taken] = -1.0
        new_row = int(np.argmax(gap))
        taken[new_row] = True
        gap = np.minimum(gap, np.square(x - x[new_row]).sum(1))
    return np.flatnonzero(taken)


def _label_prior(dimensions: int) -> Prior:
    """Wide and firm: labels alone would be told apart by ever shorter lengths."""
    mean = math.log(0.25) + 0.5 * math.log(dimensions)
    noise, flat = math.log(1e-2), math.log(1e-6)  # two values follow no trend
    return Prior(mean, 0.5, noise_mean=noise, noise_sd=0.5, trend_mean=flat, trend_sd=0.1)
