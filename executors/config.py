"""The kinds of executor a campaign can name, as typed configuration.

A further kind is one more model with its own ``kind``, joined to :data:`ExecutorConfig`, its
capacity and its start in the functions below, one more branch in
:func:`executors.sites.parsl_executor`, and, when its workers come from elsewhere than a child
process, a provider with what :class:`executors.kernel.Site` asks of one.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from executors.base import KILL_GRACE
from executors.units import Duration

FUNCTION = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$"

Workers: TypeAlias = Annotated[int, Field(ge=1, le=512, strict=True)]
Nodes: TypeAlias = Annotated[int, Field(ge=1, le=100_000, strict=True)]
Word: TypeAlias = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00\n]+$")]
Words: TypeAlias = Annotated[tuple[Word, ...], Field(strict=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class ThreadsConfig(_Model):
    """Threads of the driver, each with a worker process of its own: no sockets, starts at once."""

    kind: Literal["threads"] = Field(
        description="tasks run on this machine, dispatched by threads of the driver"
    )
    workers: Workers = Field(
        default=2,
        description="how many ranks run at once; a task of R ranks takes R workers",
    )


class LocalConfig(_Model):
    """Parsl's HighThroughputExecutor with one block on this machine."""

    kind: Literal["local"] = Field(
        description="tasks run on this machine, in a Parsl worker pool (one block)"
    )
    workers: Workers = Field(
        default=2,
        description="how many ranks run at once; a task of R ranks takes R workers",
    )
    start_timeout: Duration = Field(
        default=120.0,
        description="how long the worker pool may take to start before its tasks count as lost",
    )


class Pilot(_Model):
    """What a pilot job asks Slurm for."""

    walltime: Duration = Field(
        description="how long a pilot job may run; no task starts in it that could not end there"
    )
    partition: Word | None = Field(default=None, description="the partition, by default Slurm's")
    account: Word | None = Field(default=None, description="the account that pays")
    qos: Word | None = Field(default=None, description="the quality of service")
    constraint: Word | None = Field(default=None, description="what the nodes must offer")
    exclusive: bool = Field(default=True, description="whether the nodes are for the pilot alone")
    memory: Word | None = Field(
        default=None, description="memory of each node as Slurm writes it, for instance `16G`"
    )
    gpus: Annotated[int, Field(ge=1)] | None = Field(default=None, description="GPUs of each node")
    scheduler_options: Words = Field(
        default=(), description="further options of sbatch, for instance `--reservation=now`"
    )
    worker_init: Words = Field(
        default=(),
        description="shell lines that run once in the pilot before its workers start, for "
        "instance `module load gcc`; if one of them exits, the pilot has failed",
    )


class _Workers(_Model):
    start_timeout: Duration = Field(
        default=300.0,
        description="how long workers may take to start once their nodes are there",
    )


class _Remote(_Workers):
    address: Word | None = Field(
        default=None,
        description="the address at which the nodes reach the driver; by default that of the "
        "interface with the default route",
    )


class SlurmConfig(_Remote):
    """Pilot jobs: the driver stays where it is, its workers come and go with jobs of Slurm's."""

    kind: Literal["slurm"] = Field(
        description="tasks of one process run in pilot jobs that the driver submits"
    )
    nodes: Nodes = Field(default=1, description="nodes of each pilot job")
    workers_per_node: Workers = Field(default=1, description="tasks that run at once on each node")
    max_pilots: Annotated[int, Field(ge=1, le=64, strict=True)] = Field(
        default=1,
        description="pilot jobs at once; none is submitted before there is work, and none is "
        "given back while the agent thinks",
    )
    pilot: Pilot = Field(description="what a pilot job asks Slurm for")


