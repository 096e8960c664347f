"""The gate as a funnel, and the node-hours that each check saved.

How the hours are reckoned is told in ``docs/explanation/saved-node-hours.md``; :data:`HOW` is the
short form, for beside the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from campaign.config import CampaignConfig
from campaign.limits import worst_case
from campaign.model import SIMULATION
from campaign.report.candidates import Seen, Unusable
from campaign.report.funnel import (
    PROCESS,
    Check,
    Stage,
    Tally,
    check_of,
    funnel,
    layer_of,
    order,
    tallies,
)
from campaign.state import CampaignState

HOW = (
    "A rejected candidate is credited, once by its content, to the check that rejected it first. "
    "It would have cost what the verifiers after that check and the simulation took, on the mean "
    "of the candidates of this run that got there; what was spent on it there all the same is "
    "taken off, and one that was simulated in spite of it counts nothing. Where none got there, "
    "the worst case that one try reserves stands in, and is marked. Saved is that less what the "
    "check itself cost: all tries of a verifier; checks in the driver cost no node-hours. An "
    "answer without candidates saves nothing: there was nothing to run."
)


@dataclass(frozen=True, slots=True)
class Basis:
    """What getting past a check costs: the mean over ``n`` candidates, or with none the worst."""

    node_hours: float
    n: int


@dataclass(frozen=True, slots=True)
class Saving:
    """What one check kept from being spent, in node-hours.

    ``stopped`` are the candidates it was the first to stop, ``credited`` counts those among them
    that it saved anything on, by content.
    """

    check: str
    layer: str
    stopped: Tally
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
    stopped = tallies(state, candidates, answers)
    return Gate(
        tuple(funnel(config, candidates, answers, stopped)),
        savings(state, config, candidates, stopped),
        sum(not one.draw for one in candidates),
        sum(bool(one.draw) for one in candidates),
        tuple(answers),
    )


def savings(
    state: CampaignState,
    config: CampaignConfig,
    candidates: Iterable[Seen],
    stopped: Mapping[Check, Tally],
) -> tuple[Saving, ...]:
    """Every check that stopped something and every verifier and guard, in the order they act."""
    stages = order(config)
    credited: dict[Check, list[str]] = {(one, one): [] for one in stages[len(PROCESS) :]}
    given: set[str] = set()
    for one in candidates:
        if one.stopped is None or not one.stopped.rejected:
            continue
        if one.content and one.content not in given:
            given.add(one.content)
            credited.setdefault(check_of(one), []).append(one.content)
    costs = _Costs.of(state, config)
    return tuple(
        costs.saving(check, stopped.get(check, Tally()), credited.get(check, []))
        for check in sorted({*credited, *stopped}, key=lambda check: stages.index(check[0]))
    )


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
            spent[task][content] = tries.spent
            last = tries.last
            if tries.open is not None or last is None or last.status == "cancelled":
                cut.add((task, content))
        after = [tasks[place:] for place in range(len(tasks))]
        after += [[SIMULATION]] * bool(config.simulation.guard)
        bases = [_basis(config, later, spent, cut) for later in after]
        return cls(order(config), spent, after, bases)

    def saving(self, key: Check, stopped: Tally, contents: Sequence[str]) -> Saving:
        stage, check = key
        place = max(0, self.order.index(stage) - len(PROCESS) + 1)
        basis = self.bases[place]
        spared = [one for one in contents if one not in self.spent[SIMULATION]]
        would = sum(basis.node_hours - self._later(place, one) for one in spared)
        cost = sum(self.spent.get(stage, {}).values())
        return Saving(check, layer_of(stage), stopped, len(spared), basis, would, cost)

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
