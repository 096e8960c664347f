"""What a site's Slurm does by rules of its own: preemption, memory limits, accounts.

A job that runs out of memory ends as OUT_OF_MEMORY only where cgroups limit it. Here Slurm measures
it, and the job has failed; that it was for its memory stands in the end of its log.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

from campaign.events import JobEnded, JobStarted, TaskStarted
from campaign.ledger import NoLedgerError, read
from campaign.model import SIMULATION
from executors.slurm import job_prefix
from folders import folder, process
from minicluster import Minicluster, minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUPPORT = Path(__file__).parents[1] / "support"
GRACE = 20  # seconds a preempted job has
RULES = f"""
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=CANCEL State=UP DefaultTime=10
PartitionName=graceful Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime={GRACE} State=UP
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF State=UP DefaultTime=10
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
"""
OTHERS = {
    "JobAcctGatherType=jobacct_gather/none": "JobAcctGatherType=jobacct_gather/linux",
    "SelectTypeParameters=CR_Core": "SelectTypeParameters=CR_Core_Memory",
}


def reconfigured(cluster: Minicluster, more: str, instead: Mapping[str, str]) -> None:
    """Start all of Slurm again by other rules; munged goes on, so that nothing is written anew."""
    for conf in cluster.dir.glob("etc/**/slurm.conf"):
        text = conf.read_text()
        for old, new in instead.items():
            assert old in text
            text = text.replace(old, new)
        conf.write_text(text + more)
    for name in ("slurmctld", *cluster.nodes):
        daemon = psutil.Process(cluster.pids()[name])
        daemon.terminate()
        daemon.wait(30)
    ran = cluster.control("up")
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def strict() -> Iterator[Minicluster]:
    """Two nodes with partitions whose jobs give way to others, and a limit on memory."""
    with minicluster("--nodes", 2) as cluster:
        reconfigured(cluster, RULES, OTHERS)
        yield cluster


class Driver:
    """Executors with one pilot job and one task, in a process of its own."""

    def __init__(
        self, cluster: Minicluster, place: Path, task: dict[str, object], **pilot: object
    ) -> None:
        self.cluster, self.place = cluster, place
        asks = {"walltime": "10m", "memory": "300M"} | pilot
        executor = {"kind": "slurm", "address": "127.0.0.1", "pilot": asks}
        one: dict[str, object] = {"name": "a", "executor": "pilot", "walltime": 300} | task
        plan = {"executors": {"pilot": executor}, "tasks": [one]}
        (place / "plan.json").write_text(json.dumps(plan))
        argv = [sys.executable, str(SUPPORT / "planned_driver.py"), str(place)]
        self.process = subprocess.Popen(argv, env=dict(cluster.env))
        until((place / "tasks" / "a" / "started.json").exists, "the task began", 90)

    def pilot(self) -> str:
        said = self.cluster.run("squeue", "-h", "-o", "%i %j").stdout.splitlines()
        (number,) = (line.split()[0] for line in said if job_prefix(self.place) in line)
        return number

    def result(self) -> Mapping[str, Any]:
        assert self.process.wait(150) == 0
        (found,) = json.loads((self.place / "results.json").read_text())
        assert isinstance(found, dict)
        return found


def test_a_preempted_pilot_is_named(strict: Minicluster, tmp_path: Path) -> None:
    driver = Driver(strict, tmp_path, {"argv": ["sleep", "600"]}, partition="low")
    pilot = driver.pilot()
    strict.submit("true", "--partition=high", "--nodes=2", "--mem=100M")
    result = driver.result()
    assert result["status"] == "lost"
    assert result["reason"].startswith(f"the pilot job {pilot} ended (preempted): ")
    assert "DUE TO PREEMPTION" in result["reason"]


def test_a_pilot_is_not_requeued_behind_its_drivers_back(
    strict: Minicluster, tmp_path: Path
) -> None:
    """It would start again and find a driver that has replaced it."""
    driver = Driver(
        strict, tmp_path, {"argv": ["sh", "-c", f"until [ -e {tmp_path}/go ]; do :; done"]}
    )
    refused = strict.run("scontrol", "requeue", driver.pilot(), check=False)
    (tmp_path / "go").touch()
    assert refused.returncode != 0
    assert driver.result()["status"] == "done"


def test_a_pilot_that_takes_too_much_memory_is_ended_in_slurms_words(
    strict: Minicluster, tmp_path: Path
) -> None:
    greedy = "import time; x = b'x' * 10**9; time.sleep(600)"
    driver = Driver(strict, tmp_path, {"argv": [sys.executable, "-c", greedy]})
    result = driver.result()
    assert result["status"] == "lost"
    assert "exceeded memory limit" in result["reason"]


def _events(run_dir: Path, kind: type[Any]) -> list[Any]:
    try:
        return [one.event for one in read(run_dir) if isinstance(one.event, kind)]
    except NoLedgerError:
        return []


def test_a_preempted_driver_has_a_successor_that_goes_on(
    strict: Minicluster, tmp_path: Path
) -> None:
    """Preemption is not the word of a person, who would want the chain ended."""
    job = {"walltime": "10m", "partition": "graceful", "memory": "500M", "exclusive": False}
    simulation = {"kind": "python", "function": "model:bowl", "walltime": "5m"}
    config = folder(
        tmp_path / "campaign", job=job, rounds=1, stop_grace="1s", simulation=simulation
    )
    wait = config / "wait"
    wait.touch()
    model = config / "model.py"
    model.write_text(
        "import pathlib, time\n"
        "WAIT = pathlib.Path(__file__).with_name('wait')\n"
        + model.read_text().replace(
            "def bowl(candidate):\n",
            "def bowl(candidate):\n    while WAIT.exists():\n        time.sleep(0.05)\n",
        )
    )
    run_dir = tmp_path / "run"
    env = dict(strict.env)
    ran = process("submit", config, "--run-dir", run_dir, "--chain", env=env)
    assert ran.returncode == 0, ran.stderr

    def simulates() -> bool:
        return any(one.task == SIMULATION for one in _events(run_dir, TaskStarted))

    until(simulates, "a simulation began", 120)
    other = strict.submit("sleep 5", "--partition=high", "--nodes=2", "--exclusive")
    until(lambda: _events(run_dir, JobEnded), "the driver has left", 120)
    wait.unlink()
    strict.until_job(other, "COMPLETED", seconds=120)
    until(lambda: not strict.run("squeue", "-h").stdout, "the queue is empty", 180)
    first, second = _events(run_dir, JobEnded)
    assert (first.outcome, second.outcome) == ("stopped", "done")
    assert first.reason == "SIGTERM received"
    assert len({one.slurm for one in _events(run_dir, JobStarted)}) == 2


@pytest.mark.usefixtures("accounting")
def test_an_account_that_the_accounting_does_not_know_is_refused_in_slurms_words(
    tmp_path: Path,
) -> None:
    with minicluster("--nodes", 1, "--accounting") as cluster:
        cluster.run("sacctmgr", "-i", "add", "account", "ours")
        cluster.run("sacctmgr", "-i", "add", "user", "root", "account=ours")
        reconfigured(cluster, "AccountingStorageEnforce=associations\n", {})
        config = folder(tmp_path / "campaign", job={"walltime": "10m", "account": "theirs"})
        run_dir, env = tmp_path / "run", dict(cluster.env)
        refused = process("submit", config, "--run-dir", run_dir, env=env)
        assert refused.returncode == 1
        assert refused.stderr.startswith("simgate: sbatch: ")
        assert "Invalid account" in refused.stderr
        assert not run_dir.exists()
        assert cluster.jobs() == {}
        taken = process(
            "submit", config, "--run-dir", run_dir, "--set", "job.account=ours", env=env
        )
        assert taken.returncode == 0, taken.stderr
        assert process("cancel", run_dir, env=env).returncode == 0
        until(lambda: not cluster.run("squeue", "-h").stdout, "its job has left")
