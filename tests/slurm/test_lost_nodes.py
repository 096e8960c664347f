"""Nodes that Slurm loses under tasks: in pilot jobs, and in the job the driver is in."""

from __future__ import annotations

import json
import shlex
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


# In the driver's own job

WAITS = "hostname; until [ -e {go} ]; do sleep 0.1; done"


class OwnJob:
    """A driver of executors in a job of all nodes; the job goes on when the driver has ended."""

    def __init__(
        self,
        cluster: Minicluster,
        folder: Path,
        executor: Mapping[str, object],
        tasks: list[dict[str, Any]],
    ) -> None:
        self.cluster, self.folder = cluster, folder
        plan = {
            "executors": {"here": executor},
            "tasks": [{"executor": "here", "walltime": 300} | task for task in tasks],
        }
        (folder / "plan.json").write_text(json.dumps(plan))
        driver = shlex.join([sys.executable, str(SUPPORT / "planned_driver.py"), str(folder)])
        script = f"{driver}; echo $? > {folder}/code; exec sleep 600"
        where = ("--no-kill", "--no-requeue", "--exclusive", "--time=10")
        self.number = cluster.submit(script, f"--nodes={len(cluster.nodes)}", *where)
        self.host = ""  # the driver's

    def until_running(self, *names: str) -> None:
        started = [self.folder / "tasks" / name / "stdout" for name in names]
        until(lambda: all(one.exists() and one.read_text() for one in started), "they began", 90)
        self.host = self.cluster.run("scontrol", "show", "job", self.number).stdout
        self.host = self.host.partition("BatchHost=")[2].split()[0]

    def nodes_of(self, name: str) -> set[str]:
        return set((self.folder / "tasks" / name / "stdout").read_text().split())

    def go(self) -> None:
        (self.folder / "go").touch()

    def results(self) -> Mapping[str, dict[str, Any]]:
        until((self.folder / "code").exists, "the driver has ended", 150)
        found = json.loads((self.folder / "results.json").read_text())
        return {one["name"]: one for one in found}

    def end(self, dead: str) -> None:
        """Nothing of the executors is left in the job, though that goes on.

        What Slurm lists on the ``dead`` node ended with it; nobody can tell Slurm before the node.
        """
        steps = ("squeue", "--steps", "--noheader", f"--jobs={self.number}", "--format=%j %N")
        lines = (line.split() for line in self.cluster.run(*steps).stdout.splitlines())
        said = [name for name, node in lines if node != dead]
        self.cluster.run("scancel", self.number)
        assert self.cluster.control("up").returncode == 0
        self.cluster.until_job(self.number, "CANCELLED", "NODE_FAIL")
        assert [name for name in said if name.startswith("simgate")] == []


def programs(folder: Path, sizes: Mapping[str, int], *, wait: str) -> list[dict[str, Any]]:
    """Tasks on whole nodes that say where they run; those in ``wait`` end when told to."""
    waits = WAITS.format(go=folder / "go")
    return [
        {
            "name": name,
            "argv": ["sh", "-c", waits if name in wait else "hostname"],
            "nodes": size,
            "ranks": size,
        }
        for name, size in sizes.items()
    ]


WHOLE = {"kind": "mpi", "launcher": "srun"}


def test_whole_nodes_of_the_drivers_job_that_are_lost_are_counted_no_more(
    fragile: Minicluster, tmp_path: Path
) -> None:
    """What fits into the rest goes on, what does not is refused by name."""
    sizes = {"a": 1, "b": 1, "c": 1, "wide": 3, "d": 1, "e": 2}
    job = OwnJob(fragile, tmp_path, WHOLE, programs(tmp_path, sizes, wait="abc"))
    job.until_running("a", "b", "c")
    hit = next(name for name in "abc" if job.nodes_of(name) != {job.host})
    (dead,) = job.nodes_of(hit)
    fragile.kill(dead)
    until((tmp_path / "tasks" / hit / "result.json").exists, "its task has ended", 120)
    job.go()
    results = job.results()
    job.end(dead)
    assert results[hit]["status"] == "lost"
    assert dead in results[hit]["reason"]
    assert results["wide"]["status"] == "lost"
    assert results["wide"]["reason"] == (
        "3 nodes wanted; executor 'here' has 2 left of 3, the others are lost"
    )
    others = {"a", "b", "c", "d", "e"} - {hit}
    assert {results[name]["status"] for name in others} == {"done"}
    used = set.union(*(job.nodes_of(name) for name in others))
    assert dead not in used
    assert len(used) == 2


