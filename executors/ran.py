"""How long a job of Slurm's has run, and who says so."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from executors import slurm

_FORM = "--format=JobIDRaw,ElapsedRaw,Start,JobName"


class Source(StrEnum):
    """Whose word a time is."""

    SLURM = "slurm"  # the controller's, which knows a job for some minutes after its end
    SACCT = "sacct"  # the accounting's
    CLOCK = "clock"  # ours: from the start Slurm told until we looked
    WORST = "worst case"  # nobody's: all that was asked for


@dataclass(frozen=True, slots=True)
class Ran:
    """A job ran for ``seconds``, which Slurm counts whole; ``job`` is "" for one never queued.

    ``since`` is when it started, seconds since the epoch, 0 for never or unknown.
    """

    job: str
    seconds: float
    source: Source
    since: float = 0.0


NEVER = Ran("", 0.0, Source.CLOCK)
"""A job that Slurm was never asked for."""


def of_number(number: str, name: str) -> Ran | None:
    """What Slurm says of a job; None when it knows none of that number and name any more.

    A job that is not over has run until now. Raises :class:`executors.slurm.SlurmError`.
    """
    found = slurm.job(number)
    if found is not None and found.name == name:
        return of(found, time.time())
    return next((one for one in _accounted(f"--jobs={number}", name) or () if one.job), None)


def of_name(name: str, since: float, known: Collection[str]) -> Ran | None:
    """What became of a job whose number nobody wrote down; None when Slurm cannot tell.

    It was submitted ``since`` at the earliest, and is none of those ``known`` by number.
    Raises :class:`executors.slurm.SlurmError`.
    """
    listed = (line.partition("|") for line in slurm.queue("%i|%j", "--states=all"))
    for number, _, called in listed:
        if called == name and number not in known:
            return of_number(number, name)
    day = datetime.fromtimestamp(since).isoformat(timespec="seconds")
    told = _accounted(f"--name={name}", name, f"--starttime={day}")
    if told is None:
        return None
    left = (one for one in told if one.job not in known)
    return next(left, Ran("", 0.0, Source.SACCT))


def of(job: slurm.Job, now: float) -> Ran:
    """How long a job has run that Slurm told about, ``now`` seconds since the epoch."""
    if job.waits or not job.start:
        return Ran(job.id, 0.0, Source.SLURM)
    if job.ending is not None or job.state == "COMPLETING":
        return Ran(job.id, max(0.0, job.end - job.start), Source.SLURM, job.start)
    return Ran(job.id, max(0.0, now - job.start), Source.CLOCK, job.start)


def _accounted(which: str, name: str, *options: str) -> list[Ran] | None:
    """The accounting's word on jobs of that name; None where there is no accounting."""
    try:
        lines = slurm.accounting(which, *options, _FORM)
    except slurm.SlurmError:
        return None
    rows = [line.split("|", 3) for line in lines]
    return [
        Ran(number, float(elapsed or 0), Source.SACCT, slurm.epoch(start))
        for number, elapsed, start, called in rows
        if called == name
    ]
