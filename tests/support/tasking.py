"""The part of a driver that runs single tasks, on an inline executor."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from campaign.config import CampaignConfig
from campaign.drive import creation
from campaign.events import Event, JobStarted, TaskStarted
from campaign.ledger import Ledger
from campaign.limits import worst_case
from campaign.model import SIMULATION
from campaign.recorder import Recorder
from campaign.render import Place
from campaign.space import Point, content_hash
from campaign.state import fold
from campaign.stop import Stop
from campaign.tasks import Job, TaskRunner
from inline import Answering, InlineExecutor
from running import FUNCTIONS

POINT: Point = {"x": 0.25, "y": 0.5}
STARTED = JobStarted(job=1, host="h", pid=1, python="", numpy="")


@dataclass
class Driver:
    """What a test looks at while tasks run."""

    tasks: TaskRunner
    executor: InlineExecutor
    recorder: Recorder
    stop: Stop
    place: Place


@asynccontextmanager
async def driver(
    run_dir: Path, settings: CampaignConfig, functions: Mapping[str, Answering] = FUNCTIONS
) -> AsyncIterator[Driver]:
    """A job that goes on with whatever ``run_dir`` holds."""
    executor, stop, place = InlineExecutor(functions), Stop(), Place(run_dir, run_dir, 1)
    with Ledger(run_dir) as ledger:
        recorder = Recorder(ledger, fold(ledger.recovered))
        if recorder.state.run is None:
            await recorder.record(creation(settings, run_dir, surrogate_only=False))
        await recorder.record(STARTED)
        tasks = TaskRunner(settings, place, executor, recorder, stop)
        yield Driver(tasks, executor, recorder, stop, place)


def simulation(settings: CampaignConfig, point: Point = POINT, slot: int = 0) -> Job:
    return Job(SIMULATION, settings.simulation, point, 1, slot)


def started(settings: CampaignConfig, attempt: int = 1) -> TaskStarted:
    """The event before a try of the simulation at ``POINT``."""
    return TaskStarted(
        task=SIMULATION,
        candidate=content_hash(POINT),
        attempt=attempt,
        round=1,
        slot=0,
        nodes=1,
        reserved=worst_case(settings.simulation),
    )


def history(run_dir: Path, settings: CampaignConfig, *events: Event) -> None:
    """A ledger whose driver was killed after ``events``."""
    with Ledger(run_dir) as ledger:
        ledger.append(creation(settings, run_dir, surrogate_only=False), STARTED, *events)


def try_directory(run_dir: Path, attempt: int = 1) -> Path:
    return run_dir / "tasks" / f"{SIMULATION}-{content_hash(POINT)}" / f"try-{attempt}"


def left_behind(directory: Path, answer: str | None) -> None:
    """What a worker that is no more left of a try: its result, or only that it began."""
    program = (
        "import sys; from executors.claim import Claim, Outcome; "
        "from executors.base import TaskStatus; "
        "claim = Claim(sys.argv[1], {}, {}); "
        "answer = sys.argv[2].encode(); "
        "answer and claim.finish(Outcome(TaskStatus.DONE, value=answer))"
    )
    subprocess.run([sys.executable, "-c", program, directory, answer or ""], check=True)
