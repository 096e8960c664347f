"""In a job that has an end, only what is certain to end in time starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.clock import Clock
from campaign.config import CampaignConfig
from campaign.drive import assemble, creation
from campaign.events import JobEnded, JobStarted, TaskEnded, TaskStarted
from campaign.expectations import kept, resolve
from campaign.ledger import Ledger, read
from campaign.loop import Ending, run_campaign
from campaign.model import JobOutcome
from campaign.recorder import Recorder
from campaign.render import Place
from campaign.state import fold
from campaign.stop import Stop
from campaign.turns import Line, Turns
from executors.base import Task, TaskResult
from executors.config import MpiConfig, Pilot
from executors.flight import Load
from executors.slurm import Job
from inline import InlineExecutor


@dataclass
class Time:
    """A clock that a test moves, and the end that Slurm tells of the job."""

    now: float = 1000.0
    end: float = 1e6
    once: float | None = None  # what Slurm told before the limit was changed

    def clock(self, margin: float = 60.0) -> Clock:
        end = self.end if self.once is None else self.once
        return Clock("7", margin, end, now=lambda: self.now, look_up=self._look_up)

    def _look_up(self, number: str) -> Job:
        return Job(number, "x", "RUNNING", "", 1, "n1", 0.0, self.end, "0:0")


@dataclass
class Timed(InlineExecutor):
    """Every task takes ``seconds`` of the test's clock; how many there were at once is noted."""

    time: Time = field(default_factory=Time)
    seconds: float = 10.0
    at_once: int = 0
    most: int = 0
    late: list[str] = field(default_factory=list)

    def load(self) -> Mapping[str, Load]:
        return {"default": Load(workers=1, running=0, queued=0)}

    async def run(self, task: Task) -> TaskResult:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        if self.time.now + task.resources.walltime > self.time.end - 60:
            self.late.append(task.id)
        result = await super().run(task)
        self.time.now += self.seconds
        self.at_once -= 1
        return result


def job(run_dir: Path, settings: CampaignConfig, executor: Timed) -> Ending:
    """One job of the campaign, by the executor's clock."""

    run_dir.mkdir(exist_ok=True)

    async def main() -> Ending:
        with Ledger(run_dir) as ledger:
            recorder = Recorder(ledger, fold(ledger.recovered))
            state = recorder.state
            if state.run is None:
                expect, _ = resolve(settings.model_dump(exclude_defaults=True), run_dir)
                await recorder.record(creation(settings, run_dir, kept(expect)))
            number = 1 if state.job is None else state.job.job + 1
            await recorder.record(JobStarted(job=number, host="h", pid=1, python="", numpy=""))
            place = Place(run_dir, run_dir, settings.seed)
            stop = Stop(executor.time.clock())
            ending = await run_campaign(assemble(settings, place, executor, recorder, stop))
            ended = JobEnded(job=number, outcome=ending.outcome.value, reason=ending.reason)
            await recorder.record(ended)
            return ending

    return asyncio.run(asyncio.wait_for(main(), 60))


def settings(**changes: Any) -> CampaignConfig:
    task = {"kind": "python", "walltime": "100s"}
    return running.config(
        **{"verifiers": [], "simulation": task | {"function": "tests:bowl"}} | changes
    )


def test_what_cannot_end_in_time_does_not_start_and_the_job_stops_by_name(tmp_path: Path) -> None:
    executor = Timed(running.FUNCTIONS, time=Time(end=1160.0))  # 160 s: 100 + 5 + 60 do not fit
    ending = job(tmp_path, settings(), executor)
    assert ending.outcome is JobOutcome.STOPPED
    assert ending.reason.startswith("Slurm job 7 ends at ")
    assert ending.reason.endswith(
        "; simulation may need 1m45s, and 1m before the end are kept free"
    )
    assert not any(isinstance(one.event, TaskStarted) for one in read(tmp_path))


def test_the_end_is_read_again_before_anything_is_concluded_from_it(tmp_path: Path) -> None:
    executor = Timed(running.FUNCTIONS, time=Time(once=1100.0))  # it was given more meanwhile
    assert not executor.time.clock().admits(100)
    assert job(tmp_path, settings(), executor).outcome is JobOutcome.DONE