def test_a_node_on_which_nothing_starts_loses_the_task_before_slurm_has_noticed(
    fragile: Minicluster, tmp_path: Path
) -> None:
    sizes = {"a": 1, "wide": 3, "b": 2}
    job = OwnJob(fragile, tmp_path, WHOLE, programs(tmp_path, sizes, wait="a"))
    job.until_running("a")
    dead = next(name for name in fragile.nodes if name not in {job.host, *job.nodes_of("a")})
    until(job.folder.joinpath("tasks/b/result.json").exists, "the narrow one went ahead", 60)
    fragile.kill(dead)
    job.go()
    results = job.results()
    job.end(dead)
    assert results["wide"]["status"] == "lost"
    assert results["wide"]["reason"] == f"node {dead}: out of reach, or taken from the job"


def test_a_pilot_that_has_lost_nodes_is_replaced_for_a_task_that_needs_them(
    fragile: Minicluster, tmp_path: Path
) -> None:
    pilot = {"walltime": "10m", "memory": "100M"}
    asks = WHOLE | {"nodes": 3, "address": "127.0.0.1", "pilot": pilot}
    tasks = [
        {"executor": "here", "walltime": 300} | one
        for one in programs(tmp_path, {"a": 1, "b": 1, "c": 1, "wide": 3}, wait="abc")
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"executors": {"here": asks}, "tasks": tasks}))
    argv = [sys.executable, str(SUPPORT / "planned_driver.py"), str(tmp_path)]
    with subprocess.Popen(argv, env=dict(fragile.env)) as driver:
        out = [tmp_path / "tasks" / name / "stdout" for name in "abc"]
        until(lambda: all(one.exists() and one.read_text() for one in out), "they began", 90)
        owner = json.loads((tmp_path / "tasks" / "a" / "started.json").read_text())["owner"]
        hit = next(one for one in out if one.read_text().strip() != owner["host"])
        fragile.kill(hit.read_text().strip())
        until((hit.parent / "result.json").exists, "its task has ended", 120)
        assert fragile.control("up").returncode == 0
        (tmp_path / "go").touch()
        assert driver.wait(150) == 0
    found = {one["name"]: one for one in json.loads((tmp_path / "results.json").read_text())}
    assert found[hit.parent.name]["status"] == "lost"
    assert found["wide"]["status"] == "done", found["wide"]
    assert len(set((tmp_path / "tasks" / "wide" / "stdout").read_text().split())) == 3


def test_a_node_of_the_drivers_job_that_is_lost_takes_its_single_processes_alone(
    fragile: Minicluster, tmp_path: Path
) -> None:
    waiting = [
        {
            "name": name,
            "function": "touches",
            "candidate": {"folder": str(tmp_path), "name": name, "wait": True},
        }
        for name in "abcde"
    ]
    allocation = {"kind": "allocation", "address": "127.0.0.1"}
    job = OwnJob(fragile, tmp_path, allocation, waiting)
    began = [tmp_path / "tasks" / name / "started.json" for name in "abcde"]
    until(lambda: sum(one.exists() for one in began) == 3, "three tasks began", 90)
    first = [one for one in began if one.exists()]
    hosts = {one.parent.name: json.loads(one.read_text())["owner"]["host"] for one in first}
    batch = fragile.run("scontrol", "show", "job", job.number).stdout
    driver = batch.partition("BatchHost=")[2].split()[0]
    hit = next(name for name, host in hosts.items() if host != driver)
    fragile.kill(hosts[hit])
    until(lambda: hosts[hit] not in _up(fragile), "Slurm has noticed", 90)
    job.go()
    results = job.results()
    job.end(hosts[hit])
    assert results[hit]["status"] == "lost"
    assert results[hit]["reason"].startswith(f"node failure: {hosts[hit]} (ManagerLost: ")
    others = set("abcde") - {hit}
    assert {results[name]["status"] for name in others} == {"done"}
    assert {results[name]["host"] for name in others} == set(hosts.values()) - {hosts[hit]}
