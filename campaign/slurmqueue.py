"""Slurm's queue, as far as it concerns one run: what is put there, what it holds, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from campaign.events import Submitted
from campaign.slurmjobs import SlurmJobs
from executors import slurm

SCRIPT = "slurm.sbatch"
"""The file in the run directory that holds what was submitted last, and what a chain submits."""
_DRIVER = "driver:"  # no label of an executor has a colon, so no pilot job is called like this
_FORM = "%i|%T|%r|%S|%j|%Z"
_WORDS: Mapping[str, str] = {
    "Priority": "other jobs go first",
    "Resources": "no nodes are free",
    "Dependency": "it starts when the job before it has ended",
    "DependencyNeverSatisfied": "the job it waits for ended in a way that never lets it start",
    "BeginTime": "it may not start yet",
    "JobHeldUser": "it is held; scontrol release lets it go",
    "JobHeldAdmin": "an administrator holds it",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition takes no jobs now",
    "PartitionNodeLimit": "it asks for more nodes than the partition gives",
    "PartitionTimeLimit": "it asks for more time than the partition gives",
    "PartitionConfig": "the partition does not give what it asks for",
    "ReqNodeNotAvail": "nodes it needs are down, drained or reserved",
    "NodeDown": "a node it needs is down",
    "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions": (
        "nodes it needs are down, drained or reserved"
    ),
    "Licenses": "a licence it needs is in use",
    "Reservation": "its reservation has not begun",
    "InvalidAccount": "its account is not valid",
    "InvalidQOS": "its quality of service is not valid",
    "JobArrayTaskLimit": "too many of its kind are running",
    "Prolog": "its nodes are being prepared",
    "Cleaning": "it is being put back in order after an earlier start",
}
_LIMITS = (
    ("Assoc", "a limit of its account is reached"),
    ("QOS", "a limit of its quality of service is reached"),
    ("Max", "a limit on jobs is reached"),
)


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job of the run that Slurm has. ``start`` is text as Slurm writes it, "" unknown."""

    id: str
    name: str
    state: str  # Slurm's own word
    reason: str  # Slurm's own word, "" for none
    start: str

    @property
    def waits(self) -> bool:
        return self.state == "PENDING"

    @property
    def why(self) -> str:
        """Why it waits, in words, with Slurm's own one behind them where it is another."""
        told = words(self.reason)
        return told if told == self.reason else f"{told} ({self.reason})"


def driver_name(run_dir: Path, campaign: str) -> str:
    """The name of a driver's job: by it a job is found whose id nobody wrote down."""
    return f"{slurm.job_prefix(run_dir)}{_DRIVER}{campaign}"


def jobs_of(run_dir: Path, known: SlurmJobs) -> tuple[QueuedJob, ...]:
    """The run's jobs that wait or run: drivers and pilots, and nobody else's.

    Raises :class:`executors.slurm.SlurmError`. One command, so bounded by its time limit.
    """
    listed = map(_read, slurm.queue(_FORM))
    return tuple(job for job, where in listed if _ours(job, where, run_dir, known))


def given(run_dir: Path, text: str, known: SlurmJobs, dependency: str = "") -> Submitted | None:
    """Give a script to Slurm; how that ended, None when nobody can tell.

    A controller that is slow to answer may have queued the job: then the queue is asked.
    """
    try:
        return Submitted(job=slurm.submit(text, folder=str(run_dir), dependency=dependency))
    except slurm.NoAnswerError:
        pass
    except slurm.SlurmError as error:
        return Submitted(refused=str(error))
    with contextlib.suppress(slurm.SlurmError):
        unknown = unrecorded(jobs_of(run_dir, known), known)
        return Submitted(job=unknown.id) if unknown is not None else None
    return None


def unrecorded(jobs: tuple[QueuedJob, ...], known: SlurmJobs) -> QueuedJob | None:
    """A driver's job that the ledger does not know: who submitted it died before he wrote it."""
    found = (job for job in jobs if is_driver(job) and job.id not in known.all)
    return next(found, None)


def is_driver(job: QueuedJob) -> bool:
    return _DRIVER in job.name


def words(reason: str) -> str:
    """Slurm's reason as a sentence; what we have no words for is left as it is."""
    for known in (reason, reason.split(",")[0]):
        if known in _WORDS:
            return _WORDS[known]
    limit = next((text for start, text in _LIMITS if reason.startswith(start)), "")
    return limit or reason.replace("_", " ")


def _ours(job: QueuedJob, where: str, run_dir: Path, known: SlurmJobs) -> bool:
    """Whether a job that starts in the folder ``where`` is of this run.

    Its name says so; or the ledger does, where the directory was submitted under another path.
    The ledger of a copy names the jobs of the original, which are not the copy's.
    """
    if job.name.startswith(slurm.job_prefix(run_dir)):
        return True
    submissions = [*known.all.values(), *([known.open] if known.open else [])]
    named = tuple(one.name.partition(_DRIVER)[0] for one in submissions)
    if job.id not in known.all and not job.name.startswith(named):
        return False
    places = (Path(where), *Path(where).parents[:2])  # a pilot's folder is in the run directory
    return not places[0].exists() or any(place.samefile(run_dir) for place in places)


def _read(line: str) -> tuple[QueuedJob, str]:
    number, state, reason, start, name, where = line.split("|", 5)
    start = "" if start in ("N/A", "Unknown", "NONE") else start
    return QueuedJob(number, name, state, "" if reason == "None" else reason, start), where
