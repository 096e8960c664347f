"""Where tasks run. Names of the driver's side are imported when first used: a worker needs none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from executors.base import (
    CommandWork,
    Executor,
    MpiWork,
    Output,
    PythonWork,
    Resources,
    Task,
    TaskResult,
    TaskStatus,
    Work,
)

if TYPE_CHECKING:
    from executors.config import ExecutorConfig
    from executors.parsl import ExecutorError, ParslExecutors, open_executors

__all__ = [
    "CommandWork",
    "Executor",
    "ExecutorConfig",
    "ExecutorError",
    "MpiWork",
    "Output",
    "ParslExecutors",
    "PythonWork",
    "Resources",
    "Task",
    "TaskResult",
    "TaskStatus",
    "Work",
    "open_executors",
]

_DRIVER = {
    "ExecutorConfig": "executors.config",
    "ExecutorError": "executors.parsl",
    "ParslExecutors": "executors.parsl",
    "open_executors": "executors.parsl",
}


def __getattr__(name: str) -> object:
    if name not in _DRIVER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_DRIVER[name]), name)
