"""In a job, a signal is looked at by the clock: a hint near the end, a word to stop before it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import running
from campaign.attend import LAST_WORDS, Attention, attending
from campaign.chain import Chain
from campaign.clock import Clock
from campaign.drive import creation
from campaign.events import Event, JobStarted, Signalled, Submitted, Submitting
from campaign.jobconfig import ChainConfig
from campaign.ledger import Ledger, read
from campaign.recorder import Recorder
from campaign.slurmqueue import SCRIPT
from campaign.state import fold
from campaign.stop import Stop
from pretend_slurm import PretendSlurm, pretend_slurm

FAR, NEAR = 1000.0, 100.0
FIRST: tuple[Event, ...] = (
    Submitting(name="simgate-0-driver:x", link=1, chain=True),
    Submitted(job="7"),
    JobStarted(job=1, host="h", pid=1, python="", numpy="", slurm="7"),
)


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    found = pretend_slurm(tmp_path / "bin", monkeypatch)
    found.says("sbatch", "8\n")
    return found


def ends_in(pretend: PretendSlurm, seconds: float, state: str = "RUNNING") -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + seconds))
    pretend.job("7", state, stamp)


def attended(
    run_dir: Path,
    do: Callable[[Attention], Awaitable[None]],
    *,
    job: str = "7",
    left: float = FAR,
    grace: float = 30.0,
) -> tuple[Attention, list[Event]]:
    """What a driver knows and wrote after ``do``, in a job that has ``left`` seconds."""
    run_dir.mkdir()
    (run_dir / SCRIPT).write_text("#!/bin/sh\n")

    async def main() -> Attention:
        with Ledger(run_dir) as ledger:
            ledger.append(creation(running.config(), run_dir), *FIRST)
        with Ledger(run_dir) as ledger:
            recorder = Recorder(ledger, fold(ledger.recovered))
            stop = Stop(Clock(job, 60, time.time() + left) if job else Clock())
            chain = Chain(recorder, run_dir, ChainConfig(), stop.clock)
            async with attending(stop, chain, recorder, grace) as attention:
                await do(attention)
                await attention.rest()
            return attention

    attention = asyncio.run(asyncio.wait_for(main(), 60))
    return attention, [entry.event for entry in read(run_dir)][1 + len(FIRST) :]


def sends(number: signal.Signals) -> Callable[[Attention], Awaitable[None]]:
    async def do(_: Attention) -> None:
        os.kill(os.getpid(), number)
        await asyncio.sleep(0.05)  # until the loop has heard of it

    return do


async def nothing(_: Attention) -> None:
    await asyncio.sleep(0.05)


def test_the_early_signal_near_the_end_stops_nothing_and_brings_the_successor(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    ends_in(pretend, NEAR)
    attention, wrote = attended(tmp_path / "run", sends(signal.SIGUSR1))
    assert not attention.stop.requested.is_set()
    assert attention.stop.clock.left < FAR / 2  # Slurm was asked
    assert [type(one) for one in wrote] == [Submitting, Submitted]


def test_the_same_signal_long_before_the_end_is_a_word_to_stop(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    ends_in(pretend, FAR)
    attention, wrote = attended(tmp_path / "run", sends(signal.SIGUSR1))
    assert attention.stop.reason == "SIGUSR1 received"
    assert wrote == [Signalled(signal="SIGUSR1", grace=30.0)]
    assert not attention.told  # the chain goes on


def test_outside_a_job_every_signal_is_a_word_to_stop(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        attention, wrote = attended(tmp_path / number.name, sends(number), job="")
        assert attention.stop.reason == f"{number.name} received"
        assert wrote == [Signalled(signal=number.name, grace=30.0)]
    assert pretend.asked("scontrol") == []


@pytest.mark.parametrize(
    ("left", "state", "then", "told"),
    [
        (FAR, "COMPLETING", 0.0, True),  # scancel
        (FAR, "RUNNING", FAR, True),  # kill, or scancel --signal
        (FAR, "RUNNING", 30.0, False),  # preempted, with a time of grace
        (2.0, "COMPLETING", 0.0, False),  # the time limit
        (FAR, "COMPLETING PreemptTime=2030-01-01T00:00:00", 0.0, False),  # preempted, at once
        (FAR, "COMPLETING PreemptTime=None", 0.0, True),
    ],
)
def test_who_meant_a_sigterm_follows_from_the_job(
    tmp_path: Path, pretend: PretendSlurm, left: float, state: str, then: float, told: bool
) -> None:
    ends_in(pretend, then, state)
    attention, wrote = attended(tmp_path / "run", sends(signal.SIGTERM), left=left)
    assert attention.told is told
    assert Signalled(signal="SIGTERM", grace=LAST_WORDS) in wrote


def test_an_interrupt_is_somebodys_word(tmp_path: Path, pretend: PretendSlurm) -> None:
    ends_in(pretend, NEAR)
    attention, _ = attended(tmp_path / "run", sends(signal.SIGINT))
    assert attention.told


def test_the_successor_is_queued_when_the_last_part_of_a_job_begins(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    ends_in(pretend, FAR)
    assert attended(tmp_path / "far", nothing, left=FAR)[1] == []
    ends_in(pretend, NEAR)
    _, wrote = attended(tmp_path / "near", nothing, left=NEAR)
    assert [type(one) for one in wrote] == [Submitting, Submitted]


def test_when_nothing_may_run_any_more_what_runs_is_cut_off(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    ends_in(pretend, 60.0)
    cancelled = []

    async def runs(attention: Attention) -> None:
        task: asyncio.Task[object] = asyncio.create_task(asyncio.Event().wait())
        with attention.stop.cancels(task):
            await asyncio.wait({task}, timeout=10)
        cancelled.append(task.cancelled())

    attention, _ = attended(tmp_path / "run", runs, left=60.2)
    assert cancelled == [True]
    assert attention.stop.reason.startswith("Slurm job 7 ends at ")
    assert attention.stop.reason.endswith(", and nothing may be running any more")
