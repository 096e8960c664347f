"""One run of one method on one problem, in the interpreter that has the method.

``python surrogate_methods.py METHOD PROBLEM SEED`` prints a JSON line. Every method gets the same
8 scrambled Sobol points for a seed and then proposes batches of 4 from what it was told.
Failed simulations are reported in each peer's documented way; scikit-optimize has none and gets
the worst value seen.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.stats import qmc
from surrogate_problems import PROBLEMS, Axis, Problem

INITIAL, BATCH = 8, 4
Candidate = dict[str, Any]


class Method(Protocol):
    def __init__(self, space: Sequence[Axis], seed: int) -> None: ...
    def tell(self, batch: Sequence[Candidate], values: Sequence[float], *, own: bool) -> None:
        """``own``: the batch is what ``ask`` answered last; values may be NaN."""

    def ask(self, count: int) -> list[Candidate]: ...


class Ours:
    def __init__(self, space: Sequence[Axis], seed: int) -> None:
        sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
        from campaign import space as s

        self.seed = seed
        self.trials: list[Any] = []
        self.space: dict[str, Any] = {}
        for name, kind, *rest in space:
            if kind == "choice":
                self.space[name] = s.CategoricalParameter(type="categorical", choices=rest[0])
            else:
                of = s.FloatParameter if kind == "float" else s.IntParameter
                self.space[name] = of(type=kind, min=rest[0], max=rest[1], scale=rest[2])

    def tell(self, batch: Sequence[Candidate], values: Sequence[float], *, own: bool) -> None:  # noqa: ARG002
        from campaign.trial import Trial

        for point, value in zip(batch, values, strict=True):
            self.trials.append(Trial(point, None if math.isnan(value) else value))

    def ask(self, count: int) -> list[Candidate]:
        from campaign.surrogate import suggest
        from campaign.trial import Goal

        batch = suggest(self.space, Goal("minimize"), self.trials, count=count, seed=self.seed)
        return [dict(point) for point in batch]


class Ax:
    def __init__(self, space: Sequence[Axis], seed: int) -> None:
        from ax.api.client import Client
        from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

        self.client = Client(random_seed=seed)
        axes: list[Any] = []
        for name, kind, *rest in space:
            if kind == "choice":
                values = list(rest[0])
                axes.append(ChoiceParameterConfig(name=name, values=values, parameter_type="str"))
            else:
                axes.append(
                    RangeParameterConfig(
                        name=name,
                        bounds=(rest[0], rest[1]),
                        parameter_type=kind,
                        scaling=rest[2],
                    )
                )
        self.client.configure_experiment(parameters=axes)
        self.client.configure_optimization(objective="-y")
        self.client.configure_generation_strategy(
            method="fast", initialization_budget=0, initialize_with_center=False
        )
        self.asked: list[int] = []

    def tell(self, batch: Sequence[Candidate], values: Sequence[float], *, own: bool) -> None:
        numbers = self.asked if own else [self.client.attach_trial(parameters=p) for p in batch]
        for number, value in zip(numbers, values, strict=True):
            if math.isnan(value):
                self.client.mark_trial_failed(number)
            else:
                self.client.complete_trial(number, raw_data={"y": value})

    def ask(self, count: int) -> list[Candidate]:
        trials = self.client.get_next_trials(max_trials=count)
        self.asked = list(trials)
        return [dict(parameters) for parameters in trials.values()]


class Optuna:
    def __init__(self, space: Sequence[Axis], seed: int) -> None:
        import optuna
        from optuna.distributions import (
            CategoricalDistribution,
            FloatDistribution,
            IntDistribution,
        )

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna = optuna
        self.axes: dict[str, Any] = {}
        for name, kind, *rest in space:
            if kind == "choice":
                self.axes[name] = CategoricalDistribution(rest[0])
            else:
                of = FloatDistribution if kind == "float" else IntDistribution
                self.axes[name] = of(rest[0], rest[1], log=rest[2] == "log")
        sampler = optuna.samplers.GPSampler(
            seed=seed, n_startup_trials=0, deterministic_objective=True
        )
        self.study = optuna.create_study(sampler=sampler)
        self.asked: list[Any] = []

    def tell(self, batch: Sequence[Candidate], values: Sequence[float], *, own: bool) -> None:
        failed = self.optuna.trial.TrialState.FAIL
        for place, (point, value) in enumerate(zip(batch, values, strict=True)):
            bad = math.isnan(value)
            if own and bad:
                self.study.tell(self.asked[place], state=failed)
            elif own:
                self.study.tell(self.asked[place], value)
            else:
                how: dict[str, Any] = {"state": failed} if bad else {"value": value}
                trial = self.optuna.trial.create_trial(params=point, distributions=self.axes, **how)
                self.study.add_trial(trial)

    def ask(self, count: int) -> list[Candidate]:
        self.asked = [self.study.ask(self.axes) for _ in range(count)]
        return [dict(trial.params) for trial in self.asked]


class Skopt:
    def __init__(self, space: Sequence[Axis], seed: int) -> None:
        from skopt import Optimizer
        from skopt.space import Categorical, Integer, Real

        self.names = [axis[0] for axis in space]
        axes: list[Any] = []
        for _, kind, *rest in space:
            if kind == "choice":
                axes.append(Categorical(rest[0]))
            else:
                prior = "log-uniform" if rest[2] == "log" else "uniform"
                axes.append((Real if kind == "float" else Integer)(rest[0], rest[1], prior=prior))
        self.optimizer = Optimizer(
            axes, "GP", acq_func="EI", n_initial_points=INITIAL, random_state=seed
        )
        self.told: list[tuple[list[Any], float]] = []
        self.worst = -math.inf

    def tell(self, batch: Sequence[Candidate], values: Sequence[float], *, own: bool) -> None:  # noqa: ARG002
        finite = [value for value in values if not math.isnan(value)]
        self.worst = max([self.worst, *finite])
        x = [[point[name] for name in self.names] for point in batch]
        y = [self.worst if math.isnan(value) else value for value in values]
        self.optimizer.tell(x, y)

    def ask(self, count: int) -> list[Candidate]:
        batch = self.optimizer.ask(n_points=count, strategy="cl_min")
        # Plain values: it answers NumPy's, and numbers a rounding beyond the bounds.
        return [
            {n: v.item() if hasattr(v, "item") else v for n, v in zip(self.names, x, strict=True)}
            for x in batch
        ]


METHODS: dict[str, type[Method]] = {"ours": Ours, "ax": Ax, "optuna": Optuna, "skopt": Skopt}


def initial(space: Sequence[Axis], seed: int) -> list[Candidate]:
    unit = qmc.Sobol(len(space), scramble=True, seed=9000 + seed).random(INITIAL)
    return [
        {axis[0]: _at(axis, float(u)) for axis, u in zip(space, row, strict=True)} for row in unit
    ]


def _at(axis: Axis, u: float) -> Any:
    _, kind, *rest = axis
    if kind == "choice":
        return rest[0][min(int(u * len(rest[0])), len(rest[0]) - 1)]
    low, high = rest[0], rest[1]
    if kind == "int":
        low, high = low - 0.5, high + 0.5
    value = low * (high / low) ** u if rest[2] == "log" else low + u * (high - low)
    return min(max(round(value), rest[0]), rest[1]) if kind == "int" else value


def run(method: str, problem: Problem, seed: int) -> dict[str, Any]:
    """Log10 regret at half and at full budget, CPU seconds per late batch, failures."""
    chooser = METHODS[method](problem.space, seed)
    batch, values, costs, own = initial(problem.space, seed), [], [], False
    while True:
        new = [problem.simulate(point) for point in batch]
        values += new
        if len(values) >= problem.budget:
            break
        start = time.process_time()
        chooser.tell(batch, new, own=own)
        batch, own = chooser.ask(BATCH), True
        costs.append(time.process_time() - start)
    best = np.fmin.accumulate(np.where(np.isnan(values), np.inf, values)) - problem.optimum
    regret = np.log10(np.maximum(best, 1e-9))
    return {
        "half": float(regret[problem.budget // 2 - 1]),
        "full": float(regret[-1]),
        "cpu": float(np.median(costs[-3:])),
        "failed": int(np.isnan(values).sum()),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, problem_name, seed_text = sys.argv[1:4]
    print(json.dumps(run(name, PROBLEMS[problem_name], int(seed_text))))
