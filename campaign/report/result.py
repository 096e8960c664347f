"""What a run found and how sure that is: the best observation beside the surrogate's optimum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np

from campaign.config import CampaignConfig
from campaign.gateconfig import observes
from campaign.grid import decode, encode, wired
from campaign.judging import Layers, bounds
from campaign.observations import Observation, distance, goal, trials_of
from campaign.report.chronicle import Chronicle
from campaign.space import Point, Space
from campaign.state import CampaignState
from campaign.trial import Fits, Goal, Trial
from checks.sources import Source
from checks.suite import Suite, compile_rules
from checks.world import BUILT_IN, World

MOST = 400  # trials the surrogate looks at: the best, and others spread over the run
_BEST = 200
_WIDE = 1024  # points over the whole space where the optimum is looked for
_NEAR = 64  # and around each of the best, at each of these distances
_TRIED = 100  # of the tried points, the best so many
_REACH = (0.1, 0.03, 0.01)
_CENTRES = 4
Z95 = 1.959963984540054
LIKELY = 0.9  # chance to pass the verifiers, below which a point is not held to be the optimum
LEAST = 4  # values without which no model says anything


@dataclass(frozen=True, slots=True)
class Belief:
    """What the surrogate holds of the objective at a point: a mean, and 95 % of its belief."""

    point: Point
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Result:
    """``optimum`` and ``at_best`` are None, and ``unsure`` says why, where there is no model."""

    best: Observation | None
    optimum: Belief | None = None
    at_best: Belief | None = None
    used: int = 0  # trials the surrogate learned from
    trials: int = 0
    unsure: str = ""


class Step(msgspec.Struct, frozen=True):
    """An observation, and the node-hours the run's tasks had taken when it came."""

    round: int
    slot: int
    candidate: str
    disposition: str
    value: float
    node_hours: float
    time: float
    best: bool  # the best until then


def result(state: CampaignState, config: CampaignConfig, seen: Sequence[Observation]) -> Result:
    """The best observation, and what the surrogate makes of all of them."""
    found = [one for one in seen if one.value is not None]
    objective = config.objective
    best = min(found, key=lambda one: distance(objective, one.value or 0.0), default=None)
    every = trials_of(state, seen)
    known = [one for one in every if one.value is not None]
    if best is None or len(known) < LEAST:
        why = f"{len(known)} values of ended rounds; the surrogate needs {LEAST}"
        return Result(best, trials=len(known), unsure=why)
    used = _thinned(known, config)
    failed = [one for one in every if one.value is None]
    failed = [failed[place] for place in _even(len(failed), MOST)]
    search = _Search(config, (*used, *failed), _fits(state, config))
    optimum, at_best = search.beliefs(best.slot.parameters)
    return Result(best, optimum, at_best, len(used), len(known))


def convergence(
    config: CampaignConfig, observed: Iterable[Observation], told: Chronicle
) -> tuple[Step, ...]:
    """Every observation with a value, in the order they came, each candidate once."""
    seen: dict[str, Observation] = {}
    for one in observed:
        if one.value is not None and one.slot.candidate in told.simulated:
            seen.setdefault(one.slot.candidate, one)
    steps = []
    least = float("inf")
    for content, one in sorted(seen.items(), key=lambda item: told.simulated[item[0]]):
        assert one.value is not None
        time, hours = told.simulated[content]
        off = distance(config.objective, one.value)
        place = (one.round, one.slot.slot, content, one.slot.disposition)
        steps.append(Step(*place, one.value, hours, time, off < least))
        least = min(least, off)
    return tuple(steps)


def _thinned(known: Sequence[Trial], config: CampaignConfig) -> list[Trial]:
    if len(known) <= MOST:
        return list(known)
    ranked = sorted(known, key=lambda one: distance(config.objective, one.value or 0.0))
    rest = ranked[_BEST:]
    return ranked[:_BEST] + [rest[place] for place in _even(len(rest), MOST - _BEST)]


def _even(count: int, most: int) -> list[int]:
    """Places of at most ``most`` of ``count`` things, evenly."""
    if count <= most:
        return list(range(count))
    return [place * (count - 1) // (most - 1) for place in range(most)]


def _fits(state: CampaignState, config: CampaignConfig) -> Fits | None:
    """Which points the run's own rules let pass; no code of the campaign is run for it."""
    if state.run is None or observes(config):
        return None
    entries: list[tuple[object, Source]] = [
        (one.entry, Source(one.source))
        for one in state.run.rules
        if one.entry.get("type") in BUILT_IN
    ]
    found, _ = compile_rules(entries, World())
    suite = Suite(found) if found else None
    return Layers(bounds(config.parameters), suite).fits()


@dataclass(frozen=True, slots=True)
class _Search:
    """For the point the surrogate believes to be best among those likely to pass the gate."""

    config: CampaignConfig
    trials: Sequence[Trial]
    fits: Fits | None

    def beliefs(self, best: Point) -> tuple[Belief, Belief]:
        """At the best point the surrogate believes in, and at the best observed one."""
        from campaign.surrogate import predict  # SciPy: for this part alone
        from campaign.surrogate.chance import chances

        parameters, aim = self.config.parameters, goal(self.config.objective)
        space = wired(parameters)
        mine = [Trial(encode(parameters, one.point), one.value) for one in self.trials]
        points = [encode(parameters, best), *_places(space, aim, mine, self.config.seed)]
        said = predict(space, aim, [one for one in mine if one.value is not None], points)
        decoded = [cast("Point", decode(parameters, one)) for one in points]
        fit = self.fits(decoded) if self.fits else [True] * len(points)
        likely = [chance >= LIKELY for chance in chances(space, mine, points)]
        open_ = [place for place in range(1, len(points)) if fit[place] and likely[place]]
        misses = {place: distance(self.config.objective, said[place][0]) for place in (0, *open_)}
        top = min(misses, key=misses.__getitem__)
        return _belief(decoded[top], *said[top]), _belief(decoded[0], *said[0])


def _belief(point: Point, mean: float, sd: float) -> Belief:
    return Belief(point, mean, mean - Z95 * sd, mean + Z95 * sd)


def _places(space: Space, aim: Goal, trials: Sequence[Trial], seed: int) -> list[Point]:
    """Where the optimum may lie: what was tried, all over the space, and around the best."""
    from campaign.surrogate.encode import Encoder
    from campaign.surrogate.sobol import sobol

    encoder = Encoder(space)
    known = [one for one in trials if one.value is not None]
    sign = -1.0 if aim.kind == "maximize" else 1.0
    values = np.array([one.value for one in known], dtype=float)
    off = np.abs(values - aim.target) if aim.kind == "target" else sign * values
    order = np.argsort(off, kind="stable")[:_TRIED]
    rows = encoder.rows([known[place].point for place in order])
    rng = np.random.default_rng([seed, len(known)])
    wide = sobol(_WIDE, len(space), rng)
    near = [
        centre + reach * rng.standard_normal((_NEAR, len(space)))
        for centre in rows[:_CENTRES]
        for reach in _REACH
    ]
    return list(encoder.points(np.clip(np.vstack([rows, wide, *near]), 0.0, 1.0)))
