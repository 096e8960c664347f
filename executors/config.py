"""The kinds of executor a campaign can name, as typed configuration.

A further kind is one more model with its own ``kind``, joined to :data:`ExecutorConfig`, one more
branch in :func:`start_timeout` and in :func:`executors.sites.parsl_executor`, and, when its workers
come from elsewhere than a child process, a provider with what :class:`executors.kernel.Site` asks
of one. Nothing else knows the kinds.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from executors.units import Duration

Workers: TypeAlias = Annotated[int, Field(ge=1, le=512, strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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


ExecutorConfig: TypeAlias = Annotated[ThreadsConfig | LocalConfig, Field(discriminator="kind")]


def start_timeout(config: ExecutorConfig) -> float | None:
    """Seconds the workers may take to come up; None when they are there at once."""
    match config:
        case ThreadsConfig():
            return None
        case LocalConfig():
            return config.start_timeout
