"""Which task of an executor flies next, by when it has to be back, and what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from executors.base import PythonWork, Resources, Task, TaskResult, TaskStatus
from executors.flight import Entry, Load
from executors.traffic import GRACE, Traffic

DONE = TaskResult(TaskStatus.DONE, value=None, seconds=2.0)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def waits(
    traffic: Traffic, loop: asyncio.AbstractEventLoop, *, nodes: int = 1, walltime: float = 10.0
) -> Entry:
    resources = Resources(ranks=nodes, nodes=nodes, walltime=walltime)
    task = Task("t", Path("/t"), PythonWork("m:f"), resources, candidate={})
    entry = Entry(task, loop.create_future())
    traffic.waiting.append(entry)
    return entry


def test_a_task_has_to_be_back_after_those_that_fly_already(
    loop: asyncio.AbstractEventLoop,
) -> None:
    traffic = Traffic(2, whole=False)
    first, second = waits(traffic, loop), waits(traffic, loop, walltime=4.0)
    traffic.fly(first, now=100.0)
    traffic.fly(second, now=100.0)
    assert first.deadline == 100.0 + 10.0 + GRACE
    assert second.deadline == 100.0 + 10.0 / 2 + 4.0 + GRACE
    assert traffic.choose() is None


def test_a_narrow_task_flies_where_a_wide_one_cannot_and_that_is_counted(
    loop: asyncio.AbstractEventLoop,
) -> None:
    traffic = Traffic(2, whole=True)
    traffic.fly(waits(traffic, loop), now=0.0)
    wide, narrow = waits(traffic, loop, nodes=2), waits(traffic, loop)
    assert traffic.choose() is narrow
    traffic.fly(narrow, now=0.0)
    assert wide.passed == 1
    assert traffic.load(ready=True) == Load(2, 2, 1)


def test_a_task_is_sent_back_to_the_head_of_the_queue_twice_at_the_most(
    loop: asyncio.AbstractEventLoop,
) -> None:
    traffic = Traffic(1, whole=False)
    entry, other = waits(traffic, loop), waits(traffic, loop)
    for _ in range(2):
        traffic.fly(entry, now=0.0)
        assert traffic.send_back(entry)
        assert list(traffic.waiting) == [entry, other]
    traffic.fly(entry, now=0.0)
    assert not traffic.send_back(entry)
    assert list(traffic.flying.values()) == [entry]


def test_what_has_landed_gives_its_slots_back_once(loop: asyncio.AbstractEventLoop) -> None:
    traffic = Traffic(1, whole=False)
    entry, other = waits(traffic, loop), waits(traffic, loop)
    traffic.fly(entry, now=0.0)
    traffic.land(entry, DONE)
    traffic.land(entry, DONE)
    assert traffic.choose() is other
    traffic.fly(other, now=0.0)
    waits(traffic, loop)
    assert traffic.choose() is None


def test_a_task_that_wants_more_than_is_left_is_too_wide(loop: asyncio.AbstractEventLoop) -> None:
    traffic = Traffic(4, whole=True)
    wide = waits(traffic, loop, nodes=4)
    waits(traffic, loop, nodes=3)
    traffic.counted(3)
    assert traffic.too_wide() == [wide]
    traffic.counted(None)
    assert traffic.too_wide() == []
