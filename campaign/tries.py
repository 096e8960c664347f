"""How a try ended, and whether another one is due. Pure."""

from __future__ import annotations

from dataclasses import replace

from campaign.config import TaskConfig
from campaign.contract import Contract
from campaign.events import TaskEnded, TaskStarted
from campaign.packing import pack, text
from campaign.state import TaskState
from executors.base import TaskResult, TaskStatus


def final(known: TaskState, spec: TaskConfig) -> TaskEnded | None:
    """The end that stands, None while another try is due."""
    last = known.last
    if last is None or last.status == TaskStatus.CANCELLED:
        return None
    due = last.status in spec.retry_on and retries_used(known, spec) <= spec.retries
    return None if due else last


def retries_used(known: TaskState, spec: TaskConfig) -> int:
    """Failed tries that count against ``retries``; a try our own driver ended does not."""
    return sum(ended.status in spec.retry_on for ended in known.ended)


def held_to(contract: Contract, result: TaskResult) -> TaskResult:
    """A result that does not say what the contract wants is none."""
    if result.status is not TaskStatus.DONE or not (wrong := contract(result.value)):
        return result
    return replace(result, status=TaskStatus.UNREADABLE, value=None, reason=wrong)


def ending(started: TaskStarted, result: TaskResult, *, adopted: bool = False) -> TaskEnded:
    """The event that ends a try: what it came to, and what it is charged."""
    return TaskEnded(
        task=started.task,
        candidate=started.candidate,
        attempt=started.attempt,
        status=result.status.value,
        spent=started.nodes * result.seconds / 3600,
        seconds=result.seconds,
        value=pack(result.value),
        reason=text(result.reason),
        exit_code=result.exit_code,
        host=result.host,
        adopted=adopted,
    )
