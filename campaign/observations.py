"""What a run has learned so far, read from its state: trials for the surrogate, the best, the goal.

Only rounds that have ended speak. Within a round results come in any order, so nothing that a
proposal depends on may look at them before the round is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from campaign.config import CampaignConfig, Objective
from campaign.contract import objective_value, refusal
from campaign.events import SlotEnded
from campaign.model import SIMULATION, Disposition
from campaign.roundstate import RoundState
from campaign.state import CampaignState
from campaign.trial import Goal, Trial


@dataclass(frozen=True, slots=True)
class Observation:
    """One simulated slot; ``value`` is None when the simulation failed or never ran."""

    round: int
    slot: SlotEnded
    value: float | None
    reason: str = ""

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The verifiers that never answered for this candidate."""
        return tuple(self.slot.unanswered)


def observations(state: CampaignState, config: CampaignConfig) -> tuple[Observation, ...]:
    """Every slot that was let through, by round and slot, with what its simulation said.

    A candidate that a later verification rejected does not count.
    """
    found = []
    for number, rounds in sorted(state.rounds.items()):
        for slot in _let_through(rounds):
            ended = state.result(SIMULATION, slot.candidate)
            value = objective_value(ended, config.objective.name)
            found.append(Observation(number, slot, value, "" if ended is None else ended.reason))
    return tuple(found)


def trials(state: CampaignState, config: CampaignConfig) -> tuple[Trial, ...]:
    """What the surrogate learns from: simulations of ended rounds, and what verifiers rejected.

    A rejected candidate that was run all the same is known by its simulation alone.
    """
    return trials_of(state, observations(state, config))


def trials_of(state: CampaignState, observed: Iterable[Observation]) -> tuple[Trial, ...]:
    """The same from all observations of the run, for whoever has them."""
    ended = {number for number, rounds in state.rounds.items() if rounds.ended}
    learned = {
        seen.slot.candidate: Trial(seen.slot.parameters, seen.value, seen.reason)
        for seen in observed
        if seen.round in ended
    }
    rejected = [
        (key, tries.last)
        for key, tries in state.tasks.items()
        if key[0] != SIMULATION and tries.rejects and tries.round in ended
    ]
    for (task, candidate), last in sorted(rejected, key=lambda item: item[0]):
        why = f"{task}: {refusal(last)}"
        learned.setdefault(candidate, Trial(state.points[candidate], None, why))
    return tuple(learned.values())


def best(state: CampaignState, config: CampaignConfig) -> Observation | None:
    """The observation nearest to the goal; the earlier of two equals."""
    seen = [one for one in observations(state, config) if one.value is not None]
    return min(seen, key=lambda one: distance(config.objective, one.value or 0.0), default=None)


def distance(objective: Objective, value: float) -> float:
    """How far a value is from the goal, smaller is better (for a direction: the signed value)."""
    if objective.target is not None:
        return abs(value - objective.target)
    return value if objective.direction == "minimize" else -value


def reached(state: CampaignState, config: CampaignConfig) -> str:
    """Why no further round is needed, "" when one is."""
    found = best(state, config)
    if found is None or found.value is None:
        return ""
    objective = config.objective
    if objective.target is not None and objective.tolerance is not None:
        off = abs(found.value - objective.target)
        if off <= objective.tolerance:
            return f"{objective.name} is within {objective.tolerance:g} of {objective.target:g}"
        return ""
    if objective.stop_at is not None:
        bound = distance(objective, objective.stop_at)
        if distance(objective, found.value) <= bound:
            return f"{objective.name} reached stop_at {objective.stop_at:g}"
    return ""


def goal(objective: Objective) -> Goal:
    """The objective as the surrogate takes it."""
    if objective.target is not None:
        return Goal("target", objective.target)
    return Goal("minimize" if objective.direction == "minimize" else "maximize")


def incomplete(state: CampaignState) -> tuple[SlotEnded, ...]:
    """The slots whose candidate some verifier has not answered for."""
    return tuple(
        slot
        for _, rounds in sorted(state.rounds.items())
        for _, slot in sorted(rounds.slots.items())
        if unanswered(state, slot)
    )


def unanswered(state: CampaignState, slot: SlotEnded) -> tuple[str, ...]:
    """The verifiers that have not answered for a slot's candidate, as of now."""
    later = state.rounds[slot.round].reverified.get(slot.slot)
    if later is not None and later.rejected_by:
        return ()
    return tuple(slot.unanswered if later is None else later.unanswered)


def unproven(state: CampaignState, slot: SlotEnded) -> tuple[str, ...]:
    """The verifiers that have not answered, and the rules that could not tell."""
    return (*unanswered(state, slot), *slot.unchecked)


def _let_through(rounds: RoundState) -> list[SlotEnded]:
    return [
        slot
        for number, slot in sorted(rounds.slots.items())
        if slot.disposition != Disposition.TOMBSTONE
        and not (number in rounds.reverified and rounds.reverified[number].rejected_by)
    ]
