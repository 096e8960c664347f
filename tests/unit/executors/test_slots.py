from __future__ import annotations

import random

from hypothesis import given, strategies as st

from executors.slots import AHEAD, PASSES, Slots


def test_long_tasks_are_handed_over_only_to_free_workers() -> None:
    slots = Slots(2)
    assert [slots.take(1) for _ in range(3)] == [True, True, False]
    slots.give(1, 60.0)
    assert slots.take(1)


def test_short_tasks_are_handed_over_ahead_of_a_free_worker() -> None:
    slots = Slots(2, usual=0.001)
    assert sum(slots.take(1) for _ in range(100)) == 2 + AHEAD


def test_tasks_show_themselves_to_be_short() -> None:
    slots = Slots(1)
    for _ in range(40):
        assert slots.take(1)
        slots.give(1, 0.001)
    assert slots.ahead > 0
    assert slots.take(1)
    slots.give(1, 60.0)
    assert slots.ahead == 0


def test_a_task_of_several_ranks_waits_for_all_of_them_and_then_stays_alone() -> None:
    slots = Slots(4, usual=0.001)
    assert slots.take(1)
    assert slots.take(1)
    assert not slots.take(4)
    slots.give(1, 0.001)
    slots.give(1, 0.001)
    assert slots.take(4)
    assert not slots.take(1), "nothing is handed ahead of ranks that must run together"


@given(
    st.integers(1, 8),
    st.lists(st.tuples(st.integers(1, 8), st.floats(0.0, 2.0)), max_size=60),
    st.randoms(use_true_random=False),
)
def test_first_come_first_served_always_comes_to_an_end(
    workers: int, tasks: list[tuple[int, float]], chance: random.Random
) -> None:
    """Whatever the order of ends, every task starts, and wide ones never share too few workers."""
    slots = Slots(workers)
    waiting = [(min(ranks, workers), seconds) for ranks, seconds in tasks]
    running: list[tuple[int, float]] = []
    while waiting or running:
        while waiting and slots.take(waiting[0][0]):
            running.append(waiting.pop(0))
        assert running, "nothing runs and the head of the queue does not fit: it never will"
        if any(ranks > 1 for ranks, _ in running):
            assert sum(ranks for ranks, _ in running) <= workers
        ranks, seconds = running.pop(chance.randrange(len(running)))
        slots.give(ranks, seconds)
    assert (slots.used, slots.wide) == (0, 0)


def test_where_slots_are_nodes_the_widest_that_fits_goes_first() -> None:
    slots = Slots(4, whole=True)
    assert slots.choose([1, 2, 4, 1], passed=0) == 2
    assert slots.take(2)
    assert slots.choose([1, 2, 4, 1], passed=0) == 1
    assert slots.choose([4, 1, 1], passed=0) == 1
    assert slots.take(2)
    assert slots.choose([4, 1, 1], passed=0) is None


def test_a_task_for_many_nodes_is_passed_only_so_often() -> None:
    slots = Slots(4, whole=True)
    assert slots.take(1)
    assert slots.choose([4, 1], passed=PASSES - 1) == 1
    assert slots.choose([4, 1], passed=PASSES) is None
    slots.give(1, 1.0)
    assert slots.choose([4, 1], passed=PASSES) == 0


def test_nothing_is_handed_ahead_of_a_whole_node() -> None:
    slots = Slots(2, usual=0.001, whole=True)
    assert [slots.take(1) for _ in range(3)] == [True, True, False]
