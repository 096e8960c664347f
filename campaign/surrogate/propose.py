"""The surrogate: from finished simulations to the candidates worth simulating next.

A pure function of its arguments: the same on one software stack whatever order the trials came
in. A batch of 4 takes about 0.1 s of one core at 60 trials, 2 s at 2,000 and 5 s at 10,000: the
cost is bounded because hyperparameters are fitted to at most 300 trials and predictions rest on
at most 1,000, namely the best, the nearest to the best, and of the others those that cover the
space (``campaign.surrogate.learn.thinned``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from campaign.space import Point, Space
from campaign.surrogate.acquire import Below, Improvement, Near
from campaign.surrogate.encode import Encoder
from campaign.surrogate.learn import Model, learn, learn_success
from campaign.surrogate.search import Batch, Worth
from campaign.surrogate.spread import LISTED, Taken, free_rows, spread
from campaign.trial import ANYWHERE, Goal, Room, Trial

Array = NDArray[np.float64]

_SLOTS = 128  # the model chooses this many of a batch; more of one fit is no better than spread
_CENTRES = 4  # best trials around which candidates are drawn


def suggest(
    space: Space,
    goal: Goal,
    trials: Sequence[Trial],
    room: Room = ANYWHERE,
    *,
    count: int,
    seed: int,
) -> tuple[Point, ...]:
    """``count`` candidates, distinct to 10 decimal places from one another and from every
    trial, pending and excluded point.

    ``ValueError``: the space holds fewer than ``count`` further candidates, or a point is not of
    the space.
    """
    encoder = Encoder(space)
    history = _History.of(encoder, goal, trials, room.pending)
    old = [trial.point for trial in trials]
    keys = {encoder.key(point) for point in (*old, *room.pending, *room.exclude)}
    taken = Taken(keys, room.fits)
    listed = free_rows(encoder, taken, count)
    rng = np.random.default_rng([seed, len(trials), len(room.pending)])
    rows = np.empty((0, len(space)))
    if count and history.teaches:
        with threadpool_limits(1, user_api="blas"):
            batch = _batch(history, taken, listed, rng)
            picks = [batch.pick(local=slot % 2 == 1) for slot in range(min(count, _SLOTS))]
        rows = np.array(picks)
    if len(rows) < count:
        known = np.vstack([history.rows, history.pending, rows])
        taken.add(encoder, encoder.points(rows))
        listed = free_rows(encoder, taken, count - len(rows))
        more = spread(encoder, known, taken, listed, count - len(rows), rng)
        rows = np.vstack([rows, more])
    return encoder.points(rows)


def predict(
    space: Space, goal: Goal, trials: Sequence[Trial], points: Sequence[Point]
) -> tuple[tuple[float, float], ...]:
    """Mean and standard deviation, in the objective's units, of the output at each point.

    ``ValueError`` with fewer than two finished trials.
    """
    encoder = Encoder(space)
    history = _History.of(encoder, goal, trials, ())
    if len(history.y) < 2:
        raise ValueError(f"predict: {len(history.y)} finished trials; at least 2 are needed")
    with threadpool_limits(1, user_api="blas"):
        model = history.model()
        mean, sd = model.posterior.predict(encoder.features(encoder.rows(points)))
    low, high = history.y.min(), history.y.max()
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    # A bent scale may end within the reach of the Gaussian: keep near what has been seen.
    y = model.warp.inverse(mean[:, None] + sd[:, None] * nodes)
    y = np.clip(y, 2.0 * low - high, 2.0 * high - low)
    weights = weights / weights.sum()
    centre = y @ weights
    spread = np.sqrt(((y - centre[:, None]) ** 2) @ weights)
    sign = -1.0 if goal.kind == "maximize" else 1.0
    return tuple(zip((sign * centre).tolist(), spread.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class _History:
    """Trials in an order of their own content. ``y``: what is minimised, or the output itself
    for a target, of the rows that did not fail."""

    encoder: Encoder
    rows: Array
    failed: NDArray[np.bool_]
    y: Array
    pending: Array
    target: float | None

    @classmethod
    def of(
        cls, encoder: Encoder, goal: Goal, trials: Sequence[Trial], pending: Sequence[Point]
    ) -> _History:
        sign = -1.0 if goal.kind == "maximize" else 1.0
        y = np.array([np.nan if t.value is None else sign * t.value for t in trials], dtype=float)
        if np.isinf(y).any():
            raise ValueError("trials: an infinite value; give None for a failed simulation")
        rows = encoder.rows([trial.point for trial in trials])
        order = np.lexsort((y, *rows.T[::-1]))
        rows, y = rows[order], y[order]
        waiting = encoder.rows(pending)
        waiting = waiting[np.lexsort(waiting.T[::-1])]
        target = goal.target if goal.kind == "target" else None
        return cls(encoder, rows, np.isnan(y), y[~np.isnan(y)], waiting, target)

    @property
    def good(self) -> Array:
        return self.rows[~self.failed]

    @property
    def teaches(self) -> bool:
        """Enough values for a model to be better than spread points."""
        return len(self.y) >= min(len(self.encoder.columns) + 2, 8)

    def badness(self) -> Array:
        return self.y if self.target is None else np.abs(self.y - self.target)

    def model(self) -> Model:
        x = self.encoder.features(self.good)
        rank = np.argsort(self.badness(), kind="stable")
        return learn(x, self.y, rank, self.encoder.groups)


def _batch(
    history: _History, taken: Taken, listed: Array | None, rng: np.random.Generator
) -> Batch:
    encoder, model = history.encoder, history.model()
    success = learn_success(encoder.features(history.rows), history.failed, encoder.groups)
    posterior = model.posterior
    improvement = _improvement(history, model)
    if len(history.pending):
        x = encoder.features(history.pending)
        mean, sd = posterior.predict(x)
        values = [improvement.belief(m, s, 0) for m, s in zip(mean, sd, strict=True)]
        posterior = posterior.given_all(x, np.array(values))
        for value in values:
            improvement = improvement.after(value)
    centres = history.good[np.argsort(history.badness(), kind="stable")[:_CENTRES]]
    if listed is not None and len(listed) > LISTED:
        listed = listed[np.sort(rng.choice(len(listed), LISTED, replace=False))]
    own = replace(taken, keys=set(taken.keys))  # it adds its picks
    return Batch(Worth(encoder, posterior, success, improvement), centres, own, rng, listed)


def _improvement(history: _History, model: Model) -> Improvement:
    """Measured from the best prediction at a trial, not the best value: noise flatters that."""
    posterior = model.posterior
    smooth = posterior.z - posterior.hyper.noise * posterior.alpha
    if history.target is None:
        return Below(float(smooth.min()))
    distance = np.abs(model.warp.inverse(smooth) - history.target).min()
    spread = float(np.ptp(history.y)) or 1.0
    least = 1e-3 * spread * float(np.sqrt(posterior.hyper.noise))
    return Near(history.target, max(float(distance), least), model.warp, least)
