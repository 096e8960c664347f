"""Slurm's commands as functions: what was asked, what Slurm said, never a shell.

Only what one campaign needs of its own jobs. Every call is bounded in time; a controller that does
not answer is an :class:`SlurmError` like any other refusal, with Slurm's own words.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

TIMEOUT = 30.0
"""Seconds one command may take; a busy controller answers within some."""
PATIENCE = 300.0
"""Seconds that who wants to submit a job waits for a controller to answer again."""

_ID = re.compile(r"[0-9]+")
_FIELD = re.compile(r"(?:^|\s)([A-Za-z][\w:/]*)=")


class SlurmError(RuntimeError):
    """A command of Slurm's failed; the text is what Slurm said."""


class NoAnswerError(SlurmError):
    """Slurm's controller did not answer: what was asked may have been done all the same."""


class Ending(StrEnum):
    """Why a job ended, in the words reports use."""

    COMPLETED = "completed"
    TIME_LIMIT = "time limit"
    NODE_FAILURE = "node failure"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out of memory"
    FAILED = "failed"
    BAD_ENVIRONMENT = "bad environment"  # nothing of ours ever came up in it


_ENDINGS: Mapping[str, Ending] = {
    "COMPLETED": Ending.COMPLETED,
    "TIMEOUT": Ending.TIME_LIMIT,
    "DEADLINE": Ending.TIME_LIMIT,
    "NODE_FAIL": Ending.NODE_FAILURE,
    "BOOT_FAIL": Ending.NODE_FAILURE,
    "CANCELLED": Ending.CANCELLED,
    "REVOKED": Ending.CANCELLED,
    "PREEMPTED": Ending.PREEMPTED,
    "OUT_OF_MEMORY": Ending.OUT_OF_MEMORY,
    "FAILED": Ending.FAILED,
}
_NO_ANSWER = (
    "Unable to contact slurm controller",
    "timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "standby mode",
    "not responding",
)
_OUT = ("down", "fail", "powered_down", "powering_down", "reboot")
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD")


@dataclass(frozen=True, slots=True)
class Job:
    """A job as Slurm knows it. ``start`` and ``end`` are seconds since the epoch, 0 unknown."""

    id: str
    name: str
    state: str  # Slurm's own word
    reason: str
    nodes: int
    node_list: str
    start: float
    end: float
    exit_code: str
    preempted: bool = False  # told to give way, whether it has ended or not

    @property
    def ending(self) -> Ending | None:
        """Why it ended, ``None`` while it has not."""
        return _ENDINGS.get(self.state)

    @property
    def runs(self) -> bool:
        """Whether its processes may do their work: it neither waits nor is being taken down."""
        return self.state in ("RUNNING", "SUSPENDED")

    @property
    def waits(self) -> bool:
        return self.state in _WAITING


def missing() -> str:
    """Why there is no Slurm to talk to, ``""`` when there is."""
    absent = [name for name in ("sbatch", "srun", "scontrol") if shutil.which(name) is None]
    if absent:
        names = " and no ".join(absent)
        return f"no {names} on PATH; load Slurm's module, or give executors of kind local"
    return ""


def job_prefix(run_dir: Path) -> str:
    """What the names of all jobs of one run begin with, and of no other run's."""
    digest = hashlib.sha256(str(run_dir.absolute()).encode()).hexdigest()[:8]
    return f"simgate-{digest}-"


def current_job() -> str:
    """The id of the job this process runs in, ``""`` for none."""
    return os.environ.get("SLURM_JOB_ID", "")


def submit(script: str, *, folder: str, dependency: str = "") -> str:
    """Queue a batch script, in its folder; the job's id. Raises :class:`SlurmError`."""
    depend = [f"--dependency={dependency}"] if dependency else []
    said = call(["sbatch", "--parsable", f"--chdir={folder}", *depend], script)
    found = _ID.match(said.strip().split(";")[0])
    if found is None:
        raise SlurmError(f"sbatch: {said.strip()!r}, which names no job")
    return found[0]


def refusal(script: str, *, folder: str) -> str:
    """Why Slurm would refuse a script, ``""`` when it would not; nothing is queued."""
    try:
        call(["sbatch", "--test-only", f"--chdir={folder}"], script)
    except SlurmError as error:
        return str(error)
    return ""


def is_over(number: str) -> bool:
    """Whether nothing of a job runs any more; a lost node, or no Slurm to ask, leaves that open."""
    try:
        found = job(number)
    except SlurmError:
        return False
    return found is None or found.ending not in (None, Ending.NODE_FAILURE)


def queue(form: str, *options: str) -> list[str]:
    """A line of squeue's, in its format ``form``, for each job of this user. Raises SlurmError."""
    user = f"--user={os.getuid()}"
    said = call(["squeue", "--noheader", user, *options, f"--format={form}"])
    return [line.strip() for line in said.splitlines()]