def test_what_runs_may_end_and_is_counted(tmp_path: Path) -> None:
    executor = Timed(running.FUNCTIONS, time=Time(end=1275.0), seconds=30.0)
    ending = job(tmp_path, settings(batch_size=2, rounds=1), executor)
    ended = [one.event for one in read(tmp_path) if isinstance(one.event, TaskEnded)]
    assert (ending.outcome, [one.status for one in ended]) == (JobOutcome.DONE, ["done"] * 2)


def test_no_more_waits_for_a_worker_than_could_end_in_time(tmp_path: Path) -> None:
    # Two fit one after the other into 300 s less the margin; each takes 40 s, so more come to it.
    executor = Timed(running.FUNCTIONS, time=Time(end=1300.0), seconds=40.0)
    ending = job(tmp_path, settings(batch_size=6, rounds=1), executor)
    assert ending.outcome is JobOutcome.STOPPED
    assert executor.most == 2
    assert executor.late == []
    assert executor.tries.total() == 4


def test_what_is_short_goes_on_when_what_is_long_no_longer_fits(tmp_path: Path) -> None:
    short = running.verifier("short", walltime="5s")
    executor = Timed(running.FUNCTIONS, time=Time(end=1140.0), seconds=1.0)
    ending = job(tmp_path, settings(verifiers=[short], batch_size=3), executor)
    assert ending.outcome is JobOutcome.STOPPED
    done = [one.event.task for one in read(tmp_path) if isinstance(one.event, TaskEnded)]
    assert done == ["short"] * 3  # and no simulation


def test_jobs_that_end_early_come_to_what_one_job_comes_to(tmp_path: Path) -> None:
    functions = running.FUNCTIONS
    whole = settings(verifiers=[running.verifier("stable", "tests:rejects")], rounds=3)
    assert job(tmp_path / "one", whole, Timed(functions)).outcome is JobOutcome.DONE
    ends = 0
    while job(tmp_path / "many", whole, Timed(functions, time=Time(end=1195.0))).outcome is (
        JobOutcome.STOPPED
    ):
        ends += 1
        assert ends < 30
    assert ends > 2
    assert answer(tmp_path / "many") == answer(tmp_path / "one")


def answer(run_dir: Path) -> Mapping[str, Any]:
    from campaign.status import status

    found = status(run_dir)
    return {key: found[key] for key in ("state", "best", "slots", "dispositions", "rounds")}


def turns(time: Time, kind: str = "threads", workers: int = 2, **keys: Any) -> Turns:
    executors = running.config(executors={"default": {"kind": kind} | keys}).executors
    return Turns(executors, lambda: {"default": Load(workers, 0, 0)}, time.clock())


def command(ranks: int) -> Any:
    """A task of 5 s."""
    keys = {"kind": "command", "command": ["true"], "output": {"json": "x"}, "walltime": "5s"}
    return running.config(simulation=keys | {"ranks": ranks}).simulation


def test_a_task_of_several_ranks_waits_for_as_many_workers() -> None:
    one, two = command(1), command(2)
    found = turns(Time(end=1075.0))  # time for one task, and for none that waits
    with found.taking(one):
        assert found.may_start(one)
        assert not found.may_start(two)
        with found.taking(one):
            assert not found.may_start(one)
    with found.taking(two):
        assert not found.may_start(one)
    assert found.may_start(two)


def test_what_is_certain_to_end_in_time_may_wait() -> None:
    one, two = command(1), command(2)
    found = turns(Time(end=1080.0))  # time for two tasks, one after the other
    with found.taking(one), found.taking(one):
        assert found.may_start(one)  # at the latest after 10 s, when both workers are free
        assert not found.may_start(two)  # it needs both: after 20 s, had one worker done it all


