"""The node-hours a run spent, or did not, where other rules would have judged otherwise.

What is saved was spent and is in the ledger. What would be spent is an estimate: the mean of what
the same task took in this run. A candidate's content is never paid for twice, so it counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from campaign.config import CampaignConfig, TaskConfig
from campaign.fates import OUT, Fate
from campaign.gateconfig import policies
from campaign.limits import worst_case
from campaign.model import SIMULATION, Disposition
from campaign.rejudge import Case
from campaign.state import CampaignState, TaskState

CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Basis:
    """What a task takes for one candidate: the mean over ``n``, or with none its worst case."""

    task: str
    node_hours: float
    n: int


@dataclass(frozen=True, slots=True)
class Hours:
    """Node-hours by task, and the number of candidates, told apart by content."""

    by_task: Mapping[str, float] = field(default_factory=dict)
    candidates: int = 0

    @property
    def total(self) -> float:
        return sum(self.by_task.values())


@dataclass(frozen=True, slots=True)
class Bill:
    """What the changes come to.

    ``saved`` was spent on candidates that would not have come that far. ``more`` is what those
    would take that now come further. ``displaced`` was spent on later candidates of a slot of
    which an earlier one would now pass. ``reopened`` counts slots whose candidate would not pass:
    they would be asked for again or filled, at a cost that nobody can know.
    """

    saved: Hours
    more: Hours
    displaced: Hours
    reopened: int
    bases: tuple[Basis, ...]


def bill(
    state: CampaignState, config: CampaignConfig, other: CampaignConfig, cases: Sequence[Case]
) -> Bill:
    """Reckon what other rules would have saved and cost; the tasks are those of the run."""
    bases = _bases(state, config)
    paid = {one.content: _paid(state, one.content, bases) for one in cases if one.content}
    returns = policies(other).semantic_rejection == "return_last"
    asked: dict[str, set[str]] = {}  # the tasks of a content, if everything was proposed
    needed: dict[str, set[str]] = {}  # and if a slot asks for nothing once one has passed
    passed: set[tuple[int, int]] = set()
    reopened = 0
    for case in cases:
        place = (case.round, case.slot)
        tasks = _tasks(case, paid.get(case.content, {}), bases, returns=returns)
        asked.setdefault(case.content, set()).update(tasks)
        needed.setdefault(case.content, set()).update(() if place in passed else tasks)
        reopened += place not in passed and _reopens(case)
        if case.changed and not case.let_on:
            passed.add(place)
    estimates = {one.task: one.node_hours for one in bases.values()}
    every = paid.items()
    return Bill(
        saved=_hours(_only(hours, hours.keys() - asked[one]) for one, hours in every),
        more=_hours(_only(estimates, needed[one] - hours.keys()) for one, hours in every),
        displaced=_hours(
            _only(hours, hours.keys() & (asked[one] - needed[one])) for one, hours in every
        ),
        reopened=reopened,
        bases=tuple(bases.values()),
    )


def spent(state: CampaignState, config: CampaignConfig, content: str) -> float:
    """Node-hours of all tries of all tasks of a candidate."""
    return sum(_paid(state, content, [*_specs(config)]).values())


def _tasks(case: Case, paid: Collection[str], every: Collection[str], *, returns: bool) -> set[str]:
    """What a candidate would be put to; ``returns`` where the last one rejected is run."""
    if not case.changed:
        ran = case.let_on or isinstance(case.ended.fate, Disposition)
        return {*paid} if ran else set()
    if case.now.fate in OUT:
        return {SIMULATION} & {*paid} if returns and case.generation else set()
    reached = {*paid} if case.let_on else {*every}
    return reached | {SIMULATION} if case.now.fate is Fate.PASSED else reached - {SIMULATION}


def _reopens(case: Case) -> bool:
    """Whether the slot ended with this candidate and now could not."""
    ended = isinstance(case.ended.fate, Disposition) or case.ended.fate is Fate.FILTERED
    return ended and case.changed and case.now.fate in OUT


def _specs(config: CampaignConfig) -> Mapping[str, TaskConfig]:
    return {**{one.name: one for one in config.verifiers}, SIMULATION: config.simulation}


def _bases(state: CampaignState, config: CampaignConfig) -> dict[str, Basis]:
    took: dict[str, list[float]] = {}
    for (task, _), tries in state.tasks.items():
        if tries.open is None and tries.last is not None and tries.last.status != CANCELLED:
            took.setdefault(task, []).append(sum(one.spent for one in tries.ended))
    return {
        name: Basis(name, sum(took[name]) / len(took[name]), len(took[name]))
        if name in took
        else Basis(name, worst_case(spec), 0)
        for name, spec in _specs(config).items()
    }


def _paid(state: CampaignState, content: str, tasks: Iterable[str]) -> dict[str, float]:
    """What was spent on a candidate, by task."""
    tries = {task: state.tasks.get((task, content), TaskState()).ended for task in tasks}
    return {task: sum(one.spent for one in ended) for task, ended in tries.items() if ended}


def _only(hours: Mapping[str, float], tasks: Collection[str]) -> dict[str, float]:
    return {task: hours[task] for task in sorted(tasks)}


def _hours(found: Iterable[Mapping[str, float]]) -> Hours:
    by_task: dict[str, float] = {}
    candidates = 0
    for hours in found:
        candidates += bool(hours)
        for task, amount in hours.items():
            by_task[task] = by_task.get(task, 0.0) + amount
    return Hours(by_task, candidates)
