"""A chain of jobs: each submits its successor before it ends, until there is no reason to go on.

The successor waits for the end of the job before it, so it costs nothing while that one works; it
is queued before the end is near, because a job that Slurm kills can submit nothing any more.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from campaign.clock import Clock
from campaign.events import Submitted, Submitting, Withdrawn
from campaign.jobconfig import ChainConfig
from campaign.loop import Ending
from campaign.model import JobOutcome
from campaign.recorder import Recorder
from campaign.slurmjobs import SlurmJobs
from campaign.slurmqueue import SCRIPT, given, jobs_of, unrecorded
from executors import slurm

SILENT = "Slurm's controller does not answer"
AGAIN = 5.0
"""Seconds between two tries to reach a controller that does not answer."""
LAST_TRY = 15.0
"""Seconds before the end of a job after which it is not tried again."""


def chain_ends(jobs: SlurmJobs, job: str, limits: ChainConfig) -> str:
    """Why a job gets no successor, "" when it does. It must be a link of a chain."""
    link = jobs.all[job].link
    if link >= limits.jobs:
        return f"job.chain.jobs: {link} of {limits.jobs} jobs have run"
    if jobs.idle >= limits.idle_jobs:
        return f"job.chain.idle_jobs: {jobs.idle} jobs in a row ended no task and no round"
    return ""


class Chain:
    """The present job's place in its chain. Where there is no chain, all of it does nothing."""

    def __init__(self, recorder: Recorder, run_dir: Path, limits: ChainConfig, clock: Clock):
        self._recorder = recorder
        self._run_dir = run_dir
        self._limits = limits
        self._job = clock.job
        self._clock = clock
        self._turn = asyncio.Lock()

    async def claim(self) -> None:
        """Write down the present job where its submit died before it could."""
        jobs = self._jobs
        mine = jobs.open is not None and jobs.open.name == os.environ.get("SLURM_JOB_NAME")
        if self._job and mine and self._job not in jobs.all:
            await self._recorder.record(Submitted(job=self._job))

    async def extend(self) -> str:
        """See that there is a successor if there is to be one; why there is none, else ""."""
        async with self._turn:
            if not self._in_chain or self._jobs.ahead:
                return ""
            if reason := chain_ends(self._jobs, self._job, self._limits):
                return reason
            await self._submit()
            return self._jobs.refused or (SILENT if self._jobs.open is not None else "")

    async def settle(self, ending: Ending, *, told: bool) -> Ending:
        """Do what follows from the end of the job; ``told`` to end it by somebody.

        A job that is stopped by its clock, or by a cap per job, has a successor; the end of the
        campaign, a failure and a person's word end the chain.
        """
        if not self._in_chain:
            return ending
        if ending.outcome is not JobOutcome.STOPPED or told:
            await self.withdraw(f"the job before it ended: {ending.reason}")
            return ending
        if reason := await self._patiently():
            return replace(ending, reason=f"{ending.reason}; the chain ends, {reason}")
        return await self._unless_idle(ending)

    async def withdraw(self, reason: str) -> None:
        """Take back what was submitted ahead. Slurm's refusal to do so is left to a person."""
        async with self._turn:
            jobs = list(self._jobs.ahead)
            if not self._in_chain or not jobs:
                return
            try:
                await asyncio.to_thread(slurm.cancel, jobs)
            except slurm.SlurmError as error:
                reason = f"{reason}; not done: {error}"
            await self._recorder.record(Withdrawn(jobs=jobs, reason=reason))

    async def _patiently(self) -> str:
        """As :meth:`extend`, with patience for a controller that does not answer just now."""
        until = self._clock.now() + slurm.PATIENCE
        while True:
            reason = await self.extend()
            late = self._clock.left < LAST_TRY or self._clock.now() > until
            if reason != SILENT or late:
                return reason
            await asyncio.sleep(AGAIN)

    async def _unless_idle(self, ending: Ending) -> Ending:
        """A successor was queued while there was still hope; take it back if there was no cause."""
        reason = chain_ends(self._jobs, self._job, self._limits)
        if not reason:
            return ending
        await self.withdraw(reason)
        return replace(ending, reason=f"{ending.reason}; the chain ends, {reason}")

    @property
    def _jobs(self) -> SlurmJobs:
        return self._recorder.state.slurm

    @property
    def _in_chain(self) -> bool:
        mine = self._jobs.all.get(self._job)
        return mine is not None and mine.chain

    async def _submit(self) -> None:
        if self._jobs.open is not None:  # Slurm did not say what became of the last one
            try:
                jobs = await asyncio.to_thread(jobs_of, self._run_dir, self._jobs)
            except slurm.SlurmError:
                return
            if (left := unrecorded(jobs, self._jobs)) is not None:
                await self._recorder.record(Submitted(job=left.id))
                return
        mine = self._jobs.all[self._job]
        follows = f"afterany:{self._job}"
        successor = Submitting(name=mine.name, link=mine.link + 1, chain=True, dependency=follows)
        await self._recorder.record(successor)
        ended = await asyncio.to_thread(self._give, follows)
        if ended is not None:
            await self._recorder.record(ended)

    def _give(self, dependency: str) -> Submitted | None:
        try:
            text = (self._run_dir / SCRIPT).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return Submitted(refused=f"{self._run_dir / SCRIPT}: {error}")
        return given(self._run_dir, text, self._jobs, dependency)
