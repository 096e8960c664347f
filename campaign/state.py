"""The state of a run: the fold of its ledger. Resume, status and reports all use it.

Nothing here is stored beside the events it follows from: ``fold(read(directory))`` is the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import singledispatchmethod

from campaign import events
from campaign.allocated import Allocations
from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.budget import ALLOCATED, Usage
from campaign.contract import rejects
from campaign.events import Entry
from campaign.ledger import uncollected
from campaign.model import SIMULATION, Disposition, Mode
from campaign.roundstate import Calls, RoundState
from campaign.slurmjobs import SlurmJobs
from campaign.space import Point, content_hash
from campaign.votes import Votes
from executors.base import TaskStatus


@dataclass(slots=True)
class TaskState:
    """The tries of one task on one candidate; ``open`` is the try whose end is not known."""

    open: events.TaskStarted | None = None
    opened_at: float = 0.0
    round: int = 0  # where it was last tried
    slot: int = 0
    ended: list[events.TaskEnded] = field(default_factory=list)

    @property
    def tries(self) -> int:
        return len(self.ended) + (self.open is not None)

    @property
    def rejects(self) -> bool:
        """Whether it is a verifier that rejected the candidate."""
        return rejects(self.last)

    @property
    def spent(self) -> float:
        """The node-hours of all tries that have ended."""
        return sum([one.spent for one in self.ended])

    @property
    def last(self) -> events.TaskEnded | None:
        return self.ended[-1] if self.ended else None


@dataclass(slots=True)
class CampaignState:
    """Everything a run knows about itself; changed by :meth:`apply` alone.

    ``rounds`` are by number from 1, ``tasks`` by (task, content hash of the candidate), ``points``
    are all candidates by content hash. Times are seconds since the epoch, and ``usage`` counts
    node-hours, generations, tokens and judge calls. What has not happened yet is None or empty.
    """

    run: events.RunCreated | None = None
    job: events.JobStarted | None = None
    signalled: events.Signalled | None = None
    job_ended: events.JobEnded | None = None
    started_at: float = 0.0
    changed_at: float = 0.0
    rounds: dict[int, RoundState] = field(default_factory=dict)
    tasks: dict[tuple[str, str], TaskState] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)  # proposed, by content hash
    usage: Usage = field(default_factory=Usage)
    slurm: SlurmJobs = field(default_factory=SlurmJobs)
    allocations: Allocations = field(default_factory=Allocations)
    votes: Votes = field(default_factory=Votes)

    @property
    def dry_run(self) -> bool:
        """Whether it is a rehearsal: never gone on with, and no part of any campaign."""
        return self.run is not None and self.run.mode == Mode.DRY_RUN

    def apply(self, entry: Entry) -> None:
        self.changed_at = entry.t
        handler = _handlers.get(type(entry.event)) or _handlers[object]
        handler(self, entry.event)

    def round(self, number: int) -> RoundState:
        return self.rounds.setdefault(number, RoundState())

    def result(self, task: str, candidate: str) -> events.TaskEnded | None:
        """The last ended try of a task on a candidate, None when none has ended."""
        found = self.tasks.get((task, candidate))
        return None if found is None else found.last

    def dispositions(self) -> dict[str, int]:
        """How many slots ended which way; every disposition is named."""
        counts = Counter(
            slot.disposition for rounds in self.rounds.values() for slot in rounds.slots.values()
        )
        return {name.value: counts[name.value] for name in Disposition}

    def _remember(self, candidates: list[object]) -> None:
        for candidate in candidates:
            if isinstance(candidate, dict):
                self.points[content_hash(candidate)] = candidate

    @singledispatchmethod
    def _apply(self, event: object) -> None:
        raise TypeError(f"no ledger event: {event!r}")

    @_apply.register
    def _(self, event: events.RunCreated) -> None:
        self.run = event
        self.started_at = self.changed_at

    @_apply.register
    def _(self, event: events.JobStarted) -> None:
        self.job = event
        self.signalled = self.job_ended = None
        self._charge_open_calls()
        self.usage.new_job()
        self.slurm.started(event)

    @_apply.register
    def _(self, event: events.Submitting) -> None:
        self.slurm.submitting(event)

    @_apply.register
    def _(self, event: events.Submitted) -> None:
        self.slurm.submitted(event)

    @_apply.register
    def _(self, event: events.Withdrawn) -> None:
        self.slurm.taken_back(event)

    @_apply.register
    def _(self, event: events.Signalled) -> None:
        self.signalled = event

    @_apply.register
    def _(self, event: events.JobEnded) -> None:
        self.job_ended = event
        self.slurm.ended()

    @_apply.register
    def _(self, event: events.RoundStarted) -> None:
        self.round(event.round)

    @_apply.register
    def _(self, event: events.Asked) -> None:
        self.round(event.round).asked[event.generation] = event
        self.usage.reserve("generations", 1)

    @_apply.register
    def _(self, event: events.Called) -> None:
        calls = self.round(event.round).calls.setdefault(event.generation, Calls())
        calls.made, calls.open = event.attempt, event
        self.usage.reserve("tokens", event.tokens)

    @_apply.register
    def _(self, event: events.CallFailed) -> None:
        calls = self.round(event.round).calls[event.generation]
        self._hang_up(calls, event.tokens)
        calls.failed += not event.free
        calls.reason = event.reason

    @_apply.register
    def _(self, event: events.Unanswered) -> None:
        self.round(event.round).unanswered[event.generation] = event
        self.usage.settle("generations", 1, 0)

    @_apply.register
    def _(self, event: events.VoteAsked) -> None:
        self.votes.asked(event)
        self.usage.reserve("judge_calls", 1)
        self.usage.reserve("tokens", event.tokens)

    @_apply.register
    def _(self, event: events.Voted) -> None:
        asked = self.votes.voted(event)
        self.usage.settle("judge_calls", 1, 1)
        self.usage.settle("tokens", asked.tokens, event.tokens)

    def _hang_up(self, calls: Calls | None, tokens: int) -> None:
        """A call has ended; its reservation is replaced by what it is charged."""
        if calls is not None and calls.open is not None:
            self.usage.settle("tokens", calls.open.tokens, tokens)
            calls.open = None

    def _charge_open_calls(self) -> None:
        """Whoever made them is gone: what they used is not known, and nothing is given back."""
        for rounds in self.rounds.values():
            if rounds.ended:
                continue
            for calls in rounds.calls.values():
                if calls.open is not None:
                    self._hang_up(calls, calls.open.tokens)
                    calls.failed += 1
        for vote in self.votes.abandon():
            self.usage.settle("judge_calls", 1, 1)
            self.usage.settle("tokens", vote.tokens, vote.tokens)

    @_apply.register
    def _(self, event: events.Answered) -> None:
        rounds = self.round(event.round)
        rounds.answers[event.generation] = event
        self.usage.settle("generations", 1, 1)
        self._hang_up(rounds.calls.get(event.generation), event.tokens)
        self._remember(event.candidates)

    @_apply.register
    def _(self, event: events.Filled) -> None:
        self.round(event.round).fills[event.draw] = event
        self._remember(event.candidates)

    @_apply.register
    def _(self, event: events.Judged) -> None:
        self.round(event.round).judged[event.generation, event.draw] = event

    @_apply.register
    def _(self, event: events.TaskStarted) -> None:
        key = event.task, event.candidate
        task = self.tasks.get(key)
        if task is None:
            task = self.tasks[key] = TaskState()
        task.open, task.opened_at = event, self.changed_at
        task.round, task.slot = event.round, event.slot
        for cap in _caps(event.task):
            self.usage.reserve(cap, event.reserved)

    @_apply.register
    def _(self, event: events.TaskEnded) -> None:
        task = self.tasks[event.task, event.candidate]
        started, task.open = task.open, None
        task.ended.append(event)
        if started is not None:
            self.allocations.tried(started.share, event)
        if event.status != TaskStatus.CANCELLED:
            self.slurm.progressed()
        for cap in _caps(event.task):
            self.usage.settle(cap, started.reserved if started is not None else 0.0, event.spent)

    @_apply.register
    def _(self, event: events.SlotEnded) -> None:
        self.round(event.round).slots[event.slot] = event

    @_apply.register
    def _(self, event: events.Reverified) -> None:
        self.round(event.round).reverified[event.slot] = event

    @_apply.register
    def _(self, event: events.RoundEnded) -> None:
        self.round(event.round).ended = True
        self.slurm.progressed()

    @_apply.register
    def _(self, event: AllocationReserved) -> None:
        self.allocations.reserved(event, self.changed_at)
        self.usage.reserve(ALLOCATED, event.reserved)

    @_apply.register
    def _(self, event: AllocationQueued) -> None:
        self.allocations.queued(event)

    @_apply.register
    def _(self, event: AllocationBegan) -> None:
        self.allocations.began(event)

    @_apply.register
    def _(self, event: AllocationEnded) -> None:
        asked = self.allocations.ended(event)
        if asked is not None:
            self.usage.settle(ALLOCATED, asked.reserved, event.spent)


# Read once: looked up through an instance, every call would wrap the method anew, and the events
# have no subclasses that would need a dispatch.
_handlers: Mapping[type, Callable[..., None]] = vars(CampaignState)["_apply"].dispatcher.registry


def fold(entries: Iterable[Entry]) -> CampaignState:
    """The state of a run, from all entries of its ledger in order, as :func:`read` gives them."""
    state = CampaignState()
    with uncollected():
        for entry in entries:
            state.apply(entry)
    return state


def _caps(task: str) -> tuple[str, ...]:
    return ("node_hours",) if task == SIMULATION else ("node_hours", "verifier_node_hours")
