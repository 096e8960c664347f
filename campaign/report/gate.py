"""The gate as a funnel, and the node-hours that each check saved.

How the hours are reckoned is told in ``docs/explanation/saved-node-hours.md``; :data:`HOW` is the
short form, for beside the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from campaign.config import CampaignConfig
from campaign.fates import GUARD
from campaign.limits import worst_case
from campaign.model import SIMULATION
from campaign.report.candidates import Seen, Unusable
from campaign.state import CampaignState
from checks.finding import Layer

HOW = (
    "A rejected candidate is credited, once by its content, to the check that rejected it first. "
    "It would have cost what the verifiers after that check and the simulation took, on the mean "
    "of the candidates of this run that got there; what was spent on it there all the same is "
    "taken off, and one that was simulated in spite of it counts nothing. Where none got there, "
    "the worst case that one try reserves stands in, and is marked. Saved is that less what the "
    "check itself cost: all tries of a verifier; checks in the driver cost no node-hours. An "
    "answer without candidates saves nothing: there was nothing to run."
)
PROCESS = (Layer.SHAPE.value, Layer.SCHEMA.value, Layer.DOMAIN.value)


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of the funnel: a layer, one verifier, the guard or the simulation.

    ``entered`` counts candidates of a generation; ``repaired`` those among the rejected whose slot
    a later proposal of the agent filled, ``filled`` those whose slot the surrogate did.
    """

    name: str
    layer: str
    entered: int
    rejected: int = 0
    not_checked: int = 0
    repaired: int = 0
    filled: int = 0


@dataclass(frozen=True, slots=True)
class Basis:
    """What getting past a check costs: the mean over ``n`` candidates, or with none the worst."""

    node_hours: float
    n: int


@dataclass(frozen=True, slots=True)
class Saving:
    """What one check kept from being spent, in node-hours.

    ``rejected`` counts candidates it was the first to reject, ``credited`` those among them that
    it saved anything on, by content.
    """

    check: str
    layer: str
    rejected: int
    credited: int
    basis: Basis
    would_have_cost: float
    cost: float

    @property
    def saved(self) -> float:
        return self.would_have_cost - self.cost


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate did with everything that was proposed."""

    stages: tuple[Stage, ...]
    savings: tuple[Saving, ...]
    agent: int = 0  # candidates the agent proposed
    surrogate: int = 0  # and the surrogate, to fill slots
    answers: Sequence[Unusable] = field(default_factory=tuple)  # without candidates

    @property
    def would_have_cost(self) -> float:
        return sum(one.would_have_cost for one in self.savings)

    @property
    def cost(self) -> float:
        return sum(one.cost for one in self.savings)

    @property
    def saved(self) -> float:
        return self.would_have_cost - self.cost


def gate(
    state: CampaignState,
    config: CampaignConfig,
    candidates: Sequence[Seen],
    answers: Sequence[Unusable],
) -> Gate:
    """Count and reckon. Candidates in the order they were judged."""
    return Gate(
        tuple(_funnel(state, config, candidates, answers)),
        savings(state, config, candidates, answers),
        sum(not one.draw for one in candidates),
        sum(bool(one.draw) for one in candidates),
        tuple(answers),
    )


def savings(
    state: CampaignState,
    config: CampaignConfig,
    candidates: Iterable[Seen],
    answers: Iterable[Unusable] = (),
) -> tuple[Saving, ...]:
    """Every check that rejected something and every verifier and guard, in the order they act."""
    order = _order(config)
    first: dict[tuple[str, str], list[str]] = {(one, one): [] for one in order[len(PROCESS) :]}
    given: set[str] = set()
    rejected: Counter[tuple[str, str]] = Counter()
    for answer in answers:
        rejected[Layer.SHAPE.value, answer.stage] += answer.slots
    for one in candidates:
        if one.stopped is None or not one.stopped.rejected:
            continue
        key = (_stage(one), one.stopped.by)
        rejected[key] += 1
        contents = first.setdefault(key, [])
        if one.content and one.content not in given:
            given.add(one.content)
            contents.append(one.content)
    keys = sorted({*first, *rejected}, key=lambda key: order.index(key[0]))
    ledger = _Costs.of(state, config)
    return tuple(ledger.saving(key, rejected[key], first.get(key, [])) for key in keys)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What the tasks took. ``spent`` is by task and content; ``bases`` and ``after`` by place:
    the checks in the driver, then each verifier, then the guard."""

    order: Sequence[str]
    spent: Mapping[str, Mapping[str, float]]
    after: Sequence[Sequence[str]]
    bases: Sequence[Basis]

    @classmethod
    def of(cls, state: CampaignState, config: CampaignConfig) -> _Costs:
        tasks = [*(one.name for one in config.verifiers), SIMULATION]
        spent: dict[str, dict[str, float]] = {task: {} for task in tasks}
        cut: set[tuple[str, str]] = set()
        for (task, content), tries in state.tasks.items():
            spent[task][content] = sum(one.spent for one in tries.ended)
            last = tries.last
            if tries.open is not None or last is None or last.status == "cancelled":
                cut.add((task, content))
        after = [tasks[place:] for place in range(len(tasks))]
        after += [[SIMULATION]] * bool(config.simulation.guard)
        bases = [_basis(config, later, spent, cut) for later in after]
        return cls(_order(config), spent, after, bases)

    def saving(self, key: tuple[str, str], rejected: int, contents: Sequence[str]) -> Saving:
        stage, check = key
        place = max(0, self.order.index(stage) - len(PROCESS) + 1)
        basis = self.bases[place]
        spared = [one for one in contents if one not in self.spent[SIMULATION]]
        would = sum(basis.node_hours - self._later(place, one) for one in spared)
        cost = sum(self.spent.get(stage, {}).values())
        layer = stage if stage in (*PROCESS, GUARD) else Layer.VERIFIER.value
        return Saving(check, layer, rejected, len(spared), basis, would, cost)

    def _later(self, place: int, content: str) -> float:
        return sum(self.spent[task].get(content, 0.0) for task in self.after[place])