def accounting(*options: str) -> list[str]:
    """The lines of ``sacct`` on whole jobs. Raises :class:`SlurmError`, as without accounting."""
    said = call(["sacct", "--allocations", "--noheader", "--parsable2", *options])
    return said.splitlines()


def named(prefix: str) -> dict[str, str]:
    """Our jobs that wait or run and whose names begin so: id -> name. Raises SlurmError."""
    states = "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED"
    listed = (line.partition("|") for line in queue("%i|%j", states))
    return {number: name for number, _, name in listed if name.startswith(prefix)}


def cancel(jobs: Iterable[str], *, signal: str = "") -> None:
    """End jobs (or steps); one that is gone already is no error."""
    for job in jobs:
        try:
            call(["scancel", *([f"--signal={signal}"] if signal else []), job])
        except SlurmError as error:
            if "Invalid job id" not in str(error) and "already completing" not in str(error):
                raise


def job(number: str) -> Job | None:
    """What Slurm knows of a job; ``None`` when it has forgotten it. Raises :class:`SlurmError`."""
    try:
        said = call(["scontrol", "--oneliner", "show", "job", number])
    except SlurmError as error:
        if "Invalid job id" in str(error):
            return None
        raise
    lines = said.strip().splitlines()
    return _job(number, fields(lines[0])) if lines else None


def steps(number: str) -> dict[str, tuple[str, str]]:
    """The steps of a job that run: id -> its name and its nodes as Slurm abbreviates them."""
    said = call(["squeue", "--steps", "--noheader", f"--jobs={number}", "--format=%i|%j|%N"])
    found = {}
    for line in said.splitlines():
        step, _, rest = line.strip().partition("|")
        name, _, nodes = rest.partition("|")
        if step:
            found[step] = (name, nodes)
    return found


def host_names(node_list: str) -> tuple[str, ...]:
    """``n[1-3]`` as ``n1``, ``n2``, ``n3``."""
    if "[" not in node_list:
        return tuple(filter(None, node_list.split(",")))
    return tuple(call(["scontrol", "show", "hostnames", node_list]).split())


def unusable(number: str, names: Sequence[str]) -> tuple[str, ...]:
    """Those of ``names`` that are no longer in the job, or that Slurm cannot reach.

    Raises :class:`SlurmError`.
    """
    known = job(number)
    inside = set() if known is None else set(host_names(known.node_list))
    said = call(["sinfo", "--noheader", "--Node", f"--nodes={','.join(names)}", "--format=%N|%T"])
    states = dict(line.strip().split("|") for line in said.splitlines() if "|" in line)
    return tuple(
        name
        for name in names
        if name not in inside
        or states.get(name, "").startswith(_OUT)
        or "*" in states.get(name, "")
    )


def node_failure(number: str, host: str) -> str:
    """``node failure: HOST`` when Slurm has lost that node of a job, else ``""``."""
    name = host.partition(".")[0]
    try:
        lost = unusable(number, [name])
    except SlurmError:
        return ""
    return f"{Ending.NODE_FAILURE.value}: {name}" if lost else ""


def fields(line: str) -> dict[str, str]:
    """``Key=value`` pairs of one line of ``scontrol --oneliner``; values may hold spaces."""
    found = list(_FIELD.finditer(line))
    ends = [*(one.start() for one in found[1:]), len(line)]
    return {one[1]: line[one.end() : end].strip() for one, end in zip(found, ends, strict=True)}


def _job(number: str, told: Mapping[str, str]) -> Job:
    return Job(
        id=number,
        name=told.get("JobName", ""),
        state=told.get("JobState", "").split(" ")[0].rstrip("+"),
        reason=told.get("Reason", "").removeprefix("None"),
        nodes=int(told.get("NumNodes", "1").split("-")[0] or 1),
        node_list=told.get("NodeList", "").replace("(null)", ""),
        start=epoch(told.get("StartTime", "")),
        end=epoch(told.get("EndTime", "")),
        exit_code=told.get("ExitCode", ""),
        preempted=told.get("PreemptTime", "None") not in ("None", "Unknown"),
    )


def epoch(text: str) -> float:
    """Seconds since the epoch, 0 for what is no time; Slurm prints local time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def call(argv: Sequence[str], text: str = "") -> str:
    """Run one command; its standard output. Raises :class:`SlurmError` with what it said."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SBATCH_", "SQUEUE_", "SCANCEL_", "SLURM_TIME_FORMAT"))
    }
    plain |= {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=TIMEOUT, env=plain,
            check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise SlurmError(f"{argv[0]}: not found; is Slurm's module loaded?") from None
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"{argv[0]}: no answer within {TIMEOUT:g} s") from None
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())
        if any(words in said for words in _NO_ANSWER):
            raise NoAnswerError(f"{argv[0]}: {said}")
        raise SlurmError(f"{argv[0]}: {said or f'exit code {done.returncode}'}")
    return done.stdout
