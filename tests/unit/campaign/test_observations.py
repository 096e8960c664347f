"""What a run has learned: only ended rounds teach, only the best counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import running
from campaign.events import (
    Answered,
    Entry,
    Reverified,
    RoundEnded,
    RoundStarted,
    SlotEnded,
    TaskEnded,
    TaskStarted,
)
from campaign.observations import (
    best,
    goal,
    incomplete,
    observations,
    reached,
    trials,
    unanswered,
)
from campaign.space import content_hash
from campaign.state import CampaignState, fold
from campaign.trial import Goal, Trial


def point(x: float) -> dict[str, Any]:
    return {"x": x, "y": 0.5}


def task(name: str, x: float, number: int, slot: int, value: Any) -> list[Any]:
    named: dict[str, Any] = {"task": name, "candidate": content_hash(point(x)), "attempt": 1}
    status = "error" if value is None else "done"
    return [
        TaskStarted(**named, round=number, slot=slot, nodes=1, reserved=0.1),
        TaskEnded(**named, status=status, spent=0.1, seconds=360.0, value=value),
    ]


def slot(number: int, place: int, x: float, value: float | None, **more: Any) -> list[Any]:
    ended = SlotEnded(
        round=number,
        slot=place,
        disposition=more.pop("disposition", "accepted"),
        generation=1,
        candidate=content_hash(point(x)),
        parameters=point(x),
        **more,
    )
    answer = None if value is None else {"loss": value}
    return [ended, *task("simulation", x, number, place, answer)]


def state_of(*events: Any) -> CampaignState:
    flat = [one for event in events for one in (event if isinstance(event, list) else [event])]
    return fold(Entry(n, float(n), event) for n, event in enumerate(flat, start=1))


CONFIG = running.config()
TARGET = running.config(objective={"name": "loss", "target": 1.0, "tolerance": 0.1})
STOP = running.config(objective={"name": "loss", "direction": "maximize", "stop_at": 2.0})


def test_observations_come_by_round_and_slot_whatever_came_first() -> None:
    late = [slot(2, 1, 0.4, 4.0), slot(1, 1, 0.2, None), slot(2, 0, 0.3, 3.0), slot(1, 0, 0.1, 1.0)]
    seen = observations(state_of(*late), CONFIG)
    assert [(one.round, one.slot.slot, one.value) for one in seen] == [
        (1, 0, 1.0),
        (1, 1, None),
        (2, 0, 3.0),
        (2, 1, 4.0),
    ]


def test_trials_are_of_ended_rounds_and_failures_are_among_them() -> None:
    state = state_of(
        RoundStarted(round=1), slot(1, 0, 0.1, 1.0), slot(1, 1, 0.2, None), RoundEnded(round=1)
    )
    state.apply(Entry(99, 0.0, RoundStarted(round=2)))
    for event in slot(2, 0, 0.3, 9.0):
        state.apply(Entry(99, 0.0, event))
    assert trials(state, CONFIG) == (Trial(point(0.1), 1.0), Trial(point(0.2), None))


def test_what_a_verifier_rejected_in_an_ended_round_teaches_as_a_failure() -> None:
    no = {"verdict": "reject", "reason": "no"}
    events = [
        Answered(round=1, generation=1, candidates=[point(0.9), point(0.8)]),
        task("stable", 0.9, 1, 0, no),
        task("stable", 0.8, 2, 0, no),
    ]
    assert trials(state_of(*events), CONFIG) == ()
    ended = trials(state_of(*events, RoundEnded(round=1)), CONFIG)
    assert ended == (Trial(point(0.9), None),)
    assert ended[0].reason == "stable: no"


def test_the_best_is_nearest_to_the_goal_and_the_earlier_of_equals() -> None:
    events = [
        slot(1, 0, 0.1, 1.3),
        slot(1, 1, 0.2, 0.7),
        slot(2, 0, 0.3, 5.0),
        slot(2, 1, 0.4, 0.7),
    ]
    state = state_of(*events)
    found = {name: best(state, config) for name, config in
             (("least", CONFIG), ("target", TARGET), ("most", STOP))}  # fmt: skip
    assert {name: one and (one.round, one.slot.slot) for name, one in found.items()} == {
        "least": (1, 1),
        "target": (1, 0),
        "most": (2, 0),
    }
    assert best(state_of(slot(1, 0, 0.1, None)), CONFIG) is None


@pytest.mark.parametrize(
    ("config", "value", "said"),
    [
        (TARGET, 1.09, "loss is within 0.1 of 1"),
        (TARGET, 1.2, ""),
        (STOP, 2.0, "loss reached stop_at 2"),
        (STOP, 1.9, ""),
        (CONFIG, 0.0, ""),
        (running.config(objective={"name": "loss", "direction": "minimize", "stop_at": 0.0}),
         0.0, "loss reached stop_at 0"),
    ],
)  # fmt: skip
def test_the_goal_is_reached_at_its_bound(config: Any, value: float, said: str) -> None:
    assert reached(state_of(slot(1, 0, 0.1, value)), config) == said


def test_a_campaign_ends_when_a_round_has_reached_the_goal(tmp_path: Path) -> None:
    config = running.config(objective={"name": "loss", "direction": "minimize", "stop_at": 0.01})
    good = [{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}, {"x": 0.3, "y": 0.6}]
    ran = running.run(tmp_path, config, proposer=running.agent(good))
    assert ran.ending.reason == "loss reached stop_at 0.01"
    assert list(ran.state.rounds) == [1]


def test_what_was_returned_counts_and_what_is_a_tombstone_does_not() -> None:
    state = state_of(
        slot(1, 0, 0.1, 1.0, disposition="returned"), slot(1, 1, 0.2, 0.5, disposition="tombstone")
    )
    assert [one.slot.disposition for one in observations(state, CONFIG)] == ["returned"]


def test_a_slot_is_incomplete_until_a_later_answer() -> None:
    waiting = slot(1, 0, 0.1, 1.0, unanswered=["stable", "grid"])
    state = state_of(waiting)
    assert [unanswered(state, one) for one in incomplete(state)] == [("stable", "grid")]
    less = state_of(waiting, Reverified(round=1, slot=0, unanswered=["grid"]))
    assert [unanswered(less, one) for one in incomplete(less)] == [("grid",)]
    whole = state_of(waiting, Reverified(round=1, slot=0))
    assert incomplete(whole) == ()
    gone = state_of(waiting, Reverified(round=1, slot=0, rejected_by="stable", reason="no"))
    assert incomplete(gone) == ()
    assert observations(gone, CONFIG) == ()


def test_a_target_is_modelled_as_the_value_and_not_as_its_distance() -> None:
    assert goal(TARGET.objective) == Goal("target", 1.0)
    assert goal(CONFIG.objective) == Goal("minimize")
    assert goal(STOP.objective) == Goal("maximize")
