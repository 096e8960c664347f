"""Verifiers and simulations as tries of tasks: paid for, run, and written down.

A task is named by what it is and what it is run on, ``(task, content hash)``. What has ended is
never run again in a campaign; only its infrastructure failures are tried again, within the
task's own ``retries``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from campaign.budget import Exhausted, counted_by
from campaign.config import CampaignConfig, TaskConfig
from campaign.contract import Contract, simulation_contract, verifier_contract
from campaign.events import TaskEnded, TaskStarted
from campaign.limits import share, worst_case
from campaign.model import SIMULATION, JobOutcome
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.render import Place, build_task
from campaign.space import Point, content_hash
from campaign.spans import of_try
from campaign.state import CampaignState, TaskState
from campaign.stop import Stop, StoppedError
from campaign.tries import ending, final, held_to, retries_used
from campaign.turns import Line, Turns
from executors.adopt import abandoned_after, ask_to_end, read_result, see_ended, was_started
from executors.base import KILL_GRACE, Task, TaskResult, TaskStatus
from executors.flight import Load

ADOPTION = 30.0  # seconds: what outlives its driver has this long to end by itself
KILLED = "the driver ended while it ran"


class Runs(Protocol):
    """What of an executor the campaign needs."""

    async def run(self, task: Task) -> TaskResult: ...

    def load(self) -> Mapping[str, Load]: ...


@dataclass(frozen=True, slots=True)
class Job:
    """One task to do on one candidate."""

    name: str
    spec: TaskConfig
    point: Point
    round: int
    slot: int

    @property
    def caps(self) -> tuple[str, ...]:
        return ("node_hours",) if self.name == SIMULATION else ("node_hours", "verifier_node_hours")


class TaskRunner:
    """Runs jobs within the budgets; one per driver."""

    def __init__(
        self, config: CampaignConfig, place: Place, executors: Runs, recorder: Recorder, stop: Stop
    ) -> None:
        self._config = config
        self._simulation_contract = simulation_contract(config.objective.name)
        self._place = place
        self._executors = executors
        self._recorder = recorder
        self._stop = stop
        self._turns = Turns(config.executors, executors.load, stop.clock)
        self._late = False  # the job's end stopped the run
        self._purse = Purse(config.budgets, recorder)
        self._spent = ""  # the cap that stopped the run
        self._single: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._line = Line()
        self._in_flight = 0

    async def run(self, job: Job, *, again: bool = False) -> TaskEnded:
        """The job's end: read from the ledger if it has one, else by running it.

        ``again`` puts a task that failed before to work once more. Raises ``StoppedError`` when
        the run stops, by a signal or a cap, before the job has ended.
        """
        candidate = content_hash(job.point)
        # Two slots may hold the same candidate when policy lets rejected ones run: one pays.
        async with self._single[job.name, candidate]:
            return await self._tries(job, candidate, again)

    async def _tries(self, job: Job, candidate: str, again: bool) -> TaskEnded:
        known = self._state.tasks.get((job.name, candidate), TaskState())
        retried = 0 if again else retries_used(known, job.spec)
        if not again and (ended := final(known, job.spec)) is not None:
            return ended
        while True:
            ended = await self._attempt(job, candidate)
            if ended.status == TaskStatus.CANCELLED:
                self._stop.request(ended.reason or "a task was cancelled")
                raise StoppedError(self._stop.reason)
            if ended.status not in job.spec.retry_on or retried >= job.spec.retries:
                return ended
            retried += 1

    async def settle_open_tries(self) -> None:
        """End the tries an earlier driver left open: adopt what they wrote, or count them as lost.

        A try whose process is still alive is waited for, and killed after ``ADOPTION`` seconds;
        on another host it is asked to end, and waited for as :func:`see_ended` says.
        """
        left = {
            self._place.directory(one.task, one.candidate, one.attempt): (one, task.opened_at)
            for task in self._state.tasks.values()
            if (one := task.open) is not None
        }
        began = await asyncio.to_thread(_begun, left)
        await asyncio.to_thread(see_ended, began, ADOPTION)
        for directory, (started, opened_at) in left.items():
            since = opened_at if directory in began else math.inf
            await self._settle(started, directory, since)

    @property
    def _state(self) -> CampaignState:
        return self._recorder.state

    def _contract(self, task: str) -> Contract:
        return self._simulation_contract if task == SIMULATION else verifier_contract

    async def _settle(self, started: TaskStarted, directory: Path, since: float) -> None:
        result = read_result(directory)
        if result is None:
            # Unless its guard said when it ended, it ran from its start until now at the longest.
            ran = abandoned_after(directory) or max(0.0, time.time() - since)
            ran = min(ran, started.reserved * 3600 / started.nodes)
            result = TaskResult(TaskStatus.CANCELLED, reason=KILLED, seconds=ran)
        adopted = result.status is not TaskStatus.CANCELLED
        result = held_to(self._contract(started.task), result)
        ended = ending(started, result, adopted=adopted)
        with of_try(started, self._ranks(started.task), adopted=adopted) as span:
            await self._recorder.record(ended)
            span.ended(result, ended)

    def _ranks(self, task: str) -> int:
        known = {one.name: one.ranks for one in self._config.verifiers}
        return known.get(task, self._config.simulation.ranks)

    async def _attempt(self, job: Job, candidate: str) -> TaskEnded:
        cost = worst_case(job.spec)
        wanted = {cap: cost for cap in job.caps if self._by_tasks(cap)}
        await self._wait_for_room(job, wanted)
        known = self._state.tasks.get((job.name, candidate), TaskState())
        started = TaskStarted(
            task=job.name,
            candidate=candidate,
            attempt=known.tries + 1,
            round=job.round,
            slot=job.slot,
            nodes=job.spec.nodes,
            reserved=cost,
            share=self._share(job.spec),
        )
        task = self._build(job, started.attempt)
        self._in_flight += 1
        try:
            with self._turns.taking(job.spec), of_try(started, job.spec.ranks) as span:
                with self._purse.holding(wanted):
                    await self._recorder.record(started)
                task = replace(task, env={**span.environment, **task.env})
                result = held_to(self._contract(job.name), await self._execute(task, job.caps))
                ended = ending(started, result)
                await self._recorder.record(ended)
                span.ended(result, ended)
        finally:
            self._in_flight -= 1
            self._line.call_all()
        return ended

    def _by_tasks(self, cap: str) -> bool:
        """Whether what tasks take counts under a cap; else nodes do, with or without tasks."""
        return counted_by(cap, self._config.budgets.cap(cap)) == cap

    def _share(self, spec: TaskConfig) -> float:
        in_job = self._state.allocations.own is not None
        return share(spec, self._config.executors, in_job=in_job)

    def _build(self, job: Job, attempt: int) -> Task:
        """The task, rendered; a template that was broken since preflight fails the run by name."""
        try:
            return build_task(job.name, job.spec, job.point, self._place, attempt)
        except (OSError, ValueError) as error:
            self._stop.request(f"{job.name}: {error}", JobOutcome.FAILED)
            raise StoppedError(self._stop.reason) from error

    async def _execute(self, task: Task, caps: Collection[str]) -> TaskResult:
        if not self._may_start(caps):  # a stop came while its start was written down
            return TaskResult(TaskStatus.CANCELLED, reason=self._stop.reason)
        began = time.monotonic()
        run = await self._stop.until_cut(self._executors.run(task))
        finished = read_result(task.directory) if run.cancelled() else run.result()
        if finished is not None:
            # What ends a Slurm job signals everything in it: the workers may be gone before us.
            ended = finished.status is TaskStatus.LOST and self._stop.signalled
            cancelled = replace(finished, status=TaskStatus.CANCELLED, reason=self._stop.reason)
            return cancelled if ended else finished
        seconds = time.monotonic() - began if was_started(task.directory) else 0.0
        seconds = min(seconds, task.resources.walltime + KILL_GRACE)  # it may have waited long
        return TaskResult(TaskStatus.CANCELLED, reason=self._stop.reason, seconds=seconds)

    async def _wait_for_room(self, job: Job, wanted: Mapping[str, float]) -> None:
        """Return once the worst case fits under every cap, and the try into the rest of the job.

        What runs now may yet free some of a cap, or a worker.
        """
        looked = False
        try:
            while not await self._has_room(job, wanted):
                await self._line.wait(job.name, again=looked)
                looked = True
        finally:
            self._line.call(job.name)

    async def _has_room(self, job: Job, wanted: Mapping[str, float]) -> bool:
        """Look whether there is room. Raises ``StoppedError`` when there never will be."""
        if not self._may_start(wanted):
            raise StoppedError(self._stop.reason)
        blocked = self._purse.blocked(wanted)
        if blocked is None and self._turns.may_start(job.spec):
            return True
        if blocked is None and self._in_flight == 0:
            await self._stop.clock.be_sure()
            if self._turns.may_start(job.spec):
                return await self._has_room(job, wanted)
        if self._in_flight == 0:
            self._end_by(blocked, job)
            raise StoppedError(self._stop.reason)
        return False

    def _may_start(self, caps: Collection[str]) -> bool:
        """Whether a task that draws on ``caps`` may start.

        A spent cap stops only what needs it, and the job's end what would not end in time.
        """
        if not self._stop.requested.is_set():
            return True
        spared = self._late or (self._spent and self._spent not in caps)
        return bool(spared) and not self._stop.signalled

    def _end_by(self, blocked: Exhausted | None, job: Job) -> None:
        """End the run by a cap; without one, by the end of the job it is in."""
        first = not self._stop.requested.is_set()
        if blocked is None:
            self._late = self._late or first
            self._stop.request(self._turns.why_not(job.name, job.spec))
        else:
            self._spent = blocked.cap if first else self._spent
            done = blocked.per == "campaign"
            self._stop.request(str(blocked), JobOutcome.DONE if done else JobOutcome.STOPPED)
        self._line.call_all()


def _begun(directories: Collection[Path]) -> list[Path]:
    """Those of an earlier driver's tries that a worker began; no worker will begin the others."""
    return [one for one in directories if was_started(one) or ask_to_end(one)]
