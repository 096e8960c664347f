"""What a task is, what running it answers, and the contract of an executor.

Everything here is a plain value: the campaign builds a :class:`Task`, an executor
answers with a :class:`TaskResult`, and neither side sees Parsl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

KILL_GRACE = 5.0
"""Seconds after its walltime by which no process of a try is alive; what a try costs at most."""


class TaskStatus(StrEnum):
    """How one try of a task ended.

    ``DONE`` means the output contract was met; everything else is an execution failure.
    """

    DONE = "done"
    ERROR = "error"  # the task's own: an exception, or an exit code nobody mapped
    WALLTIME = "walltime"  # killed at its walltime
    LOST = "lost"  # worker, manager, interchange or launch lost: infrastructure
    UNREADABLE = "unreadable"  # it ended, but its output does not say what the contract wants
    CANCELLED = "cancelled"  # ended by us, because the run stops or the disk is full


@dataclass(frozen=True, slots=True)
class PythonWork:
    """``module:function`` called as ``function(candidate, **arguments)`` on a worker."""

    function: str
    arguments: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MpiWork:
    """``module:function`` run by every rank under mpi4py; rank 0's return value is the result."""

    function: str
    launcher: tuple[str, ...]  # argv prefix with ``-n N`` already in it
    arguments: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandWork:
    """An argv list, launcher included; never a shell line."""

    argv: tuple[str, ...]


Work: TypeAlias = PythonWork | MpiWork | CommandWork
"""What a task does: a Python function, an MPI function, or a command."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a task's answer comes from; exactly one is set, none for a function's return value.

    ``json``: a file in the task directory. ``exit_codes``: exit code -> ``pass`` or ``reject``
    (the reason is the last line the task printed). ``reader``: ``module:function`` called with
    the task directory, on the worker.
    """

    json: str | None = None
    exit_codes: Mapping[int, str] | None = None
    reader: str | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """``ranks`` processes on ``nodes`` nodes for at most ``walltime`` seconds."""

    walltime: float
    ranks: int = 1
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """One try of one piece of work, fully rendered: nothing in it needs the config."""

    id: str  # unique in the run, for instance ``short_run-1f0c…/try-1``
    directory: Path  # absolute; made by the worker, used by this try alone
    work: Work
    resources: Resources
    candidate: Mapping[str, Json]  # the parameters, by name
    output: Output = field(default_factory=Output)
    executor: str = "default"
    files: Mapping[str, str] = field(default_factory=dict)  # name in the directory -> content
    env: Mapping[str, str] = field(default_factory=dict)
    import_path: tuple[str, ...] = ()  # folders put first on the task's ``sys.path``


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one try answered; always data, whatever happened to the worker.

    ``value`` is the JSON the output contract yielded (only with ``DONE``), ``seconds`` the
    try's own wall clock from start to end (0 when it never started). ``began`` is when, in seconds
    since the epoch by the clock of ``host``, and ``pid`` who watched over it there; 0 where no
    worker says so. ``traceparent`` is what the task's environment held by that name.
    """

    status: TaskStatus
    value: Json = None
    reason: str = ""
    exit_code: int | None = None
    log_tail: str = ""
    seconds: float = 0.0
    host: str = ""
    began: float = 0.0
    pid: int = 0
    traceparent: str = ""


class Executor(Protocol):
    """Where tasks run.

    ``run`` answers exactly once for every task, within the task's walltime plus the executor's
    own start-up and grace; it never raises for anything the task or its worker did. When ``run``
    returns, no process of that try is alive. Cancelling ``run`` kills the try.
    ``close`` ends every worker, block and helper process the executor started; it is idempotent.
    """

    async def run(self, task: Task) -> TaskResult: ...

    async def close(self) -> None: ...
