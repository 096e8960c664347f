"""The gate as a funnel: what entered each of its steps, and what stopped there, check by check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from campaign.config import CampaignConfig
from campaign.fates import GUARD
from campaign.model import SIMULATION, Disposition
from campaign.report.candidates import Seen, Unusable
from campaign.state import CampaignState
from checks.finding import Layer

PROCESS = (Layer.SHAPE.value, Layer.SCHEMA.value, Layer.DOMAIN.value)
Check: TypeAlias = tuple[str, str]  # the stage where it acts, and its name

_FILLED_BY = {Disposition.REPAIRED.value: "repaired", Disposition.FALLBACK.value: "filled"}


@dataclass(frozen=True, slots=True)
class Tally:
    """Candidates that were stopped by one check before any other, and how their slots ended.

    ``repaired`` counts those whose slot a later proposal of the agent filled, ``filled`` those
    whose slot the surrogate did.
    """

    rejected: int = 0
    not_checked: int = 0
    repaired: int = 0
    filled: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.rejected + other.rejected,
            self.not_checked + other.not_checked,
            self.repaired + other.repaired,
            self.filled + other.filled,
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the funnel: a layer, one verifier, the guard or the simulation.

    ``entered`` counts candidates, one for each slot of each generation or draw.
    """

    name: str
    layer: str
    entered: int
    stopped: Tally


def order(config: CampaignConfig) -> list[str]:
    """The stages of the gate, in the order they act."""
    guard = [GUARD] if config.simulation.guard else []
    return [*PROCESS, *(one.name for one in config.verifiers), *guard]


def layer_of(stage: str) -> str:
    return stage if stage in (*PROCESS, GUARD, SIMULATION) else Layer.VERIFIER.value


def check_of(one: Seen) -> Check:
    """The check that stopped a candidate."""
    assert one.stopped is not None
    layer, name = one.stopped.layer, one.stopped.by
    return (name if layer == Layer.VERIFIER.value else layer), name


def tallies(
    state: CampaignState, candidates: Iterable[Seen], answers: Iterable[Unusable] = ()
) -> dict[Check, Tally]:
    """What every check stopped that stopped something."""
    counts: dict[Check, Counter[str]] = {}
    for answer in answers:
        found = counts.setdefault((Layer.SHAPE.value, answer.stage), Counter())
        found["rejected"] += answer.slots
        found.update(_filled(state, answer.round, answer.asked))
    for one in candidates:
        if one.stopped is not None:
            found = counts.setdefault(check_of(one), Counter())
            found["rejected" if one.stopped.rejected else "not_checked"] += 1
            found.update(_filled(state, one.round, [one.slot]))
    return {check: Tally(**found) for check, found in counts.items()}


def _filled(state: CampaignState, number: int, slots: Iterable[int]) -> Iterator[str]:
    ended = state.rounds[number].slots
    for slot in slots:
        if slot in ended and (word := _FILLED_BY.get(ended[slot].disposition)):
            yield word


def funnel(
    config: CampaignConfig,
    candidates: Sequence[Seen],
    answers: Iterable[Unusable],
    stopped: Mapping[Check, Tally],
) -> Iterator[Stage]:
    """The steps in their order; the last is the simulation, with what was let through to it."""
    entered = len(candidates) + sum(one.slots for one in answers)
    for name in order(config):
        mine = sum((one for (stage, _), one in stopped.items() if stage == name), Tally())
        yield Stage(name, layer_of(name), entered, mine)
        entered -= mine.rejected + mine.not_checked
    returned = sum(one.stopped is not None and one.fate == "returned" for one in candidates)
    yield Stage(SIMULATION, SIMULATION, entered + returned, Tally())
