"""Drivers in jobs of a real Slurm, and drivers that are killed while others work for them."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from campaign.events import TaskEnded
from campaign.ledger import read
from campaign.status import status
from executors.slurm import job_prefix
from minicluster import Minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"
PILOTS = {"kind": "slurm", "address": "127.0.0.1", "pilot": {"walltime": "10m", "memory": "100M"}}
ALLOCATION = {"kind": "allocation", "address": "127.0.0.1"}
CAMPAIGN: dict[str, Any] = {
    "version": 1,
    "name": "waiting",
    "parameters": {"x": {"type": "float", "min": 0.0, "max": 1.0}},
    "objective": {"name": "loss", "direction": "minimize"},
    "rounds": 1,
    "batch_size": 2,
    "seed": 1,
    "agent": {"kind": "surrogate"},
    "simulation": {
        "kind": "python",
        "function": "waiting:simulate",
        "walltime": "5m",
        "env": {"WAITING": "{campaign_dir}"},
        "retries": 0,
    },
}
TASKS = """
import os, time
from pathlib import Path

def simulate(candidate):
    folder = Path(os.environ["WAITING"])
    with (folder / "runs").open("a") as runs:
        runs.write(f"{candidate['x']}\\n")
    while not (folder / "go").exists():
        time.sleep(0.05)
    return {"loss": candidate["x"]}
"""


class Run:
    """A campaign whose two simulations wait for a word from the test."""

    def __init__(self, cluster: Minicluster, folder: Path, executor: dict[str, Any]) -> None:
        self.cluster, self.folder, self.run_dir = cluster, folder / "campaign", folder / "run"
        self.folder.mkdir()
        (self.folder / "waiting.py").write_text(TASKS)
        config = CAMPAIGN | {"executors": {"default": executor}}
        (self.folder / "campaign.yaml").write_text(json.dumps(config))

    @property
    def argv(self) -> list[str]:
        """A driver that goes on with the run."""
        driver = str(SUPPORT / "mortal_driver.py")
        return [sys.executable, driver, str(self.run_dir), str(self.folder), "never", "1", "after"]

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.argv, env=dict(self.cluster.env))

    def runs(self) -> Counter[str]:
        """How often each candidate was simulated."""
        path = self.folder / "runs"
        return Counter(path.read_text().split() if path.exists() else [])

    def until_both_run(self) -> None:
        until(lambda: len(self.runs()) == 2, "both simulations began", 90)

    def go(self) -> None:
        (self.folder / "go").touch()

    def jobs(self) -> list[str]:
        prefix = job_prefix(self.run_dir)
        said = self.cluster.run("squeue", "-h", "-o", "%i %j").stdout.splitlines()
        return [line.split()[0] for line in said if prefix in line]

    def assert_done(self, most: int) -> None:
        """It came to its end, each simulation having been run ``most`` times at most."""
        assert status(self.run_dir)["state"] == "done"
        assert max(self.runs().values()) <= most
        ends = [one.event for one in read(self.run_dir) if isinstance(one.event, TaskEnded)]
        assert sum(end.status == "done" for end in ends) == 2
        assert {end.status for end in ends} <= {"done", "cancelled"}


def in_job(cluster: Minicluster, folder: Path, *lines: str, nodes: int = 1) -> str:
    """Submit a script that runs where the tests do; its number."""
    script = folder / "job.sh"
    script.write_text("\n".join(["#!/bin/bash", f"cd {ROOT / 'tests'}", *lines, ""]))
    where = ("--no-kill", "--no-requeue", f"--output={folder / 'job.out'}", "--exclusive")
    said = cluster.run("sbatch", "--parsable", f"--nodes={nodes}", "--time=10", *where, script)
    return said.stdout.strip()


def results(
    cluster: Minicluster,
    folder: Path,
    executors: dict[str, Any],
    tasks: Sequence[dict[str, Any]],
    nodes: int,
) -> list[dict[str, Any]]:
    """What tasks/support/planned_driver.py got for tasks, as the driver in a job of its own."""
    plan = {"executors": executors, "tasks": tasks}
    (folder / "plan.json").write_text(json.dumps(plan))
    argv = [sys.executable, str(SUPPORT / "planned_driver.py"), str(folder)]
    number = in_job(cluster, folder, f"exec {shlex.join(argv)}", nodes=nodes)
    cluster.until_job(number, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", seconds=400)
    assert (folder / "results.json").exists(), (folder / "job.out").read_text()
    assert cluster.jobs()[number].state == "COMPLETED"
    found: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())
    return found


def working_in(folder: Path) -> list[psutil.Process]:
    """Live processes below a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            inside = process.cwd().startswith(str(folder))
            if inside and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


