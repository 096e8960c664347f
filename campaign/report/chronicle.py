"""When things happened: what the state of a run has no use for, from the same pass over its ledger.

Times are seconds since the epoch, node-hours are nodes times hours. Long runs have many tries, so
that they are kept as columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from campaign import events
from campaign.allocationevents import AllocationBegan, AllocationEnded, AllocationReserved
from campaign.budget import counted_by
from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping
from campaign.events import Entry
from campaign.ledger import uncollected
from campaign.model import SIMULATION
from campaign.report.sharing import Pool
from campaign.state import CampaignState
from campaign.status import CAPS
from campaign.tail import Tail

_FINE = 2048  # tries, of which each has its point in the curves
_SILENT = (events.Judged, events.SlotEnded, events.RoundStarted, events.RoundEnded)


@dataclass(slots=True)
class Tries:
    """Every try that has ended, in the order of their ends; one value of each column a try."""

    status: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    began: array[float] = field(default_factory=lambda: array("d"))
    ended: array[float] = field(default_factory=lambda: array("d"))
    nodes: array[float] = field(default_factory=lambda: array("d"))  # kept busy

    def __len__(self) -> int:
        return len(self.status)


@dataclass(frozen=True, slots=True)
class Held:
    """Nodes that were had from ``began`` to ``ended``."""

    nodes: int
    began: float
    ended: float


@dataclass(slots=True)
class Curve:
    """A counter over time; a value holds until the next one."""

    times: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, time: float, value: float) -> None:
        if not self.values or self.values[-1] != value:
            self.times.append(time)
            self.values.append(value)


@dataclass(slots=True)
class Chronicle:
    """Changed by :meth:`apply` alone, with a state that has the event in it already."""

    tries: Tries = field(default_factory=Tries)
    spent: dict[str, Curve] = field(default_factory=dict)  # by cap that has a limit
    asked: dict[tuple[int, int], float] = field(default_factory=dict)  # by round and generation
    answered: dict[tuple[int, int], float] = field(default_factory=dict)
    unanswered: dict[tuple[int, int], float] = field(default_factory=dict)
    drawn: dict[tuple[int, int], float] = field(default_factory=dict)  # by round and draw
    simulated: dict[str, tuple[float, float]] = field(default_factory=dict)  # see _ended
    held: list[Held] = field(default_factory=list)
    _caps: list[tuple[Curve, str, str]] = field(default_factory=list)  # with counter and per
    _open: dict[tuple[str, str], tuple[events.TaskStarted, float]] = field(default_factory=dict)
    _nodes: dict[int, tuple[int, float]] = field(default_factory=dict)  # of open allocations
    _hours: float = 0.0

    def apply(self, entry: Entry, state: CampaignState) -> None:
        event, now = entry.event, entry.t
        if isinstance(event, events.TaskStarted):
            self._open[event.task, event.candidate] = event, now
            return
        if isinstance(event, events.TaskEnded):
            self._ended(event, now)
            if len(self.tries) % (1 + len(self.tries) // _FINE):
                return  # no curve is drawn as finely as a long run would have it
        elif isinstance(event, _SILENT):
            return
        else:
            self._told(event, now)
        self._count(now, state)

    def _count(self, now: float, state: CampaignState) -> None:
        for curve, counter, per in self._caps:
            curve.add(now, state.usage.counter(counter).used(per))

    def _told(self, event: events.Event, now: float) -> None:
        match event:
            case events.RunCreated():
                self._watch(config_from_mapping(event.config))
            case events.Asked():
                self.asked[event.round, event.generation] = now
            case events.Answered():
                self.answered[event.round, event.generation] = now
            case events.Unanswered():
                self.unanswered[event.round, event.generation] = now
            case events.Filled():
                self.drawn[event.round, event.draw] = now
            case AllocationReserved() | AllocationBegan() | AllocationEnded():
                self._allocated(event)
            case _:
                pass

    def close(self, state: CampaignState) -> None:
        """Count what is still open until the last event."""
        now = state.changed_at
        self._count(now, state)
        self.held += [Held(nodes, since, now) for nodes, since in self._nodes.values() if since]
        self._nodes.clear()

    def _watch(self, config: CampaignConfig) -> None:
        for name in CAPS:
            if (cap := config.budgets.cap(name)) is not None:
                curve = self.spent.setdefault(name, Curve())
                self._caps.append((curve, counted_by(name, cap), cap.per))

    def _ended(self, event: events.TaskEnded, now: float) -> None:
        """A try: it ran until it ended, or, adopted from an earlier driver, from its start on.

        ``simulated`` is when the simulation of a candidate first ended, and the node-hours that
        the tasks of the run had taken by then.
        """
        started, at = self._open.pop((event.task, event.candidate), (None, now - event.seconds))
        began = at if event.adopted else max(at, now - event.seconds)
        tries = self.tries
        tries.status.append(event.status)
        tries.host.append(event.host)
        tries.began.append(began)
        tries.ended.append(began + event.seconds)
        tries.nodes.append((started.share or started.nodes) if started else 1)
        self._hours += event.spent
        if event.task == SIMULATION and event.status == "done":
            self.simulated.setdefault(event.candidate, (now, self._hours))

    def _allocated(self, event: AllocationReserved | AllocationBegan | AllocationEnded) -> None:
        match event:
            case AllocationReserved():
                self._nodes[event.allocation] = event.nodes, event.since
            case AllocationBegan() if event.allocation in self._nodes:
                self._nodes[event.allocation] = self._nodes[event.allocation][0], event.since
            case AllocationEnded():
                nodes, since = self._nodes.pop(event.allocation, (0, 0.0))
                if since and nodes:
                    self.held.append(Held(nodes, since, since + event.seconds))


def entries(run_dir: Path) -> Iterator[Entry]:
    """The events of a run, few of them in memory at a time; raises ``LedgerError`` as a read does.

    A line that does not read is one only when it is found so twice: the run may be going on.
    """
    tail, pool = Tail(run_dir), Pool()
    while found := tail.read() or tail.read():
        yield from map(pool.shared, found)


def chronicle(entries: Iterable[Entry]) -> tuple[CampaignState, Chronicle]:
    """Replay a ledger: the state, and when it came to it."""
    state, told = CampaignState(), Chronicle()
    with uncollected():
        for entry in entries:
            state.apply(entry)
            told.apply(entry, state)
    told.close(state)
    return state, told
