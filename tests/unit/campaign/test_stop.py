"""A stop counts once, and gives running tasks the grace it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from campaign.model import JobOutcome
from campaign.stop import Stop, StoppedError


async def forever() -> object:
    return await asyncio.Event().wait()


async def until_cancelled(task: asyncio.Task[object]) -> bool:
    """Whether a task gets cancelled within what is a long time here."""
    await asyncio.wait({task}, timeout=10)
    return task.cancelled()


def run(scenario: Callable[[Stop, asyncio.Task[object]], Awaitable[None]]) -> None:
    async def main() -> None:
        stop = Stop()
        task: asyncio.Task[object] = asyncio.create_task(forever())
        await asyncio.sleep(0)
        try:
            await scenario(stop, task)
        finally:
            task.cancel()

    asyncio.run(main())


def test_the_first_reason_stands() -> None:
    stop = Stop()
    stop.check()
    stop.request("the cap", JobOutcome.DONE)
    stop.request("a signal")
    assert (stop.reason, stop.outcome) == ("the cap", JobOutcome.DONE)
    with pytest.raises(StoppedError, match="the cap"):
        stop.check()


def test_after_the_grace_of_a_first_signal_what_runs_is_cancelled() -> None:
    async def scenario(stop: Stop, task: asyncio.Task[object]) -> None:
        with stop.cancels(task):
            stop.signal("SIGTERM", 0.01)
            assert (stop.reason, stop.outcome) == ("SIGTERM received", JobOutcome.STOPPED)
            assert not task.cancelling()
            assert await until_cancelled(task)

    run(scenario)


def test_a_second_signal_cancels_at_once() -> None:
    async def scenario(stop: Stop, task: asyncio.Task[object]) -> None:
        with stop.cancels(task):
            stop.signal("SIGINT", 3600)
            stop.signal("SIGINT", 3600)
            assert task.cancelling()

    run(scenario)


def test_a_first_signal_after_a_cap_or_a_policy_stopped_the_run_leaves_the_grace() -> None:
    async def scenario(stop: Stop, task: asyncio.Task[object]) -> None:
        with stop.cancels(task):
            stop.request("fail_run", JobOutcome.FAILED)
            stop.signal("SIGTERM", 0.01)
            assert not task.cancelling()
            assert stop.outcome is JobOutcome.FAILED
            assert await until_cancelled(task)

    run(scenario)


def test_what_begins_to_run_after_the_grace_is_cancelled_too() -> None:
    async def scenario(stop: Stop, task: asyncio.Task[object]) -> None:
        stop.signal("SIGINT", 0)
        stop.signal("SIGINT", 0)
        with stop.cancels(task):
            assert task.cancelling()

    run(scenario)


def test_what_has_ended_is_not_cancelled() -> None:
    async def scenario(stop: Stop, task: asyncio.Task[object]) -> None:
        with stop.cancels(task):
            pass
        stop.signal("SIGINT", 0)
        stop.signal("SIGINT", 0)
        assert not task.cancelling()

    run(scenario)
