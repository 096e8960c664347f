"""What a campaign can cost at most: the figures that the loop obeys and preflight multiplies."""

from __future__ import annotations

from campaign.config import TaskConfig
from executors.base import KILL_GRACE

DRAWS = 20
"""Times the fallback's candidates for a slot may be rejected before the run is stopped."""


def worst_case(task: TaskConfig) -> float:
    """Node-hours one try can cost: its nodes for its walltime and for the grace of a kill."""
    return task.nodes * (task.walltime + KILL_GRACE) / 3600
