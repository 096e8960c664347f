"""Campaigns in jobs of a real Slurm: submitted, chained, watched and cancelled."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from campaign.events import JobEnded, JobStarted, Submitted, TaskEnded, TaskStarted, Withdrawn
from campaign.ledger import NoLedgerError, read
from campaign.lock import LEASE
from campaign.slurmqueue import driver_name
from executors.slurm import TIMEOUT, job_prefix
from folders import folder, process
from minicluster import Minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

LONG = 180.0  # seconds in which a job starts and ends on a machine that is busy
MODEL = """
import pathlib, time

FOLDER = pathlib.Path(__file__).parent

def bowl(candidate):
    while (FOLDER / "wait").exists():
        time.sleep(0.05)
    if (FOLDER / "slow").exists():
        time.sleep(4)
    return {"loss": (candidate["x"] - 0.3) ** 2 + (candidate["y"] - 0.6) ** 2}

def stable(candidate):
    if candidate["x"] > 0.7:
        return {"verdict": "reject", "reason": f"x: {candidate['x']}; at most 0.7 is stable"}
    return {"verdict": "pass"}
"""


class Slurm:
    """The command line on a cluster, and what a test wants to know of it."""

    def __init__(self, cluster: Minicluster, place: Path) -> None:
        self.cluster = cluster
        self.place = place
        self.run_dir = place / "run"

    def campaign(self, name: str = "campaign", *, job: dict[str, Any], **changes: Any) -> Path:
        """A folder with a campaign whose simulation waits or is slow when a file says so."""
        keys: dict[str, Any] = {
            "job": {"exclusive": False, "memory": "400M"} | job,
            "executors": {"default": {"kind": "local", "workers": 2}},
            "stop_grace": "1s",
        }
        made = folder(self.place / name, **(keys | changes))
        (made / "model.py").write_text(MODEL)
        return made

    def simgate(self, *words: object) -> subprocess.CompletedProcess[str]:
        return process(*words, env=dict(self.cluster.env), cwd=self.place)

    def submit(self, config: Path, *words: object) -> str:
        """Submit into the run directory; Slurm's id of the job."""
        ran = self.simgate("submit", config, "--run-dir", self.run_dir, *words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.split(".")[0].split()[-1]

    def status(self, run_dir: Path | None = None) -> dict[str, Any]:
        ran = self.simgate("status", run_dir or self.run_dir, "--json")
        assert ran.returncode == 0, ran.stderr
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def events(self, kind: type[Any], run_dir: Path | None = None) -> list[Any]:
        try:
            entries = read(run_dir or self.run_dir)
        except NoLedgerError:
            return []
        return [entry.event for entry in entries if isinstance(entry.event, kind)]

    def until(self, kind: type[Any], what: str, number: int = 1, seconds: float = LONG) -> None:
        """Wait until the ledger holds so many events of a kind."""
        until(lambda: len(self.events(kind)) >= number, f"{what}\n{self.log}", seconds)

    def until_done(self, run_dir: Path | None = None, seconds: float = LONG) -> None:
        def done() -> bool:
            return any(one.outcome == "done" for one in self.events(JobEnded, run_dir))

        until(done, f"the campaign is done\n{self.log}", seconds)
        until(lambda: not self.waiting(run_dir), "its job has left")

    def waiting(self, run_dir: Path | None = None) -> list[str]:
        """The ids of a run's jobs that wait or run."""
        prefix = job_prefix(run_dir or self.run_dir)
        live = ("PENDING", "RUNNING", "COMPLETING")
        jobs = self.cluster.jobs().values()
        return [job.id for job in jobs if job.name.startswith(prefix) and job.state in live]

    def processes(self) -> list[int]:
        """What runs on the nodes for this run."""
        found = []
        for one in psutil.process_iter(["environ", "cmdline"]):
            words = " ".join(one.info["cmdline"] or ())
            if "SLURMD_NODENAME" in (one.info["environ"] or {}) and str(self.place) in words:
                found.append(one.pid)
        return found

    def drivers(self) -> list[psutil.Process]:
        """The run's drivers in jobs."""
        start = ["-P", "-m", "campaign", "resume", str(self.run_dir)]
        listed = psutil.process_iter(["cmdline"])
        return [one for one in listed if (one.info["cmdline"] or [])[1:6] == start]

    @property
    def log(self) -> str:
        path = self.run_dir / "slurm.log"
        return path.read_text(errors="replace") if path.exists() else "no slurm.log"


ODD = "a b'c\"d%j"  # a path as nobody should have one, and somebody has


@pytest.fixture(params=[ODD])
def slurm(cluster: Minicluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Slurm]:
    slurm = Slurm(cluster, tmp_path / request.param)
    slurm.place.mkdir()
    yield slurm
    for path in slurm.place.glob("*/wait"):
        path.unlink()
    if jobs := slurm.waiting():
        cluster.run("scancel", *jobs)
    until(lambda: not slurm.waiting(), "no job of the test is left")


@contextmanager
def partition(cluster: Minicluster, name: str, **keys: object) -> Iterator[str]:
    words = [f"{key}={value}" for key, value in keys.items()]
    nodes = f"Nodes={cluster.nodes[0]}"
    cluster.run("scontrol", "create", f"PartitionName={name}", nodes, *words)
    try:
        yield name
    finally:
        cluster.run("scontrol", "delete", f"PartitionName={name}")


@contextmanager
def drained(cluster: Minicluster, host: str) -> Iterator[None]:
    node = host if host in cluster.nodes else cluster.nodes[0]
    cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
    try:
        yield
    finally:
        cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")


# ---- one job


def test_a_campaign_runs_in_a_job_and_everything_says_so(slurm: Slurm) -> None:
    job = slurm.submit(slurm.campaign(job={"walltime": "10m"}))
    slurm.until_done()
    found = slurm.cluster.until_job(job, "COMPLETED")
    assert found.name == driver_name(slurm.run_dir, "bowl")
    (started,) = slurm.events(JobStarted)
    assert started.slurm == job
    assert f"Slurm job {job}" in slurm.log
    assert "bowl: done (all 2 rounds are done)" in slurm.log
    assert slurm.status()["state"] == "done"
    assert slurm.waiting() == []
    again = slurm.simgate("submit", slurm.run_dir)
    assert again.returncode == 2
    assert "there is nothing to submit" in again.stderr


def test_a_site_template_and_its_setup_are_what_runs(slurm: Slurm) -> None:
    job = {"walltime": "10m", "template": "site.j2", "setup": ["export SITE='it is ours'"]}
    config = slurm.campaign(job=job, rounds=1)
    (config / "site.j2").write_text(
        "#!/bin/sh\n#SBATCH --job-name={{ name }} --time={{ time }} --mem={{ job.memory }}\n"
        "#SBATCH {{ ('--output=' ~ output) | sbatch }}\n#SBATCH --open-mode=append\n"
        '{{ job.setup[0] }}\necho "$SITE, $PWD"\nexec {{ command | shell }}\n'
    )
    slurm.submit(config)
    slurm.until_done()
    assert f"it is ours, {slurm.run_dir}\n" in slurm.log


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("job.partition=nope", "invalid partition specified: nope"),
        ("job.nodes=99", "Requested node configuration is not available"),
        ("job.constraint=unheard_of", "Invalid feature specification"),
        ("job.memory=9000G", "Requested node configuration is not available"),
    ],
)
def test_what_slurm_refuses_ends_with_its_words_and_leaves_nothing(
    slurm: Slurm, override: str, words: str
) -> None:
    config = slurm.campaign(job={"walltime": "10m"})
    ran = slurm.simgate("submit", config, "--run-dir", slurm.run_dir, "--set", override)
    assert ran.returncode == 1
    assert ran.stderr.startswith("simgate: sbatch: ")
    assert words in ran.stderr
    assert not slurm.run_dir.exists()
    assert slurm.waiting() == []


