"""Ledger events in words: one line for each decision, to be read and to be searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from campaign import events
from campaign.allocated import PILOT
from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
)
from campaign.fields import duration_text
from campaign.listing import runs
from campaign.model import SIMULATION, Disposition
from campaign.state import CampaignState
from checks.finding import Severity, Status
from executors.base import TaskStatus

_WORDS = {
    Disposition.ACCEPTED: "accepted",
    Disposition.REPAIRED: "repaired",
    Disposition.FALLBACK: "FALLBACK, filled by the surrogate",
    Disposition.RETURNED: "RETURNED, runs although it was rejected",
    Disposition.TOMBSTONE: "TOMBSTONE, nothing runs",
}

_SOURCES = {
    "slurm": "Slurm",
    "sacct": "Slurm's accounting",
    "clock": "our clock",
    "worst case": "nobody's word: all that was reserved",
}

_CLIP = 300  # characters of a reason that are shown
_SINGLY = 32  # slots, or runs of them, that are named


def line(event: events.Event, state: CampaignState) -> str:
    """What an event says to a person, "" for one that only keeps the books.

    ``state`` has the event in it already.
    """
    match event:
        case events.Asked():
            asked = f"r{event.round} g{event.generation} asks for {len(event.slots)} candidates"
            return f"{asked}: {_slots(event.slots)}"
        case events.Answered():
            return _answered(event, state)
        case events.CallFailed():
            return _call_failed(event)
        case events.Unanswered():
            where = f"r{event.round} g{event.generation}"
            return f"{where} NO ANSWER, the round asks no more: {plain(event.reason)}"
        case events.Filled():
            again = f", draw {event.draw}" if event.draw > 1 else ""
            return f"r{event.round} the surrogate fills {_slots(event.slots)}{again}"
        case events.Judged():
            return "\n".join(_rejections(event))
        case events.TaskEnded():
            return _task(event, state)
        case events.SlotEnded():
            return _slot(event)
        case events.Reverified():
            return _reverified(event)
        case events.RoundEnded():
            spent = state.usage.counter("node_hours").spent
            return f"r{event.round} ended, {spent:.4g} node-hours spent"
        case _:
            return _of_jobs(event, state)


def _of_jobs(event: events.Event, state: CampaignState) -> str:
    """The lines about the driver's jobs and its pilot jobs."""
    match event:
        case events.JobStarted():
            slurm = f", Slurm job {event.slurm}" if event.slurm else ""
            return f"job {event.job} on {event.host}, process {event.pid}{slurm}"
        case events.Submitted():
            if event.refused:
                return f"Slurm took no job: {plain(event.refused)}"
            return f"Slurm job {event.job} goes on with the run"
        case events.Withdrawn():
            return f"Slurm job {', '.join(event.jobs)} taken back: {plain(event.reason)}"
        case events.Signalled():
            return (
                f"{event.signal} received: nothing new starts, running tasks have "
                f"{event.grace:g} s; once more to stop at once"
            )
        case events.JobEnded():
            return f"job {event.job} {event.outcome}: {plain(event.reason)}"
        case AllocationQueued() | AllocationBegan():
            return _pilot(event, state)
        case AllocationEnded() if event.job:
            took = f"{event.spent:.4g} node-hours, by {_SOURCES[event.source]}"
            return f"Slurm job {event.job} is over: {took}"
        case _:
            return ""


def point_text(point: Mapping[str, object]) -> str:
    """A candidate in one line: ``density=0.82 steps=4``, floats to six digits."""
    return " ".join(f"{name}={number(value)}" for name, value in point.items())


def number(value: object) -> str:
    """A value for a person: floats to six significant digits."""
    return f"{value:.6g}" if isinstance(value, float) else plain(str(value))


def plain(reason: str) -> str:
    """What somebody else wrote, on one line of bounded length and without control characters."""
    line = " ".join(reason[: 4 * _CLIP].split())
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    return line if len(line) <= _CLIP else f"{line[: _CLIP - 1]}…"


