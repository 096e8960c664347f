"""Ending a run from outside: its drivers, its pilot jobs and their steps, and nothing else."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from campaign.config import CampaignConfig
from campaign.events import Submitted, Withdrawn
from campaign.ledger import Ledger, LedgerError, read
from campaign.lock import Holder, LockHeldError, alive_holder
from campaign.slurmqueue import QueuedJob, is_driver
from campaign.state import CampaignState, fold
from campaign.status import config_of
from campaign.waiting import look
from executors import slurm

WHY = "cancelled by simgate cancel"
PATIENCE = 90.0
"""Seconds in which everything that was told to end has ended."""
_AGAIN = 2.0  # seconds until a driver that was told to stop is told to stop at once
_LOOK = 0.2


class CancelError(Exception):
    """Something of the run does not end: what, and where."""


def cancel(run_dir: Path, tell: Callable[[str], None]) -> int:
    """End the run and say what was ended; how much that was, 0 when nothing ran or waited.

    What waits goes first, so that no driver's end lets a successor start; then the drivers,
    which end their tasks and pilot jobs themselves; then whatever is left. Raises ``SlurmError``
    where Slurm does not answer and :class:`CancelError` for what does not end.
    """
    state = fold(read(run_dir))
    config = config_of(state, run_dir)
    jobs = _jobs(run_dir, state, config)  # a Slurm that is silent is told before anything is done
    running = [job.id for job in jobs if is_driver(job) and not job.waits]
    parts = (
        _end_jobs(run_dir, state, config, tell, lambda job: is_driver(job) and job.waits),
        _end_driver(run_dir, running, tell),
        _end_jobs(run_dir, state, config, tell, is_driver),
        _end_jobs(run_dir, state, config, tell, lambda _: True),
    )
    ended: list[str] = []
    try:
        for one in itertools.chain(*parts):
            ended.append(one)
    finally:
        _write_down(run_dir, ended)
    return len(ended)


def _end_jobs(
    run_dir: Path,
    state: CampaignState,
    config: CampaignConfig,
    tell: Callable[[str], None],
    which: Callable[[QueuedJob], bool],
) -> Iterator[str]:
    """Cancel the run's jobs that ``which`` picks, until none is left; their ids."""
    deadline = time.monotonic() + PATIENCE
    told: set[str] = set()
    while jobs := tuple(filter(which, _jobs(run_dir, state, config))):
        if time.monotonic() > deadline:
            jobs = tuple(job for job in jobs if job.state != "COMPLETING")  # over, but for the rest
            if not jobs:
                return
            left = ", ".join(f"{job.id} ({job.state.lower()})" for job in jobs)
            raise CancelError(f"{run_dir}: Slurm still has job {left}")
        for job in jobs:
            if job.id not in told:
                slurm.cancel([job.id])
                told.add(job.id)
                tell(f"cancelled Slurm job {job.id}, {_what(job)}")
                yield job.id
        time.sleep(_LOOK)


def _jobs(run_dir: Path, state: CampaignState, config: CampaignConfig) -> tuple[QueuedJob, ...]:
    queue = look(run_dir, state, config)
    if queue.unknown:
        raise slurm.SlurmError(queue.unknown)
    return queue.jobs


def _what(job: QueuedJob) -> str:
    return ("the driver" if is_driver(job) else "a pilot") + (", which waited" * job.waits)


def _end_driver(run_dir: Path, jobs: list[str], tell: Callable[[str], None]) -> Iterator[str]:
    """End a driver that is a process of this host; one in a job of ``jobs`` ends with that."""
    holder = alive_holder(run_dir)
    here = holder is not None and holder.host == socket.gethostname()
    if holder is None or (_job_of(holder.pid) in jobs if here else jobs):
        return
    if not here:
        where = f"process {holder.pid} on host {holder.host!r}"
        raise CancelError(f"{run_dir}: {where} drives it; run simgate cancel there")
    deadline = time.monotonic() + PATIENCE
    _send(holder)
    tell(f"told process {holder.pid}, the driver, to end")
    yield ""
    second = time.monotonic() + _AGAIN
    while alive_holder(run_dir) == holder:
        if time.monotonic() > deadline:
            raise CancelError(f"{run_dir}: process {holder.pid} still drives it; kill -9 ends it")
        if second and time.monotonic() > second:
            second = 0.0
            _send(holder)
        time.sleep(_LOOK)


def _send(holder: Holder) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(holder.pid, signal.SIGTERM)


def _job_of(pid: int) -> str:
    """The Slurm job a process of this host is in, "" for none."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    found = (one for one in environment if one.startswith(b"SLURM_JOB_ID="))
    return next(found, b"=").partition(b"=")[2].decode()


def _write_down(run_dir: Path, ended: list[str]) -> None:
    """Let the ledger say so, unless a driver on another host seems to hold it still."""
    jobs = [job for job in ended if job]
    if not jobs:
        return
    with contextlib.suppress(LockHeldError, LedgerError), Ledger(run_dir) as ledger:
        cut_short = fold(ledger.recovered).slurm.open is not None
        ledger.append(
            *([Submitted(refused=WHY)] if cut_short else []), Withdrawn(jobs=jobs, reason=WHY)
        )
