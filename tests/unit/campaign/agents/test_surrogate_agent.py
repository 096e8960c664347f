"""The surrogate as an agent: it searches the grid of a stepped parameter and answers in values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from campaign.agents.surrogate import SurrogateAgent
from campaign.judging import bounds
from campaign.model import Ask, Rejection
from campaign.space import FloatParameter, Point, Space
from campaign.trial import Goal, SpaceExhaustedError, Trial
from checks.domain import judge
from checks.finding import Finding, Layer, Status

STEP = FloatParameter(type="float", min=0, max=1, step=0.25)
COARSE: Space = {"x": STEP}
FINE: Space = {
    "x": FloatParameter(type="float", min=0.1, max=1, step=0.001, scale="log"),
    "y": FloatParameter(type="float", min=0, max=1),
}
MINIMIZE = Goal("minimize")


def proposed(agent: SurrogateAgent, ask: Ask) -> list[Mapping[str, float]]:
    answer = asyncio.run(agent.propose(ask))
    return [one for one in answer.candidates if isinstance(one, dict)]


def asked(count: int, *trials: Trial, accepted: Sequence[Point] = ()) -> Ask:
    return Ask(1, 1, tuple(range(count)), trials, accepted=dict(enumerate(accepted, 100)))


def test_every_point_of_a_grid_is_proposed_and_no_other() -> None:
    found = proposed(SurrogateAgent(COARSE, MINIMIZE, 1), asked(5))
    assert sorted(one["x"] for one in found) == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_what_was_tried_accepted_or_rejected_is_not_proposed_again() -> None:
    ask = asked(2, Trial({"x": 0.25}, 1.0), accepted=[{"x": 0.5}])
    refused = Finding("stable", Layer.VERIFIER, Status.REJECT)
    ask = Ask(1, 2, ask.slots, ask.trials, ask.accepted, (Rejection(0, {"x": 0.75}, (refused,)),))
    found = proposed(SurrogateAgent(COARSE, MINIMIZE, 1), ask)
    assert sorted(one["x"] for one in found) == [0.0, 1.0]


def test_a_grid_can_be_used_up() -> None:
    with pytest.raises(SpaceExhaustedError):
        proposed(SurrogateAgent(COARSE, MINIMIZE, 1), asked(5, Trial({"x": 0.25}, 1.0)))


def test_which_points_fit_is_asked_in_their_values() -> None:
    seen: list[float] = []

    def low(points: Sequence[Point]) -> list[bool]:
        seen.extend(float(point["x"]) for point in points)
        return [float(point["x"]) <= 0.5 for point in points]

    found = proposed(SurrogateAgent(COARSE, MINIMIZE, 1, fits=low), asked(3))
    assert sorted(one["x"] for one in found) == [0.0, 0.25, 0.5]
    assert set(seen) <= {0.0, 0.25, 0.5, 0.75, 1.0}


def test_it_learns_from_values_and_answers_on_the_grid() -> None:
    agent = SurrogateAgent(FINE, MINIMIZE, 2)
    trials: list[Trial] = []
    for _ in range(6):
        batch = proposed(agent, asked(4, *trials))
        judged = judge(bounds(FINE), batch)
        assert all(f.status is Status.PASS for findings in judged for f in findings)
        trials += [Trial(one, (one["x"] - 0.4) ** 2 + (one["y"] - 0.5) ** 2) for one in batch]
    assert min(one.value for one in trials if one.value is not None) < 0.002
    assert proposed(agent, asked(4, *trials)) == proposed(agent, asked(4, *trials))