def _slots(slots: Sequence[int]) -> str:
    """Each by itself, as it is searched for; of many, runs by their ends."""
    if len(slots) <= _SINGLY:
        return " ".join(f"s{slot}" for slot in slots)
    ends = [f"s{run[0]}" if len(run) == 1 else f"s{run[0]}-s{run[-1]}" for run in runs(slots)]
    shown = " ".join(ends[:_SINGLY])
    return f"{shown} and more" if len(ends) > _SINGLY else shown


def _rejections(event: events.Judged) -> Iterator[str]:
    for verdict in event.verdicts:
        where = f"r{event.round} s{verdict.slot}"
        for finding in verdict.findings:
            if finding.status == Status.REJECT:
                yield f"{where} rejected by {finding.check}: {plain(finding.reason)}"
        for outcome in verdict.expect.get("outcomes", ()):
            if not outcome["passed"] and not outcome["skipped"]:
                word = _word(outcome, event.observed, outcome["id"] in verdict.errors)
                yield f"{where} {word} {outcome['id']}: {plain(outcome['detail'])}"


def _word(outcome: Mapping[str, str], observed: bool, error: bool) -> str:
    """What a rule that did not pass has done."""
    if error:
        return "NOT CHECKED by"
    if outcome["severity"] != Severity.ERROR:
        return f"{outcome['severity']} by"
    return "observed by" if observed else "rejected by"


def _answered(event: events.Answered, state: CampaignState) -> str:
    """Only an answer that is rejected as a whole; of others every candidate is told."""
    stage, reason = event.stage, event.reason
    if not stage:
        stage, reason = state.round(event.round).refused(event.generation)
    where = f"r{event.round} g{event.generation}"
    return f"{where} answer rejected at {stage}: {plain(reason)}" if stage else ""


def _call_failed(event: events.CallFailed) -> str:
    """A server that is not up yet may be called for minutes: then every 2^n-th call is told."""
    if event.free and event.attempt & (event.attempt - 1):
        return ""
    where = f"r{event.round} g{event.generation} call {event.attempt}"
    again = f"; again in {event.wait:.3g} s" if event.wait else ""
    return f"{where} failed: {plain(event.reason)}{again}"


def _pilot(event: AllocationQueued | AllocationBegan, state: CampaignState) -> str:
    one = state.allocations.open.get(event.allocation)
    if one is None or one.asked.what != PILOT:
        return ""
    if isinstance(event, AllocationBegan):
        return f"pilot job {one.job} has its {one.asked.nodes} nodes"
    time, most = duration_text(one.asked.walltime), f"at most {one.asked.reserved:.4g} node-hours"
    return f"pilot job {one.job} queued: {one.asked.nodes} nodes for {time}, {most}"


def _task(event: events.TaskEnded, state: CampaignState) -> str:
    tries = state.tasks[event.task, event.candidate]
    where = f"r{tries.round} s{tries.slot}"
    took = f"({event.seconds:.1f} s{', adopted' if event.adopted else ''})"
    if event.status == TaskStatus.CANCELLED:
        return f"{where} {event.task} cut off: {plain(event.reason)} {took}"
    if event.status != TaskStatus.DONE:
        return f"{where} {event.task} FAILED, {event.status}: {plain(event.reason)} {took}"
    if event.task == SIMULATION:
        shown = {k: v for k, v in event.value.items() if isinstance(v, (int, float))}
        return f"{where} {event.task}: {point_text(shown)} {took}"
    if tries.rejects:
        return f"{where} rejected by {event.task}: {plain(event.value['reason'])} {took}"
    return f"{where} {event.task} passed {took}"


def _slot(event: events.SlotEnded) -> str:
    words = _WORDS[Disposition(event.disposition)]
    text = f"r{event.round} s{event.slot} {words} {point_text(event.parameters)}".rstrip()
    if event.unanswered or event.unchecked:
        text += f" (validation incomplete: {', '.join([*event.unanswered, *event.unchecked])})"
    return f"{text}: {plain(event.reason)}" if event.reason else text


def _reverified(event: events.Reverified) -> str:
    where = f"r{event.round} s{event.slot} verified again"
    if event.rejected_by:
        return (
            f"{where}: rejected by {event.rejected_by}: {plain(event.reason)}; it no longer counts"
        )
    if event.unanswered:
        return f"{where}: still no answer from {', '.join(event.unanswered)}"
    return f"{where}: complete"
