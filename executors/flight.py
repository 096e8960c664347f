"""A task between the driver and its worker, how many there are, and who has them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

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
    """How busy an executor is: tasks running and waiting, workers that are left."""

    workers: int
    running: int
    queued: int


class Tasks(Protocol):
    """Who has tasks for the workers."""

    def pump(self) -> None:
        """Hand over what there is, or ask for workers."""

    def busy(self) -> bool:
        """Whether tasks are in the workers' hands."""

    def overdue(self, now: float) -> str | None:
        """See to tasks that should have been answered; why the workers are useless, if so."""

    def counted(self, workers: int | None) -> None:
        """There are so many workers at the moment; None: all there should be."""

    async def orphaned(self, why: str, *, again: bool) -> None:
        """Nobody will answer what was handed over; ``again``: what has not begun may still run."""

    def refuse(self, why: str) -> None:
        """No workers can be had."""

    def unpaid(self, why: str) -> None:
        """No workers can be had, because nobody pays for them."""
