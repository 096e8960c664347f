"""Whether what a campaign asks of Slurm is enough for what is to run there. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.fields import duration_text
from campaign.jobconfig import JobConfig
from campaign.preflight import tasks
from campaign.problems import Loc, Problem
from executors.allocation import share
from executors.base import KILL_GRACE

STARTING = 10.0
"""Seconds of a job that go into starting the driver and its workers."""


def job_problems(loaded: LoadedConfig) -> list[Problem]:
    """What could never run in the job that ``simgate submit`` asks for; nothing without ``job``."""
    job = loaded.config.job
    found = () if job is None else _problems(loaded.config, job)
    return [loaded.problem(loc, message) for loc, message in found]


def _problems(config: CampaignConfig, job: JobConfig) -> Iterator[tuple[Loc, str]]:
    for loc, task in tasks(config):
        needed = task.walltime + KILL_GRACE + STARTING + job.margin
        if needed > job.walltime:
            yield (
                (*loc, "walltime"),
                f"{duration_text(task.walltime)} in jobs of {duration_text(job.walltime)} with a "
                f"margin of {duration_text(job.margin)}: it could never start; "
                f"give job.walltime at least {duration_text(needed)}",
            )
    try:
        share(config.executors, ["node"] * job.nodes)
    except ValueError as error:
        yield ("job", "nodes"), str(error)
