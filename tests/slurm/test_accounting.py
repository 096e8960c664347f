"""What a run says its nodes cost, beside what the accounting of a real Slurm says."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from campaign.allocationevents import AllocationEnded, AllocationQueued, AllocationReserved
from campaign.events import TaskEnded
from campaign.ledger import read
from campaign.status import status
from executors.slurm import job_prefix
from minicluster import ACCOUNTING_PROGRAMS, Minicluster, minicluster, missing, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.usefixtures("accounting")]

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "tests" / "support" / "mortal_driver.py"
PILOTS: dict[str, Any] = {
    "kind": "slurm",
    "address": "127.0.0.1",
    "max_pilots": 2,
    "workers_per_node": 2,
    "pilot": {"walltime": "10m", "memory": "100M"},
}
ALLOCATION = {"kind": "allocation", "address": "127.0.0.1", "workers_per_node": 2}
CAMPAIGN: dict[str, Any] = {
    "version": 1,
    "name": "bowl",
    "parameters": {"x": {"type": "float", "min": 0.0, "max": 1.0}},
    "objective": {"name": "loss", "direction": "minimize"},
    "rounds": 2,
    "batch_size": 3,
    "agent": "surrogate",
    "simulation": {"kind": "python", "function": "model:bowl", "walltime": "1m"},
}
MODEL = """
import time

def bowl(candidate):
    time.sleep(0.5)
    return {"loss": (candidate["x"] - 0.3) ** 2}
"""
SECOND = 1 / 3600
"""Hours. Slurm keeps a job's start and end in whole seconds, and so does its accounting: who
subtracts the two, or counts by a clock of his own, is off by less than a second of each job."""


@pytest.fixture(scope="module")
def booked() -> Iterator[Minicluster]:
    """A cluster that keeps accounts."""
    if missing() or missing(ACCOUNTING_PROGRAMS):
        pytest.skip("needs Slurm with its accounting")
    with minicluster("--accounting") as cluster:
        yield cluster


class Run:
    """A campaign on the cluster, and what both books say of it."""

    def __init__(self, cluster: Minicluster, place: Path, executor: dict[str, Any], **keys: Any):
        self.cluster, self.folder, self.run_dir = cluster, place / "campaign", place / "run"
        self.folder.mkdir()
        (self.folder / "model.py").write_text(MODEL)
        config = CAMPAIGN | {"executors": {"default": executor}} | keys
        (self.folder / "campaign.yaml").write_text(json.dumps(config))

    def argv(self, *fate: object) -> list[str]:
        """A driver; ``fate``: the event it dies at, which of its kind, and before or after it."""
        words = fate or ("never", 1, "after")
        return [sys.executable, str(DRIVER), str(self.run_dir), str(self.folder), *map(str, words)]

    def drive(self, *fate: object) -> int:
        env = dict(self.cluster.env)
        return subprocess.run(self.argv(*fate), env=env, timeout=300, check=False).returncode

    def booked(self) -> list[tuple[str, float]]:
        """Job and node-hours of each of its jobs, by ``sacct``, once all of them are over."""
        rows: list[list[str]] = []

        def over() -> bool:
            form = "--format=JobID,ElapsedRaw,NNodes,State,JobName"
            said = self.cluster.run("sacct", "-X", "-n", "-P", form).stdout
            mine = (line.split("|") for line in said.splitlines())
            rows[:] = [row for row in mine if row[4].startswith(job_prefix(self.run_dir))]
            # slurmctld hands its news over every few seconds, those of a new job too.
            known = {one.job for one in self.events(AllocationQueued)} <= {row[0] for row in rows}
            return known and not any(row[3] in ("RUNNING", "PENDING") for row in rows)

        until(over, "sacct knows the end of every job")
        return [(row[0], int(row[1]) * int(row[2]) * SECOND) for row in rows]

    def assert_agrees(self, jobs: list[tuple[str, float]] | None = None) -> None:
        """The run's figure is the accounting's, within a second of each job's nodes."""
        booked = self.booked() if jobs is None else jobs
        bill = status(self.run_dir)["allocation"]
        nodes = sum(one.nodes for one in self.events(AllocationReserved))
        assert bill["allocated"] == pytest.approx(
            sum(hours for _, hours in booked), abs=nodes * SECOND
        )
        parts = bill["tasks"] + bill["idle"] + bill["lost"]
        assert bill["allocated"] == pytest.approx(parts, abs=1e-9)
        assert bill["open"] == 0

    def done(self) -> int:
        """Tries that have ended well; its driver may be about to write the first event."""
        ledger = self.run_dir / "ledger.jsonl"
        if not ledger.exists() or not ledger.stat().st_size:
            return 0
        return sum(one.status == "done" for one in self.events(TaskEnded))

    def events(self, kind: type[Any]) -> list[Any]:
        return [entry.event for entry in read(self.run_dir) if isinstance(entry.event, kind)]


