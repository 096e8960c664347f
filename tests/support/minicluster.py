"""A private Slurm for a test: slurm/minicluster.sh, and what may not be left of it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SCRIPT = Path(__file__).parents[2] / "slurm" / "minicluster.sh"
FREEZER = Path("/sys/fs/cgroup/freezer")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db")


def missing(programs: tuple[str, ...] = PROGRAMS) -> str | None:
    """Those of the programs that this machine lacks, as a text."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return ", ".join(name for name in programs if not shutil.which(name, path=path)) or None


def until(condition: Callable[[], object], what: str, seconds: float = 60.0) -> None:
    """Look again and again until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not after {seconds:g} s: {what}"
        time.sleep(0.05)


def outside(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment without what belongs to a Slurm that the tests may run in."""
    return {name: text for name, text in environment.items() if not name.startswith("SLURM")}


def control(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Call minicluster.sh; a call that fails is for the test to judge."""
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, words)],
        env=outside() | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A line of squeue; ``state`` and ``reason`` in Slurm's words."""

    id: str
    name: str
    state: str
    reason: str
    nodes: str


@dataclass(frozen=True, slots=True)
class Minicluster:
    """A cluster that is up; ``env`` is what a process needs to use it."""

    dir: Path
    env: Mapping[str, str]
    prefix: tuple[str, ...] = field(default=())  # of every command, to be somebody else

    @property
    def name(self) -> str:
        """What the names of its nodes begin with, and its name in Slurm."""
        return self._setting("name")

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{n}" for n in range(1, int(self._setting("nodes")) + 1))

    @property
    def flat(self) -> bool:
        """Whether the nodes share the machine's host name, as without root."""
        return self._setting("mode") == "flat"

    def run(
        self, *argv: object, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """A command in the cluster's environment; says what it wrote when it fails."""
        ran = subprocess.run(
            [*self.prefix, *map(str, argv)],
            env=self.env,
            cwd=self.dir.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or ran.returncode == 0, (
            f"{argv}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        )
        return ran

    def submit(self, script: str, *options: object) -> str:
        """Submit one line of shell, without output; returns the job's id."""
        where = ("--output", "/dev/null", "--chdir", "/")
        return self.run("sbatch", "--parsable", *where, *options, "--wrap", script).stdout.strip()

    def jobs(self) -> dict[str, Job]:
        """The jobs that slurmctld knows, by id: also those that ended in the last minutes."""
        table = self.run("squeue", "-h", "-t", "all", "-o", "%i|%j|%T|%r|%N").stdout
        rows = [line.split("|") for line in table.splitlines()]
        return {row[0]: Job(*row) for row in rows}

    def until_job(self, job: str, *states: str, seconds: float = 60.0) -> Job:
        """Wait until the job is in one of the states."""
        until(
            lambda: self.jobs()[job].state in states, f"job {job} is {' or '.join(states)}", seconds
        )
        return self.jobs()[job]

    def pids(self) -> dict[str, int]:
        """The daemons by name, from their pid files."""
        return {file.stem: int(file.read_text()) for file in (self.dir / "run").glob("*.pid")}

    def control(self, action: str, *words: object) -> subprocess.CompletedProcess[str]:
        """minicluster.sh on this cluster."""
        return control(action, "--dir", self.dir, *words)

    def kill(self, *daemons: str) -> None:
        """As in a crash; with ``--pid-namespace`` a node dies with everything that runs on it."""
        for daemon in daemons:
            pid = self.pids()[daemon]
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: not _alive(pid), f"{daemon} is dead")  # type: ignore[misc]

    def _setting(self, key: str) -> str:
        lines = (self.dir / "settings").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)[key]


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _marked(variable: str, pattern: str) -> list[psutil.Process]:
    """The processes in whose environment the variable's value matches."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if re.fullmatch(pattern, process.environ().get(variable, "")):
                found.append(process)
    return found


def on_node(node: str) -> list[psutil.Process]:
    """What jobs run on a node."""
    return _marked("SLURMD_NODENAME", node)


def left_over(directory: Path, name: str) -> list[str]:
    """What still is there of a cluster: daemons, what its jobs run, and cgroups."""
    daemons = _marked("MINICLUSTER_DAEMON", f"{re.escape(str(directory))}:.*")
    jobs = _marked("SLURMD_NODENAME", rf"{name}-\d+")
    return [*map(str, daemons), *map(str, jobs), *map(str, FREEZER.glob(f"slurm_{name}-*"))]


def brought_up(directory: Path, *options: object) -> Minicluster:
    """Bring a cluster up; its commands' environment is what ``--print-env`` says."""
    ran = control("up", "--dir", directory, "--print-env", *options)
    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    name, _, value = line.removeprefix("export ").partition("=")
    return Minicluster(directory, outside() | {name: value})


def taken_down(cluster: Minicluster) -> None:
    """Take a cluster down and see that nothing of it is left."""
    name = cluster.name
    ran = cluster.control("down")
    assert ran.returncode == 0, ran.stderr
    assert left_over(cluster.dir, name) == []


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """pytest's own are too long for sockets; and other users may enter this one."""
    directory = Path(tempfile.mkdtemp(prefix="mc", dir="/tmp"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextlib.contextmanager
def minicluster(*options: object) -> Iterator[Minicluster]:
    """A cluster for the block; fails when something of it is left behind."""
    with short_directory() as directory:
        try:
            cluster = brought_up(directory / "c", *options)
            yield cluster
            taken_down(cluster)
        finally:
            control("down", "--dir", directory / "c")
