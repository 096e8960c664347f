"""A driver Slurm killed on another host keeps nobody waiting; one that lives keeps its lock."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

import running
from campaign import takeover
from campaign.drive import creation
from campaign.events import JobStarted
from campaign.ledger import Ledger
from campaign.lock import NAME, Holder, LockHeldError, WriterLock, alive_holder, bury
from campaign.takeover import until_free
from pretend_slurm import PretendSlurm, pretend_slurm

DEAD = Holder("n1", 77, "123", "boot")


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    monkeypatch.setattr(takeover, "_LOOK", 0.01)
    return pretend_slurm(tmp_path / "bin", monkeypatch)


def locked(run_dir: Path, holder: Holder = DEAD, *, job: str = "7", pid: int = 77) -> Path:
    """A run whose driver, in a job of Slurm's on another host, has just beaten its heart."""
    run_dir.mkdir()
    started = JobStarted(job=1, host="n1", pid=pid, python="", numpy="", slurm=job)
    with Ledger(run_dir) as ledger:
        ledger.append(creation(running.config(), run_dir), started)
    one = {"host": holder.host, "pid": holder.pid, "started": holder.started, "boot": holder.boot}
    (run_dir / NAME).write_text(json.dumps(one))
    return run_dir


def test_a_driver_that_died_with_its_job_gives_its_lock_up_at_once(
    pretend: PretendSlurm, tmp_path: Path
) -> None:
    pretend.job("7", "TIMEOUT", "Unknown")
    run_dir = locked(tmp_path / "run")
    with pytest.raises(LockHeldError):
        WriterLock(run_dir).acquire()
    began = time.monotonic()
    asyncio.run(until_free(run_dir))
    assert time.monotonic() - began < 30
    with WriterLock(run_dir) as lock:
        assert lock.held()


@pytest.mark.parametrize(
    ("state", "job", "pid"),
    [
        ("RUNNING", "7", 77),
        ("NODE_FAIL", "7", 77),  # the node may only be cut off, and the driver alive on it
        ("TIMEOUT", "", 77),  # it was in no job
        ("TIMEOUT", "7", 78),  # the lock is another driver's
    ],
)
def test_a_driver_that_may_live_keeps_its_lock(
    pretend: PretendSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    job: str,
    pid: int,
) -> None:
    monkeypatch.setattr(takeover, "LEASE", 0.05)
    monkeypatch.setattr(takeover, "BEAT", 0.0)
    pretend.job("7", state, "Unknown")
    run_dir = locked(tmp_path / "run", job=job, pid=pid)
    asyncio.run(until_free(run_dir))
    assert alive_holder(run_dir) == DEAD


def test_outside_a_job_nobody_waits(
    pretend: PretendSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID")
    run_dir = locked(tmp_path / "run")
    asyncio.run(until_free(run_dir))
    assert alive_holder(run_dir) == DEAD
    assert pretend.asked("scontrol") == []


def test_only_the_lock_that_was_seen_is_given_up(tmp_path: Path) -> None:
    run_dir = locked(tmp_path / "run")
    bury(run_dir, Holder("n1", 78, "123", "boot"))
    assert alive_holder(run_dir) == DEAD
    bury(run_dir, DEAD)
    assert alive_holder(run_dir) is None
    bury(tmp_path, DEAD)  # where there is none