def test_pilot_jobs_cost_what_sacct_says(booked: Minicluster, tmp_path: Path) -> None:
    run = Run(booked, tmp_path, PILOTS)
    assert run.drive() == 0
    run.assert_agrees()
    ends = run.events(AllocationEnded)
    assert {one.source for one in ends} == {"slurm"}
    assert {one.job for one in ends} == {job for job, _ in run.booked()}
    bill = status(run.run_dir)["allocation"]
    assert 6 * 0.5 / 2 * SECOND <= bill["tasks"] <= bill["allocated"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "kind", ["allocation_reserved", "allocation_queued", "allocation_began", "allocation_ended"]
)
def test_a_killed_driver_loses_nothing_of_what_its_pilots_cost(
    booked: Minicluster, tmp_path: Path, kind: str, when: str
) -> None:
    run = Run(booked, tmp_path, PILOTS | {"max_pilots": 1})
    assert run.drive(kind, 1, when) == -9
    assert run.drive() == 0
    run.assert_agrees()


def test_a_cap_on_allocation_ends_the_campaign_by_its_name(
    booked: Minicluster, tmp_path: Path
) -> None:
    """Two pilots of ten minutes need 20 of 15 minutes; a second one is never submitted."""
    cap = {"limit": 0.25, "count": "allocation"}
    run = Run(booked, tmp_path, PILOTS, budgets={"node_hours": cap})
    assert run.drive() == 0
    assert status(run.run_dir)["reason"] == "all 2 rounds are done"
    assert len(run.booked()) == 1
    run.assert_agrees()


@pytest.mark.parametrize("most", [1, 3])
def test_an_executor_whose_last_pilot_is_gone_and_unpaid_ends_the_campaign(
    booked: Minicluster, tmp_path: Path, most: int
) -> None:
    cap = {"limit": 1 / 6, "count": "allocation"}
    pilots = PILOTS | {"max_pilots": most}
    run = Run(booked, tmp_path, pilots, rounds=100, budgets={"node_hours": cap})
    driver = subprocess.Popen(run.argv(), env=dict(booked.env))
    try:
        until(lambda: run.done() >= 3, "some tasks have ended", 120)
        booked.run("scancel", *(job.id for job in booked.jobs().values() if job.state == "RUNNING"))
        assert driver.wait(120) == 0
    finally:
        driver.kill()
        driver.wait()
    found = status(run.run_dir)
    assert found["state"] == "done"
    assert found["reason"].startswith("budgets.node_hours: ")
    assert found["budgets"]["node_hours"]["spent"] <= 1 / 6
    assert len(run.booked()) == 1
    run.assert_agrees()


def test_the_drivers_own_job_costs_what_sacct_says(booked: Minicluster, tmp_path: Path) -> None:
    """But for the time from the driver's last word to the end of its script: some seconds."""
    run = Run(booked, tmp_path, ALLOCATION)
    number = _in_job(run, tmp_path, f"exec {shlex.join(run.argv())}")
    booked.until_job(number, "COMPLETED", "FAILED", seconds=180)
    assert status(run.run_dir)["state"] == "done"
    (end,) = run.events(AllocationEnded)
    assert (end.job, end.source) == (number, "clock")
    elapsed = _elapsed(booked, number)
    assert elapsed - 10 <= end.seconds <= elapsed + 1


def test_a_killed_drivers_own_job_is_settled_by_the_next_one(
    booked: Minicluster, tmp_path: Path
) -> None:
    run = Run(booked, tmp_path, ALLOCATION)
    number = _in_job(run, tmp_path, f"exec {shlex.join(run.argv('task_ended', 2, 'after'))}")
    booked.until_job(number, "FAILED", "COMPLETED", seconds=180)
    again = _in_job(run, tmp_path, f"exec {shlex.join(run.argv())}")
    booked.until_job(again, "COMPLETED", "FAILED", seconds=180)
    first, second = run.events(AllocationEnded)
    assert (first.job, first.source) == (number, "slurm")
    assert first.seconds == _elapsed(booked, number)
    assert second.job == again


def _in_job(run: Run, place: Path, line: str) -> str:
    script = place / "job.sh"
    script.write_text("\n".join(["#!/bin/bash", f"cd {ROOT}", line, ""]))
    where = ("--nodes=2", "--time=10", "--no-requeue", f"--output={place / 'job.out'}")
    return run.cluster.run("sbatch", "--parsable", *where, "--exclusive", script).stdout.strip()


def _elapsed(cluster: Minicluster, job: str) -> int:
    asked = ("sacct", "-X", "-n", "-P", "-j", job, "--format=State,ElapsedRaw")
    until(lambda: "RUNNING" not in cluster.run(*asked).stdout, "sacct knows its end")
    return int(cluster.run(*asked).stdout.strip().split("|")[1])