# Drivers that are killed


def test_pilots_of_a_killed_driver_are_gone_within_a_minute_and_resume_finishes(
    cluster: Minicluster, tmp_path: Path
) -> None:
    run = Run(cluster, tmp_path, PILOTS | {"nodes": 2})
    driver = run.start()
    run.until_both_run()
    driver.kill()
    driver.wait()
    until(lambda: not run.jobs(), "the pilots are gone", 60)
    assert working_in(tmp_path) == []
    run.go()
    began = time.monotonic()
    assert run.start().wait(120) == 0
    assert time.monotonic() - began < 60
    run.assert_done(most=2)
    assert run.jobs() == []
    assert working_in(tmp_path) == []


def test_a_driver_that_follows_at_once_ends_what_the_killed_one_left(
    cluster: Minicluster, tmp_path: Path
) -> None:
    run = Run(cluster, tmp_path, PILOTS | {"workers_per_node": 2})
    driver = run.start()
    run.until_both_run()
    (pilot,) = run.jobs()
    driver.kill()
    driver.wait()
    follower = run.start()
    until(lambda: pilot not in run.jobs(), "the pilot was cancelled", 15)
    run.go()
    assert follower.wait(120) == 0
    run.assert_done(most=2)


def test_what_a_killed_driver_left_in_the_queue_is_taken_out(
    cluster: Minicluster, tmp_path: Path
) -> None:
    held = PILOTS | {"pilot": {"walltime": "10m", "scheduler_options": ["--hold"]}}
    run = Run(cluster, tmp_path, held)
    driver = run.start()
    until(lambda: run.jobs(), "a pilot is in the queue")
    (pilot,) = run.jobs()
    driver.kill()
    driver.wait()
    follower = run.start()
    until(lambda: run.jobs() not in ([], [pilot]), "another one is")
    assert pilot not in run.jobs()
    cluster.run("scontrol", "release", *run.jobs())
    run.go()
    assert follower.wait(120) == 0
    run.assert_done(most=1)


# Drivers in jobs


def test_a_driver_at_its_time_limit_loses_nothing_and_resume_finishes(
    cluster: Minicluster, tmp_path: Path
) -> None:
    run = Run(cluster, tmp_path, ALLOCATION)
    number = in_job(cluster, tmp_path, f"exec {shlex.join(run.argv)}", nodes=2)
    run.until_both_run()
    cluster.run("scontrol", "update", f"jobid={number}", "EndTime=now+1")
    cluster.until_job(number, "TIMEOUT", "FAILED", "COMPLETED", seconds=90)
    run.go()
    again = in_job(cluster, tmp_path, f"exec {shlex.join(run.argv)}", nodes=2)
    cluster.until_job(again, "COMPLETED", "FAILED", seconds=120)
    run.assert_done(most=2)


def test_pools_of_a_killed_driver_end_though_its_job_goes_on(
    cluster: Minicluster, tmp_path: Path
) -> None:
    run = Run(cluster, tmp_path, ALLOCATION)
    first = f"{shlex.join(run.argv)} & echo $! > {tmp_path / 'pid'}; wait"
    number = in_job(cluster, tmp_path, first, "sleep 600", nodes=2)
    run.until_both_run()
    os.kill(int((tmp_path / "pid").read_text()), 9)
    until(lambda: working_in(run.run_dir) == [], "nothing works for it", 60)
    cluster.run("scancel", number)
    cluster.until_job(number, "CANCELLED")
    run.go()
    again = in_job(cluster, tmp_path, f"exec {shlex.join(run.argv)}", nodes=2)
    cluster.until_job(again, "COMPLETED", "FAILED", seconds=120)
    run.assert_done(most=2)


