"""Nodes that Slurm loses under the tasks of pilot jobs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from executors.slurm import job_prefix
from minicluster import Minicluster, minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUPPORT = Path(__file__).parents[1] / "support"
PILOTS = {"kind": "slurm", "address": "127.0.0.1", "pilot": {"walltime": "10m", "memory": "100M"}}


@pytest.fixture(scope="module")
def fragile() -> Iterator[Minicluster]:
    """Three nodes that can crash."""
    with minicluster("--nodes", "3", "--pid-namespace") as cluster:
        yield cluster


class Driver:
    """Executors in a process of their own, for tasks ``a``, ``b`` … that wait for ``go``."""

    def __init__(self, cluster: Minicluster, folder: Path, names: str, **more: object) -> None:
        self.cluster, self.folder, self.names = cluster, folder, names
        tasks = [self._waiting(name) for name in names]
        plan = {"executors": {"pilot": PILOTS | more}, "tasks": tasks}
        (folder / "plan.json").write_text(json.dumps(plan))
        argv = [sys.executable, str(SUPPORT / "planned_driver.py"), str(folder)]
        self.process = subprocess.Popen(argv, env=dict(cluster.env))
        until(lambda: all((folder / name).exists() for name in names), "all tasks began", 90)

    def _waiting(self, name: str) -> dict[str, Any]:
        candidate = {"folder": str(self.folder), "name": name, "wait": True}
        return {
            "name": name,
            "executor": "pilot",
            "function": "touches",
            "candidate": candidate,
            "walltime": 300,
        }

    def pilot(self) -> str:
        said = self.cluster.run("squeue", "-h", "-o", "%i %j").stdout.splitlines()
        (number,) = (line.split()[0] for line in said if job_prefix(self.folder) in line)
        return number

    def node_of(self, name: str) -> str:
        started = self.folder / "tasks" / name / "started.json"
        host: str = json.loads(started.read_text())["owner"]["host"]
        return host

    def results(self) -> Mapping[str, dict[str, Any]]:
        assert self.process.wait(150) == 0
        found = json.loads((self.folder / "results.json").read_text())
        return {one["name"]: one for one in found}


def test_a_crashed_node_loses_its_task_alone(fragile: Minicluster, tmp_path: Path) -> None:
    driver = Driver(fragile, tmp_path, "ab", nodes=2)
    dead, pilot = driver.node_of("a"), driver.pilot()
    fragile.kill(dead)
    until(lambda: f"{dead} " not in _up(fragile), "Slurm has noticed", 90)
    assert driver.process.poll() is None
    assert driver.pilot() == pilot
    (tmp_path / "go").touch()
    results = driver.results()
    assert fragile.control("up").returncode == 0
    assert results["b"]["status"] == "done"
    assert results["a"]["status"] == "lost"
    assert results["a"]["reason"].startswith(f"node failure: {dead} (ManagerLost: ")


def _up(cluster: Minicluster) -> str:
    return cluster.run("sinfo", "-h", "-N", "-t", "idle,alloc,mix", "-o", "%N ").stdout


def test_a_pilot_whose_only_node_is_out_of_reach_is_named_and_its_task_ended(
    cluster: Minicluster, tmp_path: Path
) -> None:
    """Only slurmd is dead, so the task could go on for ever, and be paid for twice."""
    if cluster.flat:
        pytest.skip("all nodes have one name")
    driver = Driver(cluster, tmp_path, "a")
    dead, pilot = driver.node_of("a"), driver.pilot()
    cluster.kill(dead)
    try:
        result = driver.results()["a"]
    finally:
        assert cluster.control("up").returncode == 0
    assert result["status"] == "lost"
    assert result["reason"].startswith(f"the pilot job {pilot} ended (node failure)")
    told = json.loads((tmp_path / "tasks" / "a" / "result.json").read_text())
    assert told["status"] == "cancelled", "the guard heard of it and ended the task"
