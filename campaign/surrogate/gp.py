"""A Gaussian process with noise: Matern-5/2, one length per parameter, MAP hyperparameters.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2, 4 and 5;
its section 2.7 for the trend: a constant, a slope and a bend per feature with Gaussian weights,
so that the process knows a bowl from few points and does not promise the average of the (good)
points seen in a far corner. Everything works on features in the unit cube and on values of mean
0 and variance 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri
from scipy.optimize import minimize

Array = NDArray[np.float64]

_SQRT5 = math.sqrt(5.0)
_LEVEL = 1.0  # prior variance of the constant
_SLOPE = 0.5  # of a slope's weight beside a bend's
_FLOOR = 1e-7  # least noise variance, and so the condition of the kernel matrix


@dataclass(frozen=True, slots=True)
class Prior:
    """Gaussians over the logs of the hyperparameters."""

    length_mean: float
    length_sd: float
    signal_sd: float = 1.0
    noise_mean: float = math.log(1e-5)
    noise_sd: float = 3.0
    trend_mean: float = math.log(0.02)
    trend_sd: float = 1.0

    @classmethod
    def of_outputs(cls, dimensions: int) -> Prior:
        """Lengths: LogNormal(sqrt 2 + log(d)/2, sqrt 3) (Hvarfner et al. 2024) maximised as a
        density of the length, hence a Gaussian of its log about the mode (0.2 at d=1, 0.65 at
        d=10): about the mean of the log a process of few points goes flat."""
        return cls(math.sqrt(2.0) + 0.5 * math.log(dimensions) - 3.0, math.sqrt(3.0))


@dataclass(frozen=True, slots=True)
class Hyper:
    lengths: Array  # (parameters,)
    signal: float  # variance of the process
    noise: float  # variance of an observation about it
    trend: float  # variance of a bend's weight


def fit(
    x: Array, z: Array, groups: NDArray[np.int64], prior: Prior, starts: Sequence[Hyper] = ()
) -> Hyper:
    """Maximise the posterior of the hyperparameters given features ``x`` and values ``z``.

    ``groups``: the parameter of each column. ``starts``: where to climb from, by default from
    shorter and from likelier lengths; the best end wins.
    """
    d = int(groups[-1]) + 1
    problem = _Evidence(x, z, groups, prior)
    likely = Hyper(np.full(d, math.exp(prior.length_mean)), 1.0, 1e-2, math.exp(prior.trend_mean))
    starts = starts or (replace(likely, lengths=np.full(d, 0.3 * d**0.25), noise=1e-4), likely)
    limits = [(5e-3, 1e3)] * d + [(1e-2, 1e2), (_FLOOR, 2.0), (1e-6, 1e3)]
    bounds = [(math.log(low), math.log(high)) for low, high in limits]
    ends = []
    for start in starts:
        found = minimize(
            problem,
            np.log([*start.lengths, start.signal, start.noise, start.trend]),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": 50, "ftol": 1e-6, "gtol": 1e-3},
        )
        ends.append((float(found.fun), found.x))
    theta = min(ends, key=lambda end: end[0])[1]
    return Hyper(np.exp(theta[:d]), *np.exp(theta[d:]).tolist())


class _Evidence:
    """Negative log posterior of the logs of (lengths, signal, noise, trend), and its gradient."""

    def __init__(self, x: Array, z: Array, groups: NDArray[np.int64], prior: Prior) -> None:
        self.x, self.z, self.groups, self.prior = x, z, groups, prior
        self.d = int(groups[-1]) + 1
        basis = _basis(x)
        self.basis = basis @ basis.T

    def __call__(self, theta: Array) -> tuple[float, Array]:
        lengths = theta[: self.d]
        signal, noise, trend = np.exp(theta[self.d :]).tolist()
        scaled = self.x / np.exp(lengths)[self.groups]
        shape, slope = _matern(_squared(scaled, scaled))
        kernel = signal * shape + trend * self.basis + _LEVEL
        kernel.flat[:: len(kernel) + 1] += noise
        lower, trouble = dpotrf(kernel, lower=1)
        if trouble:
            return 1e10, np.zeros_like(theta)
        value = float(np.log(np.diag(lower)).sum())
        inverse, _ = dpotri(lower, lower=1)
        inverse = inverse + inverse.T  # its upper half was zero
        inverse.flat[:: len(inverse) + 1] *= 0.5
        alpha = inverse @ self.z
        value += 0.5 * float(self.z @ alpha)
        weights = 0.5 * (inverse - np.outer(alpha, alpha))
        gradient = np.empty_like(theta)
        pulled = weights * (signal * slope)
        columns = pulled.sum(1) @ scaled**2 - np.einsum("ij,ij->j", scaled, pulled @ scaled)
        gradient[: self.d] = np.bincount(self.groups, 2.0 * columns, self.d)
        gradient[-3] = np.vdot(weights, shape) * signal
        gradient[-2] = np.trace(weights) * noise
        gradient[-1] = np.vdot(weights, self.basis) * trend
        return self._with_prior(theta, value, gradient)

    def _with_prior(self, theta: Array, value: float, gradient: Array) -> tuple[float, Array]:
        p = self.prior
        centre = np.concatenate([np.full(self.d, p.length_mean), [0.0, p.noise_mean, p.trend_mean]])
        sd = np.concatenate([np.full(self.d, p.length_sd), [p.signal_sd, p.noise_sd, p.trend_sd]])
        off = (theta - centre) / sd
        return float(value + 0.5 * off @ off), gradient + off / sd


class Posterior:
    """The process given observations; values of mean 0 far from them.

    ``whiten``: the inverse of the Cholesky factor of the observations' covariance.
    """

    def __init__(self, x: Array, z: Array, hyper: Hyper, groups: NDArray[np.int64]) -> None:
        self.scale = 1.0 / hyper.lengths[groups]
        self.hyper, self.groups = hyper, groups
        self.x, self.z = x * self.scale, z
        self.basis = _basis(x)
        kernel = self.cross(x)
        kernel.flat[:: len(kernel) + 1] += hyper.noise
        lower, trouble = dpotrf(kernel, lower=1)
        if trouble:
            raise FloatingPointError(f"covariance of {len(z)} observations: not positive definite")
        self.whiten: Array = dtrtri(lower, lower=1)[0]
        self.alpha: Array = self.whiten.T @ (self.whiten @ z)

    def cross(self, x: Array, last: int = 0) -> Array:
        """``(observations, len(x))`` prior covariances; of the ``last`` observations only."""
        out = self.hyper.signal * _matern(_squared(self.x[-last:], x * self.scale))[0]
        out += self.hyper.trend * (self.basis[-last:] @ _basis(x).T) + _LEVEL
        return out

    def variance(self, x: Array) -> Array:
        """Prior variance of the process at ``x``."""
        out: Array = np.square(_basis(x)).sum(1) * self.hyper.trend
        return out + (self.hyper.signal + _LEVEL)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the process (noise not in it) at ``x``."""
        cross = self.cross(x)
        explained = np.square(self.whiten @ cross).sum(0)
        return self.alpha @ cross, deviation(self.variance(x), explained)

    def slopes(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """``predict`` with the gradients of both, ``(len(x), columns)``."""
        scaled, basis = x * self.scale, _basis(x)
        shape, slope = _matern(_squared(scaled, self.x))
        cross = self.hyper.signal * shape + self.hyper.trend * (basis @ self.basis.T) + _LEVEL
        half = cross @ self.whiten.T
        solved = half @ self.whiten
        prior = np.square(basis).sum(1) * self.hyper.trend + (self.hyper.signal + _LEVEL)
        sd = deviation(prior, np.square(half).sum(1))
        pull = -self.hyper.signal * slope
        by_mean = self._pulled(scaled, pull * self.alpha)
        by_mean += self._trending(x, self.alpha @ self.basis)
        by_sd = self._trending(x, basis - solved @ self.basis)
        by_sd -= self._pulled(scaled, pull * solved)
        return cross @ self.alpha, sd, by_mean, by_sd / sd[:, None]

    def _trending(self, x: Array, weights: Array) -> Array:
        """Derivative of ``trend * basis(x) @ weights``."""
        d = x.shape[1]
        out: Array = (8.0 * x - 4.0) * weights[..., d:]
        out += 2.0 * _SLOPE * weights[..., :d]
        out *= self.hyper.trend
        return out

    def _pulled(self, scaled: Array, weights: Array) -> Array:
        out: Array = (scaled * weights.sum(1)[:, None] - weights @ self.x) * self.scale
        return out

    def given_all(self, x: Array, z: Array) -> Posterior:
        """With further observations, all at once."""
        features = np.vstack([self.x / self.scale, x])
        return Posterior(features, np.append(self.z, z), self.hyper, self.groups)

    def given(self, x: Array, z: float) -> Posterior:
        """With one more observation: a row appended to the factor and its inverse."""
        more = Posterior.__new__(Posterior)
        more.hyper, more.groups, more.scale = self.hyper, self.groups, self.scale
        more.basis = np.vstack([self.basis, _basis(x[None])])
        more.x, more.z = np.vstack([self.x, x * self.scale]), np.append(self.z, z)
        row = self.whiten @ self.cross(x[None])[:, 0]
        left = float(self.variance(x[None])[0] - row @ row) + self.hyper.noise
        corner = 1.0 / math.sqrt(max(left, self.hyper.noise))
        n = len(row)
        more.whiten = np.zeros((n + 1, n + 1))
        more.whiten[:n, :n] = self.whiten
        more.whiten[n, :n], more.whiten[n, n] = -corner * (row @ self.whiten), corner
        last = more.whiten[n]
        more.alpha = np.append(self.alpha, 0.0) + last * (last @ more.z)
        return more

    def left_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each observation given the others (5.12 of the book)."""
        diagonal = np.square(self.whiten).sum(0)
        return self.z - self.alpha / diagonal, 1.0 / np.sqrt(diagonal)


def deviation(variance: Array, explained: Array) -> Array:
    """Standard deviation left of a prior variance."""
    return np.sqrt(np.maximum(variance - explained, 1e-12 * variance))


def _basis(x: Array) -> Array:
    """Slopes and bends of the trend, ``(len(x), 2 columns)``."""
    u = 2.0 * x - 1.0
    return np.concatenate([_SLOPE * u, np.square(u) - 1.0 / 3.0], axis=1)


def _squared(a: Array, b: Array) -> Array:
    out = -2.0 * (a @ b.T)
    out += np.square(a).sum(1)[:, None]
    out += np.square(b).sum(1)
    return np.maximum(out, 0.0, out=out)


def _matern(squared: Array) -> tuple[Array, Array]:
    """The kernel at squared distances, and ``-2 d kernel / d squared`` (so no division)."""
    root = np.sqrt(squared)
    root *= _SQRT5
    decay = np.exp(-root)
    slope = (1.0 + root) * decay
    shape = slope + (5.0 / 3.0) * squared * decay
    slope *= 5.0 / 3.0
    return shape, slope
