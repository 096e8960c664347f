"""What of a run waits in Slurm's queue, and what that makes of the run; reads, never writes."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.config import CampaignConfig
from campaign.model import JobOutcome
from campaign.slurmqueue import QueuedJob, is_driver, jobs_of
from campaign.state import CampaignState
from executors.config import pilot
from executors.slurm import SlurmError

GONE = "its driver ended without a word, with its Slurm job; resume or submit goes on"


@dataclass(frozen=True, slots=True)
class Queue:
    """The run's jobs at Slurm; ``unknown`` says why they cannot be told, "" when they can."""

    jobs: tuple[QueuedJob, ...] = ()
    unknown: str = ""

    @property
    def waiting(self) -> tuple[QueuedJob, ...]:
        return tuple(job for job in self.jobs if job.waits)

    def as_data(self) -> list[dict[str, Any]] | None:
        """The waiting jobs for ``status --json``, None when nobody knows."""
        if self.unknown:
            return None
        return [
            {
                "job": job.id,
                "what": "driver" if is_driver(job) else "pilot",
                "state": job.state,
                "reason": job.reason,
                "why": job.why,
                "start": job.start,
            }
            for job in self.waiting
        ]


def look(run_dir: Path, state: CampaignState, config: CampaignConfig) -> Queue:
    """Ask Slurm once, in bounded time, and only where the run has to do with Slurm."""
    submitted = state.slurm.all or state.slurm.open is not None
    if not submitted and not any(map(pilot, config.executors.values())):
        return Queue()
    if shutil.which("squeue") is None:
        return Queue(unknown="there is no squeue here")
    try:
        return Queue(jobs_of(run_dir, state.slurm))
    except SlurmError as error:
        return Queue(unknown=str(error))


def standing(found: tuple[str, str], state: CampaignState, queue: Queue) -> tuple[str, str]:
    """``(state, reason)`` of a run whose ledger says ``found``, with what Slurm has of it."""
    slurm, begun = state.slurm, state.job is not None
    if found[0] == "running" and _is_gone(state, queue):
        return "stopped", GONE
    if found[0] != JobOutcome.STOPPED:
        return found
    if slurm.ahead:
        return _ahead(slurm.ahead[-1], queue)
    if slurm.refused and not begun:
        return "stopped", f"Slurm took no job: {slurm.refused}"
    if slurm.withdrawn:
        return "stopped", slurm.withdrawn
    if slurm.open is not None:
        return "stopped", "a submit was cut short; simgate submit RUN looks for what it left"
    return found


def _is_gone(state: CampaignState, queue: Queue) -> bool:
    """Whether a driver whose lock is still fresh died with its job."""
    job = "" if state.job is None else state.job.slurm
    here = any(one.id == job for one in queue.jobs)
    return job in state.slurm.all and not queue.unknown and not here


def _ahead(job: str, queue: Queue) -> tuple[str, str]:
    """A job was submitted, and no driver has begun in it."""
    if queue.unknown:
        return "queued", f"Slurm job {job}, says the ledger; {queue.unknown}"
    here = next((one for one in queue.jobs if one.id == job), None)
    if here is None:
        return "stopped", f"Slurm job {job} left the queue before its driver started; see slurm.log"
    return "queued", f"Slurm job {job}: {here.why if here.waits else 'it is starting'}"
