"""A task is paid for once, whatever happens to the driver."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.events import TaskEnded, TaskStarted
from campaign.ledger import read
from campaign.model import JobOutcome
from campaign.stop import StoppedError
from executors.base import TaskResult, TaskStatus
from tasking import POINT, driver, history, left_behind, simulation, started, try_directory

SETTINGS = running.config()
PATIENT = running.config(
    simulation={
        "kind": "python",
        "function": "tests:bowl",
        "walltime": "10s",
        "retries": 2,
        "retry_on": ["lost", "walltime"],
    }
)


def answers(*results: object) -> Mapping[str, Any]:
    """A simulation that answers in turn."""
    left = list(results)
    return {"tests:bowl": lambda _: left.pop(0)}


def failed(status: TaskStatus) -> TaskResult:
    return TaskResult(status, reason="why", seconds=2.0)


def run_once(run_dir: Path, settings: Any, functions: Any = running.FUNCTIONS) -> Any:
    """The end of the simulation, and how often it was tried in this job."""

    async def main() -> tuple[TaskEnded, int]:
        async with driver(run_dir, settings, functions) as job:
            await job.tasks.settle_open_tries()
            ended = await job.tasks.run(simulation(settings))
            return ended, job.executor.tries.total()

    return asyncio.run(main())


def test_two_who_want_the_same_task_pay_for_one(tmp_path: Path) -> None:
    async def main() -> None:
        async with driver(tmp_path, SETTINGS) as job:
            slots = [job.tasks.run(simulation(SETTINGS, slot=slot)) for slot in range(3)]
            ends = await asyncio.gather(*slots)
            assert ends[0] is ends[1] is ends[2]
            assert job.executor.tries.total() == 1

    asyncio.run(main())


def test_a_later_job_reads_the_end_from_the_ledger(tmp_path: Path) -> None:
    first, tries = run_once(tmp_path, SETTINGS)
    again, later = run_once(tmp_path, SETTINGS)
    assert (again, tries, later) == (first, 1, 0)


def test_a_try_costs_nodes_times_hours(tmp_path: Path) -> None:
    result = TaskResult(TaskStatus.DONE, value={"loss": 1.0}, seconds=9.0, host="n1")
    ended, _ = run_once(tmp_path, SETTINGS, answers(result))
    assert ended.spent == 9.0 / 3600
    assert (ended.seconds, ended.host) == (9.0, "n1")
    begun = next(e.event for e in read(tmp_path) if isinstance(e.event, TaskStarted))
    assert begun.reserved == pytest.approx(15.0 / 3600)


@pytest.mark.parametrize(
    ("ends", "status", "tries"),
    [
        ([TaskStatus.LOST, TaskStatus.WALLTIME], "done", 3),
        ([TaskStatus.LOST] * 5, "lost", 3),
        ([TaskStatus.ERROR], "error", 1),
        ([TaskStatus.LOST, TaskStatus.UNREADABLE], "unreadable", 2),
    ],
)
def test_only_what_retry_on_names_is_tried_again_and_never_above_retries(
    tmp_path: Path, ends: list[TaskStatus], status: str, tries: int
) -> None:
    functions = answers(*map(failed, ends), {"loss": 1.0})
    ended, tried = run_once(tmp_path, PATIENT, functions)
    assert (ended.status, ended.attempt, tried) == (status, tries, tries)
    again, more = run_once(tmp_path, PATIENT)
    assert (again, more) == (ended, 0)


def test_tries_of_an_earlier_job_count_against_retries(tmp_path: Path) -> None:
    start = started(PATIENT)
    lost = TaskEnded(
        task=start.task, candidate=start.candidate, attempt=1, status="lost", spent=0.0, seconds=0.0
    )
    history(tmp_path, PATIENT, start, lost)
    ended, tried = run_once(tmp_path, PATIENT, answers(*[failed(TaskStatus.LOST)] * 4))
    assert (ended.attempt, tried) == (3, 2)


def test_a_result_that_arrived_while_the_driver_was_dead_is_adopted(tmp_path: Path) -> None:
    history(tmp_path, SETTINGS, started(SETTINGS))
    left_behind(try_directory(tmp_path), '{"loss": 0.25}')
    ended, tried = run_once(tmp_path, SETTINGS)
    assert (ended.status, ended.value, ended.adopted, tried) == ("done", {"loss": 0.25}, True, 0)


def test_an_adopted_answer_is_held_to_the_contract(tmp_path: Path) -> None:
    history(tmp_path, SETTINGS, started(SETTINGS))
    left_behind(try_directory(tmp_path), '{"gain": 0.25}')
    ended, tried = run_once(tmp_path, SETTINGS)
    assert (ended.status, tried) == ("unreadable", 0)
    assert "'loss' is not among it" in ended.reason


def test_a_try_that_died_with_its_driver_is_cancelled_charged_and_run_again(
    tmp_path: Path,
) -> None:
    began = time.time()
    history(tmp_path, SETTINGS, started(SETTINGS))
    left_behind(try_directory(tmp_path), None)
    ended, tried = run_once(tmp_path, SETTINGS)
    assert (ended.status, ended.attempt, tried) == ("done", 2, 1)
    first = next(e.event for e in read(tmp_path) if isinstance(e.event, TaskEnded))
    assert first.status == "cancelled"
    assert first.reason == "the driver ended while it ran"
    assert 0 < first.seconds <= time.time() - began
    assert first.spent == pytest.approx(first.seconds / 3600)


def test_a_try_is_never_charged_more_than_it_reserved(tmp_path: Path) -> None:
    from campaign.ledger import NAME

    history(tmp_path, SETTINGS, started(SETTINGS))
    left_behind(try_directory(tmp_path), None)
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes().replace(b'"t":1', b'"t":-1'))  # decades ago
    run_once(tmp_path, SETTINGS)
    first = next(e.event for e in read(tmp_path) if isinstance(e.event, TaskEnded))
    assert first.spent == pytest.approx(started(SETTINGS).reserved)


def test_a_try_that_no_worker_ever_began_costs_nothing_and_never_will(tmp_path: Path) -> None:
    history(tmp_path, SETTINGS, started(SETTINGS))
    run_once(tmp_path, SETTINGS)
    first = next(e.event for e in read(tmp_path) if isinstance(e.event, TaskEnded))
    assert (first.status, first.spent) == ("cancelled", 0.0)
    assert (try_directory(tmp_path) / "cancel").exists()  # for a worker that comes to it late


def test_a_task_that_failed_is_run_again_only_when_asked_for(tmp_path: Path) -> None:
    async def main() -> None:
        functions = answers(failed(TaskStatus.ERROR), {"loss": 1.0})
        async with driver(tmp_path, SETTINGS, functions) as job:
            for again, status in ((False, "error"), (False, "error"), (True, "done")):
                ended = await job.tasks.run(simulation(SETTINGS), again=again)
                assert ended.status == status
            assert job.executor.tries.total() == 2

    asyncio.run(main())


def test_nothing_starts_after_a_stop(tmp_path: Path) -> None:
    async def main() -> None:
        async with driver(tmp_path, SETTINGS) as job:
            job.stop.request("SIGTERM received")
            with pytest.raises(StoppedError, match="SIGTERM"):
                await job.tasks.run(simulation(SETTINGS))
            assert job.recorder.state.tasks == {}

    asyncio.run(main())


def test_a_stop_while_the_start_is_written_runs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with driver(tmp_path, SETTINGS) as job:
            running_ = asyncio.create_task(job.tasks.run(simulation(SETTINGS)))
            await asyncio.sleep(0)  # the start is on its way to the disk
            job.stop.request("SIGTERM received")
            with pytest.raises(StoppedError):
                await running_
            assert job.executor.tries.total() == 0
            (task,) = job.recorder.state.tasks.values()
            assert task.last is not None
            assert (task.last.status, task.last.spent) == ("cancelled", 0.0)

    asyncio.run(main())


def test_a_try_that_a_stop_cancels_is_settled_and_tried_again_by_the_next_job(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with driver(tmp_path, SETTINGS) as job:
            # The first of two tasks is not run until the second has come to its turn.
            job.executor.backwards = True
            running_ = asyncio.create_task(job.tasks.run(simulation(SETTINGS)))
            while not job.executor.tries:
                await asyncio.sleep(0)
            job.stop.signal("SIGTERM", 3600)
            job.stop.signal("SIGTERM", 3600)
            with pytest.raises(StoppedError):
                await running_
            (task,) = job.recorder.state.tasks.values()
            assert task.open is None
            assert job.recorder.state.usage.counter("node_hours").reserved == 0.0

    asyncio.run(main())
    ended, tried = run_once(tmp_path, SETTINGS)
    assert (ended.status, ended.attempt, tried) == ("done", 2, 1)


def test_a_template_that_is_gone_fails_the_run_by_name(tmp_path: Path) -> None:
    settings = running.config(
        simulation={
            "kind": "command",
            "command": ["true"],
            "files": {"in.lj": "gone.lj"},
            "walltime": "10s",
            "output": {"json": "out.json"},
        }
    )

    async def main() -> None:
        async with driver(tmp_path, settings) as job:
            with pytest.raises(StoppedError, match=r"simulation: .*gone\.lj"):
                await job.tasks.run(simulation(settings))
            assert job.stop.outcome is JobOutcome.FAILED
            assert job.recorder.state.tasks == {}

    asyncio.run(main())


def test_what_an_answer_holds_beside_the_objective_is_kept(tmp_path: Path) -> None:
    value = {"loss": 1.0, "odd \ud800": ["\udcff"], "n": 10**50}
    ended, _ = run_once(tmp_path, SETTINGS, answers(value))
    assert ended.value["loss"] == 1.0
    assert [e.event for e in read(tmp_path)][-1] == ended
    assert POINT == {"x": 0.25, "y": 0.5}
