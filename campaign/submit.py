"""Giving a run to Slurm: the script, whether Slurm takes it, and what the ledger says about it.

The ledger is told before Slurm is, and again after it. Whatever dies in between leaves a job
that is found again by its name: every job of a run's driver has the same one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.drive import RunDirError, refuse_dry_run
from campaign.events import RunCreated, Submitted, Submitting
from campaign.jobconfig import JobConfig
from campaign.jobfit import job_problems
from campaign.jobscript import OUTPUT, TemplateError, script
from campaign.ledger import Ledger, LedgerError
from campaign.model import JobOutcome
from campaign.problems import ConfigError, Problem
from campaign.slurmjobs import SlurmJobs
from campaign.slurmqueue import (
    SCRIPT,
    QueuedJob,
    driver_name,
    given,
    is_driver,
    jobs_of,
    unrecorded,
)
from campaign.state import CampaignState, fold
from campaign.status import config_of
from executors import slurm


@dataclass(frozen=True, slots=True)
class Submission:
    """What came of a submit: Slurm's id, and whether an interrupted submit had left that job."""

    job: str
    run_dir: Path
    found: bool = False

    @property
    def output(self) -> Path:
        return self.run_dir / OUTPUT


def require_job(loaded: LoadedConfig) -> None:
    """Refuse a config whose tasks could never run in the job it asks for: ``ConfigError``."""
    _job(loaded.config)
    if found := job_problems(loaded):
        raise ConfigError(found, str(loaded.path))


def batch_script(config: CampaignConfig, run_dir: Path, folder: Path) -> str:
    """The script of the driver's job. Raises ``ConfigError`` where there is none to be had."""
    name = driver_name(run_dir, config.name)
    try:
        text = script(_job(config), name, run_dir, folder)
    except TemplateError as error:
        raise ConfigError([Problem("job.template", str(error))]) from error
    if name not in text:
        message = f"the script does not say the job's name, {name!r}; use {{{{ name }}}}"
        raise ConfigError([Problem("job.template", message)])
    return text


def submit(
    run_dir: Path, config: CampaignConfig, folder: Path, created: RunCreated | None, *, chain: bool
) -> Submission:
    """Queue a job that goes on with the run: a new one with ``created``, else one that exists.

    Raises ``SlurmError`` with Slurm's words when it takes no such job, :class:`RunDirError` when
    the run is not to be submitted, ``LockHeldError`` while a driver writes it.
    """
    text = batch_script(config, run_dir, folder)
    if absent := slurm.missing():
        raise slurm.SlurmError(absent)
    if refused := slurm.refusal(text, folder=str(run_dir)):
        raise slurm.SlurmError(refused)
    jobs_of(run_dir, SlurmJobs())  # a queue that does not answer leaves nothing behind either
    with _ledger(run_dir, created) as (ledger, state):
        if (left := _left_behind(run_dir, state)) is not None:
            ledger.append(Submitted(job=left.id))
            return Submission(left.id, run_dir, found=True)
        _write(run_dir / SCRIPT, text)
        intent = Submitting(name=driver_name(run_dir, config.name), link=1, chain=chain)
        ledger.append(*([created] if created is not None else []), intent)
        return Submission(_queue(ledger, run_dir, text, state), run_dir)


def _queue(ledger: Ledger, run_dir: Path, text: str, state: CampaignState) -> str:
    """Submit what the ledger has just been told of; the job's id."""
    ended = given(run_dir, text, state.slurm)
    if ended is None:
        raise slurm.SlurmError(
            "sbatch: no answer, and the queue does not say whether it took the job; "
            f"submit again with: simgate submit {run_dir}"
        )
    try:
        ledger.append(ended)
    except LedgerError:
        if ended.job:  # nobody would know of it
            slurm.cancel([ended.job])
        raise
    if ended.refused:
        raise slurm.SlurmError(ended.refused)
    return ended.job


def _left_behind(run_dir: Path, state: CampaignState) -> QueuedJob | None:
    """The job an interrupted submit left. Raises when the run is over or has a job otherwise."""
    if state.job_ended is not None and state.job_ended.outcome == JobOutcome.DONE:
        raise RunDirError(f"{run_dir}: done ({state.job_ended.reason}); there is nothing to submit")
    jobs = jobs_of(run_dir, state.slurm)
    if state.slurm.open is not None and (left := unrecorded(jobs, state.slurm)) is not None:
        return left
    for job in filter(is_driver, jobs):
        raise RunDirError(
            f"{run_dir}: Slurm job {job.id} ({job.state.lower()}) has this run; "
            f"end it first with: simgate cancel {run_dir}"
        )
    return None


@contextlib.contextmanager
def _ledger(run_dir: Path, created: RunCreated | None) -> Iterator[tuple[Ledger, CampaignState]]:
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(f"{run_dir}: cannot be made: {error.strerror}") from error
    with Ledger(run_dir) as ledger:
        state = fold(ledger.recovered)
        refuse_dry_run(state.run, run_dir)
        if created is not None and state.run is not None:
            raise RunDirError(f"{run_dir}: already holds a run; use simgate submit {run_dir}")
        if created is None:
            config_of(state, run_dir)  # says what an empty ledger lacks
        yield ledger, state


def _write(path: Path, text: str) -> None:
    """Whole or not at all: a chain submits what is there."""
    half = path.with_name(f".{path.name}.new")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def _job(config: CampaignConfig) -> JobConfig:
    if config.job is None:
        message = "missing; say what to ask Slurm for, at least job: {walltime: 1h}"
        raise ConfigError([Problem("job", message)])
    return config.job
