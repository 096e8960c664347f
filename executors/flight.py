"""A task between the driver and its worker, and how many of them there are."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from executors.base import Task, TaskResult


@dataclass(eq=False, slots=True)
class Entry:
    """A task on its way; ``number`` names this handing-over of it, not the task."""

    task: Task
    answer: asyncio.Future[TaskResult]
    number: int = -1
    deadline: float = 0.0
    requeues: int = 0
    overdue: bool = False
    passed: int = 0  # times a younger task was handed over before it


@dataclass(frozen=True, slots=True)
class Load:
    """How busy an executor is: tasks running and waiting, workers in all."""

    workers: int
    running: int
    queued: int