def test_where_narrow_tasks_may_pass_nothing_waits() -> None:
    one = command(1)
    executors = {"default": MpiConfig(kind="mpi", nodes=2)}
    found = Turns(executors, lambda: {"default": Load(2, 0, 0)}, Time().clock())
    with found.taking(one):
        assert found.may_start(one)
        with found.taking(one):
            assert not found.may_start(one)


@pytest.mark.parametrize("clock", [Clock(), Time().clock()], ids=["endless", "in a job"])
def test_what_needs_more_nodes_than_are_left_of_the_job_does_not_start(clock: Clock) -> None:
    nodes = MpiConfig(kind="mpi", nodes=4)
    wide = command(1).model_copy(update={"nodes": 3})
    found = Turns({"default": nodes}, lambda: {"default": Load(2, 0, 0)}, clock)
    assert found.may_start(command(1))
    assert not found.may_start(wide)
    assert found.why_not("simulation", wide) == (
        "simulation needs 3 nodes; executor 'default' has 2 left, the others are lost"
    )
    again = nodes.model_copy(
        update={"pilot": Pilot.model_validate({"walltime": "1h"})}
    )  # the next has all of them
    assert Turns({"default": again}, lambda: {"default": Load(2, 0, 0)}, clock).may_start(wide)


def test_what_waits_for_a_pilot_job_can_be_taken_back() -> None:
    one = command(1)
    found = turns(Time(end=1075.0), kind="slurm", workers=1, pilot={"walltime": "1h"})
    with found.taking(one), found.taking(one):
        assert found.may_start(one)


def test_without_an_end_the_executor_alone_decides_who_waits() -> None:
    spec = settings().simulation
    found = Turns(settings().executors, lambda: {"default": Load(1, 0, 0)}, Clock())
    with found.taking(spec), found.taking(spec), found.taking(spec):
        assert found.may_start(spec)


def test_an_executor_whose_workers_are_not_there_yet_gets_one_task() -> None:
    found = turns(Time(end=1075.0), workers=0)
    with found.taking(command(1)):
        assert not found.may_start(command(1))
    assert found.may_start(command(1))


# ---- the line of those who wait


def test_of_those_who_wait_for_the_same_one_looks_at_a_time() -> None:
    looked: list[str] = []

    async def stand(line: Line, need: str, number: int, *, again: bool = False) -> None:
        await line.wait(need, again=again)
        looked.append(f"{need}{number}")

    async def main() -> None:
        line = Line()
        tasks = [asyncio.create_task(stand(line, "a", n)) for n in range(3)]
        tasks += [asyncio.create_task(stand(line, "b", n)) for n in range(2)]
        await asyncio.sleep(0)
        line.call_all()
        await asyncio.sleep(0)
        assert looked == ["a0", "b0"]
        back = asyncio.create_task(stand(line, "a", 0, again=True))
        await asyncio.sleep(0)
        tasks[1].cancel()
        line.call("a")
        await asyncio.sleep(0)
        assert looked == ["a0", "b0", "a0"]  # who has looked in vain is still the first
        line.call("a")
        await asyncio.sleep(0)
        assert looked[-1] == "a2"  # and who has gone calls nobody back
        line.call("a")
        line.call("b")
        await asyncio.wait({back, *tasks})

    asyncio.run(main())
    assert looked == ["a0", "b0", "a0", "a2", "b1"]


@pytest.mark.parametrize("end", [1e6, 1e12])  # some wait with us, or all with the executor
def test_many_who_wait_cost_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: float
) -> None:
    executor = Timed(running.FUNCTIONS, time=Time(end=end), seconds=0.0)
    looks, may_start = [0], Turns.may_start

    def counted(found: Turns, spec: Any) -> bool:
        looks[0] += 1
        return may_start(found, spec)

    monkeypatch.setattr(Turns, "may_start", counted)
    tasks = {"kind": "python", "function": "tests:bowl", "walltime": "1h"}
    ending = job(tmp_path, settings(batch_size=1000, rounds=1, simulation=tasks), executor)
    assert ending.outcome is JobOutcome.DONE
    assert looks[0] < 5 * 1000


def test_a_real_clock_is_the_worlds() -> None:
    assert abs(Clock("7", 60, 0).left + time.time()) < 5
