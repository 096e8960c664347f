"""The nodes of the Slurm job the driver is in, shared out among the executors that use them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executors import slurm
from executors.config import (
    AllocationConfig,
    ExecutorConfig,
    MpiConfig,
    SlurmConfig,
    pilot,
    shares_job,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the workers of one executor are: ``count`` nodes, by ``names`` when they are known.

    ``job`` is the Slurm job the nodes belong to, ``""`` without one and for pilots to come.
    """

    count: int = 1
    names: tuple[str, ...] = ()
    job: str = ""


def places(configs: Mapping[str, ExecutorConfig]) -> dict[str, Place]:
    """The place of every executor. Raises ``ValueError`` where there are too few nodes."""
    names: tuple[str, ...] = ()
    job = slurm.current_job()
    if any(map(shares_job, configs.values())):
        if not job:
            shared = next(label for label, config in configs.items() if shares_job(config))
            raise ValueError(
                f"executor {shared!r} works on the nodes of a Slurm job, and this is none; "
                "start the campaign with simgate submit"
            )
        names = slurm.host_names(os.environ.get("SLURM_JOB_NODELIST", ""))
    shared_out = share(configs, names)
    return {
        label: Place(len(shared_out[label]), shared_out[label], job)
        if shares_job(config)
        else Place(pilot_nodes(config))
        for label, config in configs.items()
    }


def share(
    configs: Mapping[str, ExecutorConfig], names: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Nodes for each executor that shares the driver's job, no node for two of them.

    Raises ``ValueError`` where the job has too few.
    """
    asking = {
        label: config.nodes
        for label, config in configs.items()
        if isinstance(config, AllocationConfig | MpiConfig) and shares_job(config)
    }
    if len(asking) == 1:
        label, wanted = next(iter(asking.items()))
        asking = {label: wanted or len(names)}
    found: dict[str, tuple[str, ...]] = {}
    at = 0
    for label, wanted in asking.items():
        if wanted is None:
            raise ValueError(
                f"executor {label!r} shares the job's nodes with others; say how many are its own"
            )
        found[label] = tuple(names[at : at + wanted])
        at += wanted
    if at > len(names):
        raise ValueError(
            f"executors: {at} nodes for {', '.join(asking)}; the job has {len(names)}: "
            f"{', '.join(names) or 'none'}"
        )
    return found


def pilot_nodes(config: ExecutorConfig) -> int:
    """Nodes of each pilot job; 1 where there are none."""
    if isinstance(config, SlurmConfig | MpiConfig) and pilot(config) is not None:
        return config.nodes or 1
    return 1
