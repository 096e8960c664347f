"""What nodes cost that were had: allocated = tasks + idle + lost, whatever happened."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.budget import ALLOCATED
from campaign.config import CampaignConfig
from campaign.events import Entry, Event, JobStarted, TaskEnded, TaskStarted
from campaign.limits import share
from campaign.state import CampaignState, fold
from campaign.summary import allocation_table
from executors.base import TaskStatus
from running import config

HOUR = 3600.0


def reserved(allocation: int = 1, what: str = "pilot", **more: Any) -> AllocationReserved:
    fields: dict[str, Any] = {"name": "p", "nodes": 2, "walltime": HOUR, "reserved": 2.0}
    return AllocationReserved(allocation=allocation, what=what, **fields | more)


def ended(allocation: int = 1, seconds: float = 1800.0, nodes: int = 2) -> AllocationEnded:
    spent = nodes * seconds / HOUR
    return AllocationEnded(
        allocation=allocation, seconds=seconds, spent=spent, source="slurm", job="7"
    )


def tried(number: int, status: str, seconds: float, kept: float) -> tuple[Event, Event]:
    task: dict[str, Any] = {"task": "simulation", "candidate": str(number), "attempt": 1}
    return (
        TaskStarted(round=1, slot=number, nodes=1, reserved=1.0, share=kept, **task),
        TaskEnded(status=status, spent=seconds / HOUR, seconds=seconds, **task),
    )


def after(*events: Event) -> CampaignState:
    return fold([Entry(n, float(n), event) for n, event in enumerate(events, 1)])


def numbered(events: Sequence[Event]) -> list[Event]:
    """Allocations are numbered in the order they are reserved."""
    numbers = count(1)
    return [
        replace(event, allocation=next(numbers)) if isinstance(event, AllocationReserved) else event
        for event in events
    ]


ALLOCATIONS = st.integers(1, 4)
SECONDS = st.floats(0, 1e7)
BOOKS: st.SearchStrategy[tuple[Event, ...]] = st.one_of(
    st.builds(
        lambda number, what, since: (reserved(number, what, since=since, job=f"j{number}"),),
        ALLOCATIONS,
        st.sampled_from(["pilot", "driver"]),
        SECONDS,
    ),
    st.builds(lambda number: (AllocationQueued(allocation=number, job="7"),), ALLOCATIONS),
    st.builds(
        lambda number, since: (AllocationBegan(allocation=number, since=since),),
        ALLOCATIONS,
        SECONDS,
    ),
    st.builds(lambda number, seconds: (ended(number, seconds),), ALLOCATIONS, SECONDS),
    st.builds(
        tried,
        st.integers(1, 3),
        st.sampled_from([status.value for status in TaskStatus]),
        st.floats(0, 1e4),
        st.sampled_from([0.0, 0.25, 1.0, 4.0]),
    ),
    st.just((JobStarted(job=2, host="h", pid=1, python="", numpy=""),)),
)


@given(st.lists(BOOKS, max_size=30), st.floats(0, 1e7))
def test_allocated_is_tasks_and_idle_and_lost_after_any_events(
    groups: Sequence[tuple[Event, ...]], now: float
) -> None:
    events = numbered([event for group in groups for event in group])
    state = after(*events)
    assert repr(after(*events)) == repr(state)
    bill = state.allocations.bill(now)
    if bill is None:
        assert not any(isinstance(event, AllocationReserved) for event in events)
        return
    assert bill.allocated == pytest.approx(bill.tasks + bill.idle + bill.lost, abs=1e-9)
    assert bill.open == len(state.allocations.open)
    held = sum(one.asked.reserved for one in state.allocations.open.values())
    assert state.usage.counter(ALLOCATED).reserved == pytest.approx(held, abs=1e-9)
    assert state.usage.counter(ALLOCATED).spent == pytest.approx(state.allocations.over, abs=1e-6)


@pytest.mark.parametrize(
    ("status", "tasks", "lost"),
    [
        ("done", 0.5, 0.0),
        ("error", 0.5, 0.0),
        ("walltime", 0.5, 0.0),
        ("unreadable", 0.5, 0.0),
        ("lost", 0.0, 0.5),
        ("cancelled", 0.0, 0.5),
    ],
)
def test_what_the_machine_or_a_stop_ended_bought_nothing(
    status: str, tasks: float, lost: float
) -> None:
    bill = after(reserved(), *tried(1, status, 1800.0, 1.0), ended()).allocations.bill(0.0)
    assert bill is not None
    assert (bill.allocated, bill.tasks, bill.lost, bill.idle) == (1.0, tasks, lost, 0.5)


def test_an_allocation_is_charged_once_however_often_it_ends() -> None:
    state = after(reserved(), ended(), ended())
    assert state.allocations.over == state.usage.counter(ALLOCATED).spent == 1.0
    assert state.usage.counter(ALLOCATED).reserved == 0.0


def test_what_has_not_ended_counts_until_now_and_never_more_than_its_walltime() -> None:
    state = after(reserved(), AllocationBegan(allocation=1, since=1000.0))
    hours = [state.allocations.bill(now) for now in (900.0, 1000.0 + HOUR / 2, 1e9)]
    assert [bill and bill.allocated for bill in hours] == [0.0, 1.0, 2.0]
    assert state.usage.counter(ALLOCATED).reserved == 2.0


def test_a_run_without_allocations_has_no_bill() -> None:
    assert after(*tried(1, "done", 5.0, 0.0)).allocations.bill(1.0) is None


PILOTS = {"kind": "slurm", "workers_per_node": 4, "pilot": {"walltime": "1h"}}
SHARES = [
    ({"default": PILOTS}, {}, False, 0.25),
    ({"default": {"kind": "allocation", "workers_per_node": 2}}, {}, True, 0.5),
    ({"default": {"kind": "mpi", "nodes": 4}}, {"nodes": 3, "ranks": 6}, True, 3.0),
    ({"default": {"kind": "threads", "workers": 2}}, {}, False, 0.0),
    ({"default": {"kind": "threads", "workers": 2}}, {}, True, 0.5),
    ({"default": {"kind": "local", "workers": 2}, "b": {"kind": "allocation"}}, {}, True, 0.0),
    ({"default": {"kind": "parsl", "function": "cluster:config"}}, {}, True, 0.0),
]


@pytest.mark.parametrize(("executors", "task", "in_job", "kept"), SHARES)
def test_a_try_keeps_whole_nodes_or_a_workers_part_of_one(
    executors: dict[str, Any], task: dict[str, Any], in_job: bool, kept: float
) -> None:
    base: dict[str, Any] = {"kind": "python", "function": "tests:bowl", "walltime": "10s"}
    if task:
        base = {"kind": "command", "command": ["x"], "walltime": "10s", "output": {"json": "r"}}
    made: CampaignConfig = config(executors=executors, simulation=base | task, verifiers=[])
    assert share(made.simulation, made.executors, in_job=in_job) == kept


def test_the_parts_are_shown_as_lines_once_there_is_an_allocation() -> None:
    assert allocation_table(after(*tried(1, "done", 5.0, 0.0))) is None
    told = (*tried(1, "done", 1800.0, 1.0), *tried(2, "lost", 900.0, 1.0), ended())
    table = allocation_table(after(reserved(), *told))
    assert table is not None
    parts, hours = ([*column.cells] for column in table.columns[:2])
    assert parts == ["allocated", "tasks", "idle", "lost"]
    assert hours == ["1", "0.5", "0.25", "0.25"]