def test_an_sbatch_that_hangs_ends_the_submit_at_its_deadline(
    slurm: Slurm,
) -> None:
    hangs = slurm.place / "bin" / "sbatch"
    hangs.parent.mkdir()
    hangs.write_text("#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o755)
    path = f"{hangs.parent}:{slurm.cluster.env['PATH']}"
    config = slurm.campaign(job={"walltime": "10m"})
    argv = ("submit", config, "--run-dir", slurm.run_dir)
    ran = process(*argv, env={**slurm.cluster.env, "PATH": path}, cwd=slurm.place)
    assert ran.returncode == 1
    assert ran.stderr == f"simgate: sbatch: no answer within {TIMEOUT:g} s\n"
    assert not slurm.run_dir.exists()
    assert slurm.waiting() == []


def test_a_stopped_run_is_submitted_again_and_its_output_appended(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m"})
    (config / "wait").touch()
    job = slurm.submit(config)
    slurm.until(TaskStarted, "a task has begun")
    slurm.cluster.run("scancel", "--batch", "--signal=USR1", job)  # long before the end: a word
    slurm.until(JobEnded, "the driver has left")
    slurm.cluster.until_job(job, "FAILED")  # Slurm's word for any exit code but 0
    assert "ExitCode=75:0" in slurm.cluster.run("scontrol", "show", "job", job).stdout
    (ended,) = slurm.events(JobEnded)
    assert (ended.outcome, ended.reason) == ("stopped", "SIGUSR1 received")
    (config / "wait").unlink()
    again = slurm.simgate("submit", slurm.run_dir)
    assert again.returncode == 0, again.stderr
    slurm.until_done()
    first, _ = slurm.events(JobStarted)
    assert first.slurm == job
    assert slurm.log.count("bowl: ") == 2


# ---- chains


def answer(slurm: Slurm, run_dir: Path) -> dict[str, Any]:
    """What a campaign came to, but for how long anything took."""
    found = slurm.status(run_dir)
    keys = ("state", "reason", "best", "slots", "dispositions", "rounds")
    return {key: found[key] for key in keys} | {
        "generations": found["budgets"]["generations"]["spent"]
    }


def of_one_job(slurm: Slurm, config: Path) -> dict[str, Any]:
    """The answer of a single job that has all the time it wants."""
    whole = slurm.place / "whole"
    ran = slurm.simgate("submit", config, "--run-dir", whole, "--set", "job.walltime=10m")
    assert ran.returncode == 0, ran.stderr
    slurm.until_done(whole)
    return answer(slurm, whole)


def test_a_chain_of_short_jobs_gives_the_answer_of_one_long_one(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "1m", "margin": "20s"}, rounds=14)
    whole = of_one_job(slurm, config)
    (config / "slow").touch()
    slurm.submit(config, "--chain")
    slurm.until_done(seconds=900)
    assert answer(slurm, slurm.run_dir) == whole
    jobs = slurm.events(JobStarted)
    assert len(jobs) > 2
    ends = slurm.events(JobEnded)
    assert all(" ends at " in one.reason for one in ends[:-1]), ends
    assert [one.job for one in slurm.events(Submitted)][: len(jobs)] == [one.slurm for one in jobs]


def test_a_chain_goes_on_after_each_early_signal(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m"}, rounds=6)
    whole = of_one_job(slurm, config)
    (config / "slow").touch()
    slurm.submit(config, "--chain")
    for number in range(1, 5):
        slurm.until(JobStarted, f"job {number} has started", number)
        before = len(slurm.events(TaskEnded))
        slurm.until(TaskEnded, f"job {number} gets something done", before + 1)
        job = slurm.events(JobStarted)[-1].slurm
        slurm.cluster.run("scancel", "--batch", "--signal=USR1", job)
        slurm.until(JobEnded, f"job {number} has left", number)
    (config / "slow").unlink()
    slurm.until_done()
    assert answer(slurm, slurm.run_dir) == whole
    assert len(slurm.events(JobStarted)) == 5
    assert slurm.waiting() == []


def test_a_chain_without_progress_ends(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m", "chain": {"idle_jobs": 2}}, verifiers=[])
    (config / "wait").touch()
    slurm.submit(config, "--chain")
    for number in (1, 2):
        slurm.until(TaskStarted, f"job {number} does something", 2 * number)
        job = slurm.events(JobStarted)[-1].slurm
        slurm.cluster.run("scancel", "--batch", "--signal=USR1", job)
        slurm.until(JobEnded, f"job {number} has left", number)
    first, second = slurm.events(JobEnded)
    assert first.reason == "SIGUSR1 received"
    assert second.reason == (
        "SIGUSR1 received; the chain ends, "
        "job.chain.idle_jobs: 2 jobs in a row ended no task and no round"
    )
    until(lambda: slurm.waiting() == [], "nothing is queued")
    assert slurm.status()["state"] == "stopped"


def test_a_driver_that_is_killed_has_a_successor_that_does_not_wait_for_its_lock(
    slurm: Slurm,
) -> None:
    config = slurm.campaign(job={"walltime": "2m"}, rounds=1)
    (config / "wait").touch()
    slurm.submit(config, "--chain")
    slurm.until(Submitted, "the successor is queued", 2)
    slurm.until(TaskStarted, "a task has begun")
    (driver,) = slurm.drivers()
    node = slurm.events(JobStarted)[0].host
    with drained(slurm.cluster, node):  # the successor runs on another host
        driver.kill()
        (config / "wait").unlink()
        slurm.until_done(seconds=LEASE - 20)
    first, second = slurm.events(JobStarted)
    assert slurm.cluster.flat or first.host != second.host
    assert [one.job for one in slurm.events(JobEnded)] == [2]


# ---- from outside


def test_a_run_that_waits_says_why_and_starts_when_it_may(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m", "partition": "closed"}, rounds=1)
    with partition(slurm.cluster, "closed", State="DOWN"):
        job = slurm.submit(config)
        until(lambda: slurm.status()["queued"][0]["reason"] != "", "Slurm has looked at it")
        found = slurm.status()
        why = "the partition is down (PartitionDown)"
        assert (found["state"], found["reason"]) == ("queued", f"Slurm job {job}: {why}")
        assert found["queued"][0]["job"] == job
        shown = slurm.simgate("status", slurm.run_dir).stdout
        assert why in " ".join(shown.split())
        second = slurm.simgate("submit", slurm.run_dir)
        assert second.returncode == 2
        assert f"Slurm job {job} (pending) has this run" in second.stderr
        slurm.cluster.run("scontrol", "update", "PartitionName=closed", "State=UP")
        slurm.until_done()


def test_an_account_that_a_partition_does_not_take_is_told(slurm: Slurm) -> None:
    job = {"walltime": "10m", "partition": "theirs", "account": "us"}
    with partition(slurm.cluster, "theirs", State="UP", AllowAccounts="them"):
        slurm.submit(slurm.campaign(job=job))
        until(lambda: "account" in slurm.status()["reason"], "Slurm says why")
        assert slurm.simgate("cancel", slurm.run_dir).returncode == 0
        until(lambda: slurm.waiting() == [], "the job has left")
        assert slurm.status()["reason"] == "cancelled by simgate cancel"


def test_a_running_campaign_is_seen_from_another_node(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m"})
    (config / "wait").touch()
    slurm.submit(config)
    slurm.until(TaskStarted, "a task has begun")
    before = {path.name: path.stat().st_mtime_ns for path in slurm.run_dir.glob("*.log")}
    node = slurm.cluster.nodes[-1]
    argv = [sys.executable, "-P", "-m", "campaign", "status", slurm.run_dir, "--json"]
    where = ("srun", "-N1", "-n1", f"--nodelist={node}", "--overlap", "--mem=300M")
    found = json.loads(slurm.cluster.run(*where, *argv).stdout)
    assert (found["state"], found["queued"]) == ("running", [])
    assert {path.name: path.stat().st_mtime_ns for path in slurm.run_dir.glob("*.log")} == before


def test_cancelling_ends_the_run_and_nothing_else(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "10m"})
    (config / "wait").touch()
    other = slurm.cluster.submit("sleep 600", "--job-name", "simgate-other", "--mem=100M")
    job = slurm.submit(config, "--chain")
    slurm.until(TaskStarted, "a task has begun")
    ran = slurm.simgate("cancel", slurm.run_dir)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"cancelled Slurm job {job}, the driver\n"
    assert slurm.waiting() == []
    until(lambda: slurm.processes() == [], "no process of the run is left")
    assert slurm.cluster.jobs()[other].state in ("RUNNING", "PENDING")
    slurm.cluster.run("scancel", other)
    found = slurm.status()
    assert (found["state"], found["reason"]) == ("stopped", "cancelled by simgate cancel")
    assert found["budgets"]["node_hours"]["reserved"] == 0  # it had time to settle
    (taken,) = slurm.events(Withdrawn)
    assert taken.jobs == [job]
    again = slurm.simgate("cancel", slurm.run_dir)
    assert (again.returncode, again.stdout) == (0, f"nothing of {slurm.run_dir} runs or waits\n")
    (config / "wait").unlink()
    assert slurm.simgate("resume", slurm.run_dir).returncode == 0


def test_cancelling_a_chain_leaves_no_successor(slurm: Slurm) -> None:
    config = slurm.campaign(job={"walltime": "2m"})
    (config / "wait").touch()
    slurm.submit(config, "--chain")
    slurm.until(Submitted, "the successor is queued", 2)
    slurm.until(TaskStarted, "a task has begun")
    successor = slurm.events(Submitted)[1].job
    ran = slurm.simgate("cancel", slurm.run_dir)
    assert ran.returncode == 0, ran.stderr
    assert f"cancelled Slurm job {successor}, the driver, which waited\n" in ran.stdout
    assert slurm.waiting() == []
    assert len(slurm.events(JobStarted)) == 1
    assert slurm.status()["state"] == "stopped"


def test_scancel_of_a_driver_ends_its_chain(slurm: Slurm) -> None:
    """Whoever ends the job by Slurm's own command wants it ended, not replaced."""
    config = slurm.campaign(job={"walltime": "2m"})
    (config / "wait").touch()
    job = slurm.submit(config, "--chain")
    slurm.until(Submitted, "the successor is queued", 2)
    slurm.until(TaskStarted, "a task has begun")
    slurm.cluster.run("scancel", job)
    slurm.until(JobEnded, "the driver has left")
    until(lambda: slurm.waiting() == [], "nothing is queued")
    assert len(slurm.events(JobStarted)) == 1


@pytest.mark.parametrize("slurm", ["plain"], indirect=True)
def test_cancelling_a_driver_of_this_host_ends_its_pilots(slurm: Slurm) -> None:
    pilot = {"walltime": "10m", "exclusive": False, "memory": "300M"}
    executors = {"default": {"kind": "slurm", "pilot": pilot, "address": "127.0.0.1"}}
    config = slurm.campaign(job={"walltime": "10m"}, executors=executors)
    (config / "wait").touch()
    argv = [sys.executable, "-P", "-m", "campaign", "run", config, "--run-dir", slurm.run_dir]
    with subprocess.Popen(
        list(map(str, argv)),
        env=dict(slurm.cluster.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as driver:
        until(lambda: list(slurm.run_dir.glob("tasks/*/*/started.json")), "a task runs", LONG)
        assert len(slurm.waiting()) == 1
        ran = slurm.simgate("cancel", slurm.run_dir)
        said, _ = driver.communicate(timeout=60)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"told process {driver.pid}, the driver, to end" in ran.stdout
    assert driver.returncode == 75, said
    assert slurm.waiting() == []
    until(lambda: slurm.processes() == [], "no process of the run is left")
