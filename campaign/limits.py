"""What a campaign can cost at most: the figures that the loop obeys and preflight multiplies."""

from __future__ import annotations

from collections.abc import Mapping

from campaign.config import TaskConfig
from executors.base import KILL_GRACE
from executors.config import (
    AllocationConfig,
    ExecutorConfig,
    LocalConfig,
    MpiConfig,
    ParslConfig,
    SlurmConfig,
    ThreadsConfig,
    shares_job,
)

DRAWS = 20
"""Times the fallback's candidates for a slot may be rejected before the run is stopped."""


def worst_case(task: TaskConfig) -> float:
    """Node-hours one try can cost: its nodes for its walltime and for the grace of a kill."""
    return task.nodes * (task.walltime + KILL_GRACE) / 3600


def share(task: TaskConfig, executors: Mapping[str, ExecutorConfig], *, in_job: bool) -> float:
    """Nodes of an allocation that a try keeps busy: whole ones, or a worker's part of one.

    0 where it runs in none. Workers beside the driver share its node; they count where the run
    pays for the job the driver is in (``in_job``), and no executor shares that.
    """
    match executors[task.executor]:
        case MpiConfig():
            return float(task.nodes)
        case SlurmConfig(workers_per_node=workers) | AllocationConfig(workers_per_node=workers):
            return task.ranks / workers
        case ThreadsConfig() | LocalConfig():
            if not in_job or any(map(shares_job, executors.values())):
                return 0.0
            beside = (
                one for one in executors.values() if isinstance(one, ThreadsConfig | LocalConfig)
            )
            return task.ranks / sum(one.workers for one in beside)
        case ParslConfig():
            return 0.0