class AllocationConfig(_Remote):
    """The nodes of the Slurm job the driver runs in, one worker pool on each."""

    kind: Literal["allocation"] = Field(
        description="tasks of one process run on the nodes of the job the driver is in"
    )
    nodes: Nodes | None = Field(
        default=None,
        description="nodes of the job that are for this executor; by default all, and where "
        "executors share a job each says how many",
    )
    workers_per_node: Workers = Field(default=1, description="tasks that run at once on each node")


class MpiConfig(_Remote):
    """Whole nodes for tasks of several ranks: of the job the driver runs in, or of a pilot job."""

    kind: Literal["mpi"] = Field(
        description="tasks of kind mpi and command run on whole nodes, started by srun or mpiexec"
    )
    nodes: Nodes | None = Field(
        default=None,
        description="nodes for this executor: of the job the driver is in (by default all), or "
        "of the pilot job (then needed)",
    )
    launcher: Literal["auto", "srun", "mpiexec"] = Field(
        default="auto",
        description="what starts the ranks; auto tries on the nodes which gives a communicator "
        "of the right size",
    )
    launcher_options: Words = Field(
        default=(), description="further words for the launcher, for instance `--cpu-bind=cores`"
    )
    pilot: Pilot | None = Field(
        default=None,
        description="what a pilot job asks Slurm for; without it, the driver's own job",
    )


class ParslConfig(_Workers):
    """Any site: a function of yours gives the configuration Parsl is to use."""

    kind: Literal["parsl"] = Field(description="tasks of one process run where your function says")
    function: Annotated[str, Field(pattern=FUNCTION)] = Field(
        description="`module:function` in the campaign folder, called without arguments; it gives "
        "a `parsl.Config` with one executor"
    )
    workers: Workers = Field(default=2, description="tasks that run at once")


ExecutorConfig: TypeAlias = Annotated[
    ThreadsConfig | LocalConfig | SlurmConfig | AllocationConfig | MpiConfig | ParslConfig,
    Field(discriminator="kind"),
]
"""The configuration of one executor, by its ``kind``: a type for Pydantic's ``TypeAdapter``."""


def start_timeout(config: ExecutorConfig) -> float | None:
    """Seconds the workers may take to come up; None when they are there at once."""
    return None if isinstance(config, ThreadsConfig) else config.start_timeout


def pilot(config: ExecutorConfig) -> Pilot | None:
    """What its pilot jobs ask for; None where there are none."""
    return config.pilot if isinstance(config, SlurmConfig | MpiConfig) else None


STARTING = 60.0
"""Seconds of a pilot job's walltime that go into starting workers and noticing its end."""


def granted(walltime: float) -> float:
    """Seconds that Slurm gives a job which asks for so many: it counts whole minutes."""
    return 60.0 * math.ceil(walltime / 60)


def too_long(walltime: float, asks: Pilot) -> str:
    """Why a task of this walltime could never run in such a pilot job, ``""`` when it could."""
    needed = walltime + KILL_GRACE + STARTING
    if needed <= asks.walltime:
        return ""
    return (
        f"a walltime of {walltime:g} s does not fit into pilot jobs of {asks.walltime:g} s; "
        f"give those at least {needed:g} s"
    )


def capacity(config: ExecutorConfig, nodes: int) -> int:
    """Units that run at once in one worker pool or pilot job with ``nodes`` nodes.

    A unit is a rank, or a whole node where tasks take whole nodes.
    """
    match config:
        case ThreadsConfig() | LocalConfig() | ParslConfig():
            return config.workers
        case SlurmConfig() | AllocationConfig():
            return nodes * config.workers_per_node
        case MpiConfig():
            return nodes


def several_managers(config: ExecutorConfig) -> bool:
    """Whether losing one worker pool leaves others that go on."""
    return isinstance(config, SlurmConfig | AllocationConfig | ParslConfig)


def shares_job(config: ExecutorConfig) -> bool:
    """Whether it works on nodes of the Slurm job the driver is in."""
    own = isinstance(config, MpiConfig) and config.pilot is None
    return own or isinstance(config, AllocationConfig)
