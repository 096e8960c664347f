"""Where a run stands, kept up event by event; no event and no look costs more in a longer run.

The state of a run is everything that happened, and what is asked of it looks through all of it.
A view is drawn four times a second, so it keeps the few sums it shows. From the state they are
summed up once, when a view begins.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from functools import singledispatchmethod

from campaign import events
from campaign.config import CampaignConfig, TaskConfig
from campaign.contract import objective_value
from campaign.lines import line
from campaign.model import SIMULATION, Disposition
from campaign.observations import Observation, best, distance, observations
from campaign.state import CampaignState
from campaign.talks import Talks, talks
from executors.config import MpiConfig

LAST = 8  # decisions that are kept in words


@dataclass(frozen=True, slots=True)
class Asking:
    """An ask the agent has not answered. ``failed`` is why the last call brought nothing."""

    round: int
    generation: int
    slots: int
    since: float  # seconds since the epoch
    call: int = 0
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A try that has not ended: what it takes of which executor, and nodes."""

    executor: str
    units: int  # ranks, or whole nodes where tasks take whole nodes
    nodes: int


@dataclass(slots=True)
class Progress:
    """The sums; changed by :meth:`apply` alone, which is told each event once, in order."""

    config: CampaignConfig
    state: CampaignState
    rounds_ended: int = 0
    job_at: float = 0.0  # when the present job began, seconds since the epoch
    ended_before: int = 0  # rounds that ended in earlier jobs
    slots: Counter[str] = field(default_factory=Counter)  # by disposition
    busy: Counter[str] = field(default_factory=Counter)  # units, by executor
    nodes: int = 0  # of the tries that run
    running: dict[tuple[str, str], Running] = field(default_factory=dict)
    talks: Talks | None = None
    asking: Asking | None = None
    best: Observation | None = None
    trace: list[float] = field(default_factory=list)  # the best after each simulation
    last: deque[tuple[float, str]] = field(default_factory=lambda: deque(maxlen=LAST))
    _places: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by candidate

    @classmethod
    def of(cls, state: CampaignState, config: CampaignConfig) -> Progress:
        """The sums of a state; the order in which its simulations ended it does not know."""
        found = cls(config, state)
        found.rounds_ended = sum(one.ended for one in state.rounds.values())
        found._new_job()
        found.slots.update(state.dispositions())
        for task in state.tasks.values():
            if task.open is not None:
                found._begin(task.open)
        found.talks = talks(state)
        for seen in observations(state, config):
            found._places.setdefault(seen.slot.candidate, []).append((seen.round, seen.slot.slot))
            found._see(seen)
        return found

    def apply(self, entry: events.Entry) -> None:
        """Take the event that the state took last."""
        _handler(type(entry.event))(self, entry.event)
        self.tell(entry)

    def tell(self, entry: events.Entry) -> None:
        """Keep what is to be said of the event that the state took last."""
        for text in line(entry.event, self.state).splitlines()[-LAST:]:
            self.last.append((entry.t, text))

    @singledispatchmethod
    def _apply(self, event: object) -> None:
        """Most events change nothing that is shown."""

    @_apply.register
    def _(self, _event: events.JobStarted) -> None:
        self._new_job()

    @_apply.register
    def _(self, event: events.Asked) -> None:
        self.asking = Asking(event.round, event.generation, len(event.slots), self._now)

    @_apply.register
    def _(self, event: events.Called) -> None:
        asked = self.state.round(event.round).asked[event.generation]
        since = self.asking.since if self.asking else self._now
        self.asking = Asking(event.round, event.generation, len(asked.slots), since, event.attempt)
        talks = self.talks or Talks(0, 0, 0, 0, 0)
        self.talks = _talked(talks, calls=1, failed=1)

    @_apply.register
    def _(self, event: events.CallFailed) -> None:
        if (now := self.asking) is not None:
            self.asking = Asking(
                now.round, now.generation, now.slots, now.since, now.call, event.reason
            )

    @_apply.register
    def _(self, _event: events.Unanswered) -> None:
        self.asking = None

    @_apply.register
    def _(self, event: events.Answered) -> None:
        self.asking = None
        if self.talks is not None:
            read, written = event.input_tokens, event.output_tokens
            self.talks = _talked(self.talks, answers=1, failed=-1, read=read, written=written)

    @_apply.register
    def _(self, event: events.TaskStarted) -> None:
        self._begin(event)

    @_apply.register
    def _(self, event: events.TaskEnded) -> None:
        ended = self.running.pop((event.task, event.candidate), None)
        if ended is not None:
            self.busy[ended.executor] -= ended.units
            self.nodes -= ended.nodes
        if event.task == SIMULATION:
            self._observed(event.candidate)

    @_apply.register
    def _(self, event: events.SlotEnded) -> None:
        self.slots[event.disposition] += 1
        if event.disposition != Disposition.TOMBSTONE:
            self._places.setdefault(event.candidate, []).append((event.round, event.slot))
            if self.state.result(SIMULATION, event.candidate) is not None:
                self._observed(event.candidate)

    @_apply.register
    def _(self, event: events.Reverified) -> None:
        place = (event.round, event.slot)
        candidate = self.state.round(event.round).slots[event.slot].candidate
        if not event.rejected_by or place not in self._places.get(candidate, ()):
            return
        self._places[candidate].remove(place)
        if self.best is not None and (self.best.round, self.best.slot.slot) == place:
            self.best = best(self.state, self.config)  # a look at everything; it is a rare event
            if self.best is not None:
                self.trace[-1] = self._off(self.best)

    @_apply.register
    def _(self, _event: events.RoundEnded) -> None:
        self.rounds_ended += 1

    @property
    def _now(self) -> float:
        return self.state.changed_at

    def _new_job(self) -> None:
        self.job_at, self.ended_before, self.asking = self._now, self.rounds_ended, None

    def _begin(self, event: events.TaskStarted) -> None:
        spec = _spec(self.config, event.task)
        whole = isinstance(self.config.executors.get(spec.executor), MpiConfig)
        begun = Running(spec.executor, event.nodes if whole else spec.ranks, event.nodes)
        self.running[event.task, event.candidate] = begun
        self.busy[begun.executor] += begun.units
        self.nodes += begun.nodes

    def _observed(self, candidate: str) -> None:
        ended = self.state.result(SIMULATION, candidate)
        value = objective_value(ended, self.config.objective.name)
        for number, slot in self._places.get(candidate, ()):
            self._see(Observation(number, self.state.rounds[number].slots[slot], value))

    def _see(self, seen: Observation) -> None:
        if seen.value is None:
            return
        if self.best is None or self._rank(seen) < self._rank(self.best):
            self.best = seen
        self.trace.append(self._off(self.best))

    def _off(self, seen: Observation) -> float:
        """What is plotted of an observation: its value, or how far that is from the target."""
        value, target = seen.value or 0.0, self.config.objective.target
        return value if target is None else abs(value - target)

    def _rank(self, seen: Observation) -> tuple[float, int, int]:
        off = distance(self.config.objective, seen.value or 0.0)
        return off, seen.round, seen.slot.slot


# Bound once: looked up through an instance, every call would wrap the method anew.
_handler = vars(Progress)["_apply"].dispatcher.dispatch


def _spec(config: CampaignConfig, task: str) -> TaskConfig:
    """The task's configuration, by its name in the ledger."""
    return next((one for one in config.verifiers if one.name == task), config.simulation)


def _talked(
    told: Talks,
    *,
    answers: int = 0,
    calls: int = 0,
    failed: int = 0,
    read: int = 0,
    written: int = 0,
) -> Talks:
    return Talks(
        told.answers + answers,
        told.calls + calls,
        told.failed + failed,
        told.input_tokens + read,
        told.output_tokens + written,
    )
