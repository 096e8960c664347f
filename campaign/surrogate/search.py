"""The batch: one candidate after another where a simulation is worth most."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from campaign.surrogate.acquire import Improvement
from campaign.surrogate.encode import Encoder
from campaign.surrogate.gp import Posterior, deviation
from campaign.surrogate.learn import Success
from campaign.surrogate.sobol import sobol
from campaign.surrogate.spread import Taken, draw, fresh

Array = NDArray[np.float64]

GLOBAL = 1024  # candidates everywhere,
LOCAL = 512  # and around the best
STARTS = 4
STEPS = 14  # of a climb,
STEPS_OF_TWO = 9  # and where failures are modelled too, which makes a step twice as dear
TRUST = 0.1  # half the side of a trust region
_STEPS_ON_GRID = 8


@dataclass(frozen=True, slots=True)
class Worth:
    """Log of (expected improvement times probability of success) of rows."""

    encoder: Encoder
    posterior: Posterior
    success: Success | None
    improvement: Improvement

    def __call__(self, rows: Array) -> Array:
        x = self.encoder.features(rows)
        chances = None if self.success is None else self.success.posterior.predict(x)
        return self.value(self.posterior.predict(x), chances)

    def value(self, outputs: tuple[Array, Array], labels: tuple[Array, Array] | None) -> Array:
        """From means and standard deviations."""
        value = _tamed(self.improvement(*outputs)[0])[0]
        if self.success is not None and labels is not None:
            value = value + self.success.log_chance(*labels)[0]
        return value

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """The values, and their derivatives by the coordinates that are numbers."""
        x = self.encoder.features(rows)
        mean, sd, by_mean, by_sd = self.posterior.slopes(x)
        value, a, b = self.improvement(mean, sd)
        value, slope = _tamed(value)
        gradient = (slope * a)[:, None] * by_mean + (slope * b)[:, None] * by_sd
        if self.success is not None:
            mean, sd, by_mean, by_sd = self.success.posterior.slopes(x)
            chance, a, b = self.success.log_chance(mean, sd)
            value = value + chance
            gradient += a[:, None] * by_mean + b[:, None] * by_sd
        if self.encoder.numeric.all():
            return value, gradient
        first = np.searchsorted(self.encoder.groups, np.arange(rows.shape[1]))
        return value, gradient[:, first] * self.encoder.numeric


def _tamed(value: Array) -> tuple[Array, Array]:
    """Log improvements, those below -30 compressed in their order, and the derivative: no model
    is so sure of itself, and a factor beside it must still count."""
    below = np.maximum(-30.0 - value, 0.0)
    return np.maximum(value, -30.0) - np.log1p(below), 1.0 / (1.0 + below)


class Field:
    """Mean and standard deviation of a process at many points, kept up to date in O(points n)
    with every observation added."""

    def __init__(self, posterior: Posterior, x: Array) -> None:
        self.posterior, self.x = posterior, x
        self.cross, self.variance = posterior.cross(x), posterior.variance(x)
        self.mean = posterior.alpha @ self.cross
        self.explained = np.square(posterior.whiten @ self.cross).sum(0)

    @property
    def moments(self) -> tuple[Array, Array]:
        return self.mean, deviation(self.variance, self.explained)

    def add(self, x: Array, value: float) -> None:
        self.posterior = self.posterior.given(x, value)
        last = self.posterior.whiten[-1]
        self.cross = np.vstack([self.cross, self.posterior.cross(self.x, last=1)])
        new = last @ self.cross
        self.explained = self.explained + new**2
        self.mean = self.mean + new * (last @ self.posterior.z)


class Batch:
    """Picks rows, believing in an outcome of each pick before the next (a kriging believer).

    ``centres``: the best rows so far, best first. ``taken``: what never to pick; grows.
    ``rows``: all rows still free, where the space is small enough to list them.
    """

    def __init__(
        self,
        worth: Worth,
        centres: Array,
        taken: Taken,
        rng: np.random.Generator,
        rows: Array | None = None,
    ) -> None:
        self.worth, self.centres, self.taken, self.rng = worth, centres, taken, rng
        self.encoder, self.listed = worth.encoder, rows is not None
        self.rows = self._candidates() if rows is None else rows
        self.free = self._fitting()
        self.turn = 0
        x = self.encoder.features(self.rows)
        self.outputs = Field(worth.posterior, x)
        self.labels = None if worth.success is None else Field(worth.success.posterior, x)

    def pick(self, *, local: bool) -> Array:
        """The next row; with ``local`` from a box around the best."""
        low, high = self._box(local)
        labels = None if self.labels is None else self.labels.moments
        value = self.worth.value(self.outputs.moments, labels)
        inside = ((self.rows >= low) & (self.rows <= high)).all(1) & self.free
        value = np.where(inside, value, -np.inf)
        order = np.argsort(-value, kind="stable")[: 2 * STARTS]
        order = order[inside[order]]
        row = self.rows[order[0]] if self.listed else self._refined(order, low, high)
        self._believe(row)
        return row

    def _box(self, local: bool) -> tuple[Array, Array]:
        centre = self.centres[0]
        if not local or self.listed:
            return np.zeros_like(centre), np.ones_like(centre)
        reach = np.where(self.encoder.numeric, TRUST, 1.0)
        return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)

    def _refined(self, order: NDArray[np.int64], low: Array, high: Array) -> Array:
        starts = self.rows[order]
        options = np.vstack([self._polished(starts[:STARTS], low, high), starts])
        free = fresh(self.encoder, self.encoder.snapped(options), self.taken)
        if not len(free):
            free = draw(self.encoder, self.taken, 16, self.rng)
        row: Array = free[int(np.argmax(self.worth(free)))]
        return row if self.encoder.smooth.all() else self._climbed(row)

    def _polished(self, starts: Array, low: Array, high: Array) -> Array:
        """All starts climb together; their gradients are independent of one another."""
        if not self.encoder.numeric.any() or not len(starts):
            return starts

        def loss(flat: Array) -> tuple[float, Array]:
            value, gradient = self.worth.slopes(flat.reshape(starts.shape))
            return -float(value.sum()), -gradient.ravel()

        steps = STEPS if self.worth.success is None else STEPS_OF_TWO
        bounds = list(zip(np.tile(low, len(starts)), np.tile(high, len(starts)), strict=True))
        found = minimize(
            loss,
            starts.ravel(),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps, "maxfun": steps + 4},
        )
        return np.clip(found.x.reshape(starts.shape), low, high)

    def _climbed(self, row: Array) -> Array:
        """Steps over ints and choices while they help."""
        for _ in range(_STEPS_ON_GRID):
            near = fresh(self.encoder, self.encoder.neighbours(row), self.taken)
            best = near[int(np.argmax(self.worth(near)))]
            if np.array_equal(best, row):
                break
            row = best
        return row

    def _believe(self, row: Array) -> None:
        self.taken.add(self.encoder, self.encoder.points(row[None]))
        if self.listed:
            self.free &= (self.rows != row).any(1)
        improvement, success = self.worth.improvement, self.worth.success
        x = self.encoder.features(row[None])
        mean, sd = (float(part[0]) for part in self.outputs.posterior.predict(x))
        value = improvement.belief(mean, sd, self.turn)
        self.turn += 1
        self.outputs.add(x[0], value)
        if success is not None and self.labels is not None:
            label, success = success.after(x)
            self.labels.add(x[0], label)
            success = replace(success, posterior=self.labels.posterior)
        self.worth = Worth(self.encoder, self.outputs.posterior, success, improvement.after(value))

    def _fitting(self) -> NDArray[np.bool_]:
        """The rows where a search may start."""
        if self.taken.fits is None or self.listed:
            return np.ones(len(self.rows), dtype=bool)
        return np.array(self.taken.fits(self.encoder.points(self.rows)), dtype=bool)

    def _candidates(self) -> Array:
        width = self.centres.shape[1]
        everywhere = sobol(GLOBAL, width, self.rng)
        near = self.centres[self.rng.integers(0, len(self.centres), LOCAL)]
        reach = 10.0 ** self.rng.uniform(-3.0, -0.7, size=(LOCAL, 1))
        moved = np.clip(near + reach * self.rng.standard_normal((LOCAL, width)), 0.0, 1.0)
        switched = np.where(
            self.rng.random((LOCAL, width)) < 0.3, self.rng.random((LOCAL, width)), near
        )
        moved = np.where(self.encoder.numeric, moved, switched)
        return self.encoder.snapped(np.vstack([everywhere, self.centres, moved]))
