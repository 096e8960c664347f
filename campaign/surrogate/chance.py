"""How likely a candidate is to pass the verifiers and to be simulated without failure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr
from threadpoolctl import threadpool_limits

from campaign.space import Point, Space
from campaign.surrogate.encode import Encoder
from campaign.surrogate.learn import learn_success
from campaign.trial import Trial


def chances(space: Space, trials: Sequence[Trial], points: Sequence[Point]) -> tuple[float, ...]:
    """The probability of a value at each point; 1 everywhere while no trial has failed."""
    encoder = Encoder(space)
    failed = np.array([trial.value is None for trial in trials], dtype=bool)
    features = encoder.features(encoder.rows([trial.point for trial in trials]))
    with threadpool_limits(1, user_api="blas"):
        success = learn_success(features, failed, encoder.groups)
        if success is None:
            return (1.0,) * len(points)
        mean, sd = success.posterior.predict(encoder.features(encoder.rows(points)))
    wide = np.sqrt(sd**2 + success.posterior.hyper.noise)
    return tuple(ndtr((mean + success.shift) / wide).tolist())
