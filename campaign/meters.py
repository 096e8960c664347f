"""The metrics of a run, by the OpenTelemetry API alone: all but those of a call follow the ledger.

A :class:`Meters` listens to the run's recorder. What it counts began with this job.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from campaign import conventions as names, events
from campaign.allocationevents import AllocationEnded
from campaign.events import Entry
from campaign.spans import kind_of
from campaign.state import CampaignState

AGENT, JUDGE = "agent", "judge"


def measure(metric: names.Metric, amount: float, attributes: Mapping[str, str]) -> None:
    """Add to a counter, or record in a histogram."""
    _instrument(metric)(amount, attributes)


@dataclass(slots=True)
class Meters:
    """See the module."""

    _tries: dict[tuple[str, str], float] = field(default_factory=dict)  # when they started
    _rounds: dict[int, float] = field(default_factory=dict)

    def __call__(self, entry: Entry, state: CampaignState) -> None:
        """Measure what an event of the ledger says; ``state`` knows it already."""
        match entry.event:
            case events.RoundStarted(round=number):
                self._rounds[number] = entry.t
            case events.SlotEnded() as ended:
                self._slot(entry.t, ended, state)
            case events.TaskStarted(task=task, candidate=candidate):
                self._tries[task, candidate] = entry.t
            case events.TaskEnded() as ended:
                self._try(entry.t, ended)
            case events.Answered(stage=stage, tokens=tokens):
                measure(names.GENERATIONS, 1, {names.STAGE: stage} if stage else {})
                _charge(tokens, AGENT)
            case events.CallFailed(tokens=tokens):
                _charge(tokens, AGENT)
            case events.Voted(tokens=tokens):
                _charge(tokens, JUDGE)
            case AllocationEnded(spent=spent):
                measure(names.ALLOCATED, spent, {})
            case _:
                pass

    def _slot(self, now: float, ended: events.SlotEnded, state: CampaignState) -> None:
        measure(names.CANDIDATES, 1, {names.DISPOSITION: ended.disposition})
        size = 0 if state.run is None else state.run.config["batch_size"]
        if len(state.round(ended.round).slots) == size and ended.round in self._rounds:
            measure(names.GATE_TIME, max(0.0, now - self._rounds.pop(ended.round)), {})

    def _try(self, now: float, ended: events.TaskEnded) -> None:
        about = {names.TASK: ended.task, names.TASK_KIND: kind_of(ended.task)}
        measure(names.HOURS, ended.spent, about)
        measure(names.TASK_TIME, ended.seconds, about | {names.STATUS: ended.status})
        began = self._tries.pop((ended.task, ended.candidate), None)
        if began is not None:  # else an earlier job started it
            measure(names.QUEUE_TIME, max(0.0, now - began - ended.seconds), about)


def _charge(tokens: int, whom: str) -> None:
    if tokens:
        measure(names.TOKENS, tokens, {names.SPENT_BY: whom})


@functools.cache
def _instrument(metric: names.Metric) -> Callable[[float, Mapping[str, str]], None]:
    from opentelemetry.metrics import get_meter

    meter = get_meter(names.SCOPE)
    if not metric.buckets:
        return meter.create_counter(metric.name, metric.unit, metric.description).add
    return meter.create_histogram(
        metric.name,
        metric.unit,
        metric.description,
        explicit_bucket_boundaries_advisory=metric.buckets,
    ).record
