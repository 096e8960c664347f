"""Results that are made in the driver, because no worker could."""

from __future__ import annotations

from executors import wire
from executors.base import TaskResult, TaskStatus


def decoded(answer: object) -> TaskResult:
    """What came back from a worker; lost when it is not a result at all."""
    try:
        if not isinstance(answer, bytes):
            raise ValueError(f"not a task result: {answer!r:.200}")
        return wire.result(answer)
    except ValueError as error:
        return lost(str(error))


def lost(reason: str, seconds: float = 0.0) -> TaskResult:
    """Infrastructure failed the task, which ran for ``seconds``."""
    return TaskResult(TaskStatus.LOST, reason=reason, seconds=seconds)


def cancelled(seconds: float = 0.0) -> TaskResult:
    """The run stops, and the task with it."""
    return TaskResult(TaskStatus.CANCELLED, reason="the run stops", seconds=seconds)
