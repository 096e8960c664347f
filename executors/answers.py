"""Results that are made in the driver, because no worker could."""

from __future__ import annotations

from executors import wire
from executors.base import Task, TaskResult, TaskStatus


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


def too_wide(task: Task, label: str, left: int, nodes: int) -> TaskResult:
    """So many of the executor's ``nodes`` are lost that those ``left`` are too few."""
    why = f"executor {label!r} has {left} left of {nodes}, the others are lost"
    return lost(f"{task.resources.nodes} nodes wanted; {why}")


def cancelled(seconds: float = 0.0) -> TaskResult:
    """The run stops, and the task with it."""
    return TaskResult(TaskStatus.CANCELLED, reason="the run stops", seconds=seconds)