def _basis(
    config: CampaignConfig,
    tasks: Sequence[str],
    spent: Mapping[str, Mapping[str, float]],
    cut: Collection[tuple[str, str]],
) -> Basis:
    """The mean of what these tasks took for a candidate they had come to an end with."""
    took: dict[str, float] = {}
    for task in tasks:
        for content, hours in spent[task].items():
            took[content] = took.get(content, 0.0) + hours
    for task, content in cut:
        if task in tasks:
            took.pop(content, None)
    if took:
        return Basis(sum(took.values()) / len(took), len(took))
    specs = {one.name: one for one in config.verifiers} | {SIMULATION: config.simulation}
    return Basis(sum(worst_case(specs[task]) for task in tasks), 0)


def _order(config: CampaignConfig) -> list[str]:
    """The stages of the gate, in the order they act."""
    guard = [GUARD] if config.simulation.guard else []
    return [*PROCESS, *(one.name for one in config.verifiers), *guard]


def _stage(one: Seen) -> str:
    assert one.stopped is not None
    return one.stopped.by if one.stopped.layer == Layer.VERIFIER.value else one.stopped.layer


def _funnel(
    state: CampaignState,
    config: CampaignConfig,
    candidates: Sequence[Seen],
    answers: Sequence[Unusable],
) -> Iterable[Stage]:
    lost = sum(one.slots for one in answers)
    entered = len(candidates) + lost
    ends = {
        (number, slot): ended.disposition
        for number, rounds in state.rounds.items()
        for slot, ended in rounds.slots.items()
    }
    tallies: dict[str, Counter[str]] = {name: Counter() for name in _order(config)}
    tallies[Layer.SHAPE.value]["rejected"] += lost
    through = 0
    for one in candidates:
        if one.stopped is None:
            continue
        tally = tallies[_stage(one)]
        tally["rejected" if one.stopped.rejected else "not_checked"] += 1
        tally["filled"] += ends.get((one.round, one.slot)) == "fallback"
        tally["repaired"] += ends.get((one.round, one.slot)) == "repaired"
        through += one.fate == "returned"
    for name, tally in tallies.items():
        layer = name if name in (*PROCESS, GUARD) else Layer.VERIFIER.value
        yield Stage(name, layer, entered, **tally)
        entered -= tally["rejected"] + tally["not_checked"]
    yield Stage(SIMULATION, SIMULATION, entered + through)