def test_tasks_run_on_all_nodes_of_the_drivers_job(cluster: Minicluster, tmp_path: Path) -> None:
    waiting = {"folder": str(tmp_path), "wait": True}
    tasks = [
        {"name": n, "executor": "here", "function": "touches", "candidate": waiting | {"name": n}}
        for n in "abcd"
    ]
    goes = {"name": "go", "executor": "here", "function": "touches"}
    tasks.append(goes | {"candidate": {"folder": str(tmp_path), "name": "go"}})
    executors = {"here": ALLOCATION | {"workers_per_node": 3}}
    found = results(cluster, tmp_path, executors, tasks, nodes=2)
    assert [one["status"] for one in found] == ["done"] * 5
    assert len({one["host"] for one in found}) == (1 if cluster.flat else 2)


def test_two_executors_of_one_job_never_share_a_node(cluster: Minicluster, tmp_path: Path) -> None:
    executors = {
        "one": ALLOCATION | {"nodes": 1, "workers_per_node": 2},
        "two": ALLOCATION | {"nodes": 2, "workers_per_node": 2},
        "whole": {"kind": "mpi", "nodes": 1, "launcher": "srun"},
    }
    tasks: list[dict[str, Any]] = [
        {"name": f"{label}-{number}", "executor": label, "function": "double"}
        for number in range(8)
        for label in ("one", "two")
    ]
    tasks += [{"name": "w", "executor": "whole", "argv": ["hostname"]}]
    found = results(cluster, tmp_path, executors, tasks, nodes=4)
    assert {one["status"] for one in found} == {"done"}, found
    if cluster.flat:
        return
    hosts = defaultdict(set)
    for one in found[:-1]:
        hosts[one["name"].partition("-")[0]].add(one["host"])
    hosts["whole"] = set((tmp_path / "tasks" / "w" / "stdout").read_text().split())
    assert sum(map(len, hosts.values())) == len(set.union(*hosts.values()))


# Whole nodes

SAYS_WHERE = "s=$(date +%s.%N); sleep 1; echo $(hostname) $s $(date +%s.%N)"
MIXED = (4, 2, 1, 2, 1, 1)


@pytest.mark.parametrize("number", [24, 200])
def test_nodes_are_never_shared_and_seldom_idle(
    cluster: Minicluster, tmp_path: Path, number: int
) -> None:
    """Six tasks of one node, then mixed ones, over four nodes."""
    sizes = ([1] * 6 + [*MIXED] * number)[:number]
    program = ["sh", "-c", SAYS_WHERE]
    tasks = [
        {"name": f"t{at}", "executor": "mpi", "argv": program, "nodes": size, "ranks": size}
        for at, size in enumerate(sizes)
    ]
    executors = {"mpi": {"kind": "mpi", "launcher": "srun"}}
    found = results(cluster, tmp_path, executors, tasks, nodes=4)
    assert {one["status"] for one in found} == {"done"}, found
    spans = []
    by_node = defaultdict(list)
    for size, one in zip(sizes, found, strict=True):
        folder = tmp_path / "tasks" / one["name"]
        began = json.loads((folder / "result.json").read_text())["owner"]["time"]
        spans.append((began, began + one["seconds"], size))
        ran = [line.split() for line in (folder / "stdout").read_text().splitlines()]
        assert len(ran) == size
        for node, start, end in ran:
            by_node[node].append((float(start), float(end)))
    for times in by_node.values():
        times.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(times))
    used = utilisation(spans, 4)
    print(f"utilisation of {number} tasks: {used:.3f}")
    assert used >= 0.9 or number < 100


def utilisation(spans: Sequence[tuple[float, float, int]], nodes: int) -> float:
    """Node-seconds used of those there were, from the first start to the last: while work waits."""
    first, last = min(span[0] for span in spans), max(span[0] for span in spans)
    used = sum((min(end, last) - start) * size for start, end, size in spans)
    return used / (nodes * (last - first))
