"""The Gaussian process, the warps and the improvements, against what they are defined by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import approx_fprime

from campaign.surrogate.acquire import Below, Improvement, Near
from campaign.surrogate.gp import Hyper, Posterior, Prior, _Evidence, fit
from campaign.surrogate.learn import thinned
from campaign.surrogate.sobol import sobol
from campaign.surrogate.warp import Warp, bent, standard

Array = NDArray[np.float64]

GROUPS = np.array([0, 1, 2, 2])
HYPER = Hyper(np.array([0.3, 0.8, 0.5]), 1.2, 1e-4, 0.05)


def data(count: int = 20) -> tuple[Array, Array]:
    x = np.random.default_rng(0).random((count, 4))
    z = np.sin(5 * x[:, 0]) + x[:, 2] ** 2
    return x, (z - z.mean()) / z.std()


def test_the_gradient_of_the_evidence_is_its_derivative() -> None:
    evidence = _Evidence(*data(), GROUPS, Prior.of_outputs(3))
    theta = np.array([-0.5, 0.3, -1.0, 0.2, -5.0, -2.0])

    def value(t: Array) -> float:
        return evidence(t)[0]

    numeric = approx_fprime(theta, value, 1e-7)
    assert evidence(theta)[1] == pytest.approx(numeric, rel=1e-3, abs=1e-3)


def test_the_gradients_of_a_prediction_are_its_derivatives() -> None:
    posterior = Posterior(*data(), HYPER, GROUPS)
    x = np.array([0.31, 0.47, 0.62, 0.15])
    _, _, by_mean, by_sd = posterior.slopes(x[None])

    def mean(p: Array) -> float:
        return float(posterior.predict(p[None])[0][0])

    def sd(p: Array) -> float:
        return float(posterior.predict(p[None])[1][0])

    for moment, gradient in ((mean, by_mean), (sd, by_sd)):
        numeric = approx_fprime(x, moment, 1e-7)
        assert gradient[0] == pytest.approx(numeric, rel=1e-3, abs=1e-4)


def test_a_fitted_process_predicts_what_it_has_not_seen() -> None:
    x, z = data(60)
    posterior = Posterior(x[:45], z[:45], fit(x[:45], z[:45], GROUPS, Prior.of_outputs(3)), GROUPS)
    mean, sd = posterior.predict(x[45:])
    assert np.abs(mean - z[45:]).max() < 0.1
    assert sd.max() < 0.2


def test_noise_is_found_in_noisy_values() -> None:
    x, z = data(80)
    noisy = z + np.random.default_rng(1).normal(0.0, 0.3, len(z))
    assert 0.03 < fit(x, noisy, GROUPS, Prior.of_outputs(3)).noise < 0.3
    assert fit(x, z, GROUPS, Prior.of_outputs(3)).noise < 1e-3


def test_observations_one_by_one_equal_observations_at_once() -> None:
    x, z = data()
    some = Posterior(x[:17], z[:17], HYPER, GROUPS)
    for row, value in zip(x[17:], z[17:], strict=True):
        some = some.given(row, float(value))
    whole = Posterior(x, z, HYPER, GROUPS)
    block = Posterior(x[:17], z[:17], HYPER, GROUPS).given_all(x[17:], z[17:])
    at = np.random.default_rng(3).random((6, 4))
    for other in (some, block):
        for a, b in zip(other.predict(at), whole.predict(at), strict=True):
            assert a == pytest.approx(b, abs=1e-8)


def test_left_out_predictions_are_those_without_the_observation() -> None:
    x, z = data()
    mean, sd = Posterior(x, z, HYPER, GROUPS).left_out()
    others = Posterior(x[1:], z[1:], HYPER, GROUPS).predict(x[:1])
    assert mean[0] == pytest.approx(others[0][0])
    assert sd[0] == pytest.approx(math.sqrt(others[1][0] ** 2 + HYPER.noise))


@pytest.mark.parametrize("mean", [-3.0, 0.0, 0.25, 0.31, 5.0])
@pytest.mark.parametrize("sd", [0.3, 1.0, 5.0])
def test_improvements_are_the_expectations_they_stand_for(mean: float, sd: float) -> None:
    def density(z: float) -> float:
        return math.exp(-0.5 * ((z - mean) / sd) ** 2) / sd / math.sqrt(2 * math.pi)

    near = quad(lambda z: max(0.0, 0.2 - abs(z - 0.3)) * density(z), 0.1, 0.5, points=[0.3])[0]
    below = quad(lambda z: (0.4 - z) * density(z), min(mean, 0.4) - 12 * sd, 0.4, epsabs=0)[0]
    for improvement, expected in ((Near(0.3, 0.2, Warp(0.0, 1.0)), near), (Below(0.4), below)):
        value = improvement(np.array([mean]), np.array([sd]))[0][0]
        assert value == pytest.approx(math.log(expected), rel=1e-4)


@pytest.mark.parametrize("improvement", [Below(-1.0), Near(0.4, 0.1, Warp(0.0, 1.0, 0.3))])
@pytest.mark.parametrize("mean", [-2.0, 0.4, 60.0, 4e5])
def test_improvements_stay_finite_and_slope_towards_more(
    improvement: Improvement, mean: float
) -> None:
    value, by_mean, by_sd = improvement(np.array([mean]), np.array([0.7]))
    assert np.isfinite([value[0], by_mean[0], by_sd[0]]).all()
    step = 1e-6 * max(1.0, abs(mean))
    ahead = improvement(np.array([mean + step]), np.array([0.7]))[0]
    assert (ahead - value)[0] / step == pytest.approx(by_mean[0], rel=2e-2, abs=1e-3)


def test_a_warp_and_its_inverse_cancel_and_keep_order() -> None:
    y = np.exp(np.random.default_rng(2).normal(0.0, 2.0, 50))
    for warp in (standard(y), bent(y)):
        z = warp.forward(y)
        assert warp.inverse(z) == pytest.approx(y)
        assert (np.argsort(z) == np.argsort(y)).all()
        slope = (warp.forward(y + 1e-6) - z) / 1e-6
        assert warp.log_slope(y) == pytest.approx(np.log(slope), abs=1e-3)
    assert abs(float(np.median(bent(y).forward(y)))) < abs(float(np.median(standard(y).forward(y))))


def test_sobol_points_fill_the_cube_evenly() -> None:
    points = sobol(64, 23, np.random.default_rng(0))
    assert points.shape == (64, 23)
    for column in points.T:  # one point in each of 64 strata
        assert sorted((column * 64).astype(int)) == list(range(64))
    corners = np.unique((points[:, :2] * 8).astype(int), axis=0)
    assert len(corners) == 64


def test_thinning_keeps_the_best_and_covers_the_rest() -> None:
    x = np.random.default_rng(4).random((500, 3))
    rank = np.argsort(x[:, 0], kind="stable")
    kept = thinned(x, rank, 80)
    assert len(kept) == len(set(kept.tolist())) == 80
    assert set(rank[:20].tolist()) <= set(kept.tolist())
    gaps = np.sqrt(((x[:, None] - x[kept]) ** 2).sum(2)).min(1)
    assert gaps.max() < 0.35
