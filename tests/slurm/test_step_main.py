"""Tasks on whole nodes of a real job: who runs where, and what is left when one ends badly."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from executors import step_main
from executors.mpi_main import ERROR_FILE
from minicluster import Minicluster, until

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.mpi]

PATIENCE = 60.0
STUBBORN = "trap '' TERM; echo up; while :; do sleep 1; done"
# Says where it runs, and when: its node, its start and its end.
STAYS = "s=$(date +%s.%N); sleep 0.7; echo $SLURMD_NODENAME $s $(date +%s.%N)"
RANK = (
    "from mpi4py import MPI; import os; w = MPI.COMM_WORLD; "
    "here = os.environ.get('SLURMD_NODENAME', os.uname().nodename); "
    "print(''.join(w.gather(f'{here} {w.size}\\n') or ''), end='')"
)
MPI = (sys.executable, "-m", "mpi4py", "-c", RANK)


@dataclass(slots=True)
class Pool:
    """Starts steps as the workers of a pool do: on the first node of a job, in a step there."""

    job: str
    names: tuple[str, ...]
    folder: Path
    cluster: Minicluster
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def inside(self, name: str) -> list[str]:
        """What starts a step called ``name`` on the first node, beside whatever runs there."""
        where = f"--nodelist={self.names[0]}"
        shape = ("--overlap", "--nodes=1", "--ntasks=1", where)
        return ["srun", f"--jobid={self.job}", f"--job-name={name}", *shape]

    def start(
        self, count: int, ranks: int, *program: str, launcher: str = "srun", **env: str
    ) -> subprocess.Popen[str]:
        words = ["--nodes", str(count), "--ranks", str(ranks), "--launcher", launcher, "--"]
        return self.main(*words, *program, **env)

    def main(self, *words: str, **env: str) -> subprocess.Popen[str]:
        directory = self.folder / f"task-{next(self.numbers)}"
        directory.mkdir()
        mine = {
            "SIMGATE_JOB": self.job,
            "SIMGATE_NODES": ",".join(self.names),
            "SIMGATE_NODE_CLAIMS": str(self.folder / "claims"),
        }
        settings = [f"{name}={value}" for name, value in (mine | env).items()]
        program = [sys.executable, str(step_main.__file__), *words]
        process = subprocess.Popen(
            [*self.inside("simgate-pool-test"), "env", *settings, *program],
            env=self.cluster.env,
            cwd=directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(
        self, count: int, ranks: int, *program: str, launcher: str = "srun", **env: str
    ) -> tuple[int, str, str]:
        return ended(self.start(count, ranks, *program, launcher=launcher, **env))

    def steps(self) -> list[str]:
        """The steps of tasks that run now."""
        said = self.cluster.run("squeue", "-s", "-h", "-j", self.job, "-o", "%i|%j")
        lines = (line.split("|") for line in said.stdout.split())
        return [
            step for step, name in lines if not name.startswith("simgate-pool") and name != "batch"
        ]

    def claims(self) -> dict[str, int]:
        """Claimed nodes, and the process that holds each."""
        folder = self.folder / "claims" / self.job
        files = [folder / name for name in self.names]
        return {f.name: json.loads(f.read_text())["pid"] for f in files if f.exists()}


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


def hosts(out: str) -> list[str]:
    return sorted({line.split()[0] for line in out.splitlines()})


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(scope="module")
def job(cluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A job of four nodes, whose first node is where workers are."""
    number = cluster.submit("exec sleep 3600", "--nodes=4", "--exclusive")
    try:
        nodes = cluster.until_job(number, "RUNNING").nodes
        names = cluster.run("scontrol", "show", "hostnames", nodes).stdout.split()
        yield Pool(number, tuple(names), tmp_path_factory.mktemp("job"), cluster)
    finally:
        cluster.run("scancel", number)
        cluster.until_job(number, "CANCELLED")


@pytest.fixture
def pool(job: Pool, tmp_path: Path) -> Iterator[Pool]:
    """The job with a folder of claims of its own; afterwards no step of a task is left."""
    pool = Pool(job.job, job.names, tmp_path, job.cluster)
    yield pool
    for holder in set(pool.claims().values()) - {0}:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGTERM)  # their srun would kill them, and leave their steps
    for process in pool.started:
        ended(process)
    until(lambda: not pool.steps(), "no step of a task is left", 10.0)


def test_ranks_run_on_the_claimed_nodes_and_nowhere_else(pool: Pool) -> None:
    code, out, err = pool.run(2, 4, *MPI)
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == [f"{name} 4" for name in pool.names[:2] for _ in "ab"]
    assert pool.claims() == {}


def test_mpiexec_places_ranks_the_same_way(pool: Pool) -> None:
    code, out, err = pool.run(2, 4, *MPI, launcher="mpiexec")
    assert (code, err) == (0, "")
    assert sorted(out.splitlines()) == [f"{name} 4" for name in pool.names[:2] for _ in "ab"]


@pytest.mark.skipif(shutil.which("mpiexec.openmpi") is None, reason="needs Debian's Open MPI")
@pytest.mark.parametrize("where", [("--host", "{hostlist}"), ("--oversubscribe", "-N", "2"), ()])
@pytest.mark.parametrize("busy", [0, 1, 2])
def test_open_mpi_through_a_launcher_of_the_tasks(
    pool: Pool, where: Sequence[str], busy: int
) -> None:
    if pool.cluster.flat:
        pytest.skip("Open MPI takes nodes of one host name for one machine")
    if busy:  # the nodes are not the first of the job, which is where this Open MPI would go
        other = pool.start(busy, busy, "sh", "-c", "echo up; exec sleep 300")
        assert other.stdout is not None
        other.stdout.readline()
    launcher = ("mpiexec.openmpi", *where, "-n", "4")
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    code, out, err = pool.run(
        2, 4, *launcher, *MPI, launcher="own", MPI4PY_MPIABI="openmpi", **as_root
    )
    assert code == 0, err
    names = pool.names[busy : busy + 2]
    assert sorted(out.splitlines()) == [f"{name} 4" for name in names for _ in "ab"]


def test_tasks_at_the_same_time_get_different_nodes_at_once(pool: Pool) -> None:
    tasks = [pool.start(2, 2, "sh", "-c", STAYS) for _ in "ab"]
    answers = [ended(task) for task in tasks]
    assert [code for code, _, _ in answers] == [0, 0]
    assert [err for _, _, err in answers] == ["", ""]  # nor did srun say that it waits
    assert hosts("".join(out for _, out, _ in answers)) == sorted(pool.names)
    spans = [line.split()[1:] for _, out, _ in answers for line in out.splitlines()]
    assert max(float(begin) for begin, _ in spans) < min(float(end) for _, end in spans)


def test_more_tasks_than_nodes_wait_for_one(pool: Pool) -> None:
    with ThreadPoolExecutor(6) as workers:
        answers = list(workers.map(lambda _: pool.run(1, 1, "sh", "-c", STAYS), range(6)))
    assert [(code, err) for code, _, err in answers] == [(0, "")] * 6
    _never_two_on_one_node([out for _, out, _ in answers])
    assert pool.claims() == {}


def test_mixed_sizes_share_the_job(pool: Pool) -> None:
    sizes = (2, 1, 4, 1, 2, 1)
    with ThreadPoolExecutor(len(sizes)) as workers:
        answers = list(workers.map(lambda n: pool.run(n, n, "sh", "-c", STAYS), sizes))
    assert [(code, err) for code, _, err in answers] == [(0, "")] * len(sizes)
    assert [len(hosts(out)) for _, out, _ in answers] == list(sizes)
    _never_two_on_one_node([out for _, out, _ in answers])


def _never_two_on_one_node(outs: Sequence[str]) -> None:
    spans: dict[str, list[tuple[float, float]]] = {}
    for line in "".join(outs).splitlines():
        host, begin, end = line.split()
        spans.setdefault(host, []).append((float(begin), float(end)))
    for taken in map(sorted, spans.values()):
        for before, after in itertools.pairwise(taken):
            assert before[1] <= after[0]


@pytest.mark.parametrize("launcher", ["srun", "mpiexec", "own"])
def test_a_task_told_to_end_is_gone_within_two_seconds(pool: Pool, launcher: str) -> None:
    program = ["sh", "-c", STUBBORN]
    if launcher == "own":
        program = ["srun", "--nodelist={nodelist}", "--nodes=2", "--ntasks=4", *program]
    task = pool.start(2, 4, *program, launcher=launcher)
    assert task.stdout is not None
    assert [task.stdout.readline() for _ in "1234"] == ["up\n"] * 4
    (pid,) = set(pool.claims().values())
    os.kill(pid, signal.SIGTERM)
    until(lambda: not pool.steps() and not pool.claims(), "all of it is gone", 2.0)
    assert ended(task)[0] == 128 + signal.SIGTERM
    assert pool.run(4, 4, "true")[0] == 0


def test_what_a_killed_launcher_leaves_is_cleared_by_who_needs_its_nodes(pool: Pool) -> None:
    task = pool.start(2, 4, "sh", "-c", STUBBORN)
    assert task.stdout is not None
    assert [task.stdout.readline() for _ in "1234"] == ["up\n"] * 4
    (pid,) = set(pool.claims().values())
    os.kill(pid, signal.SIGSTOP)  # so that it cannot clean up behind its child
    for child in children(pid):
        os.kill(child, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    ended(task)
    assert len(pool.steps()) == 1
    assert sorted(pool.claims()) == sorted(pool.names[:2])
    code, out, _ = pool.run(2, 2, "sh", "-c", STAYS)
    assert code == 0
    assert hosts(out) == sorted(pool.names[2:])  # clean nodes first
    code, out, _ = pool.run(4, 4, "sh", "-c", STAYS)
    assert (code, hosts(out)) == (0, sorted(pool.names))
    assert pool.steps() == []
    assert pool.claims() == {}


@pytest.mark.parametrize("launcher", ["srun", "mpiexec"])
def test_a_rank_that_raises_ends_them_all(pool: Pool, launcher: str) -> None:
    text = (
        "from mpi4py import MPI; import time; w = MPI.COMM_WORLD; w.barrier(); "
        "assert w.rank != 3, 'rank 3 is not well'; time.sleep(300)"
    )
    began = time.monotonic()
    code, _, err = pool.run(2, 4, sys.executable, "-m", "mpi4py", "-c", text, launcher=launcher)
    assert code != 0
    assert time.monotonic() - began < 15
    assert "rank 3 is not well" in err
    assert pool.claims() == {}


def test_the_exit_code_of_the_program_is_handed_on(pool: Pool) -> None:
    assert pool.run(1, 2, "sh", "-c", "exit 3")[0] == 3
    assert pool.run(1, 1, "sh", "-c", "kill -SEGV $$")[0] == 128 + signal.SIGSEGV


def test_ranks_that_do_not_fill_their_nodes_are_refused_before_anything_starts(pool: Pool) -> None:
    code, out, err = pool.run(2, 3, "echo", "started")
    assert (code, out) == (step_main.REFUSED, "")
    assert "3 ranks on 2 nodes: give a multiple of 2" in err
    assert not (pool.folder / "claims").exists()
    said = (pool.folder / "task-0" / ERROR_FILE.format(rank="launcher")).read_text()
    assert json.loads(said)["status"] == "error"


def test_more_nodes_than_there_are_is_no_fault_of_the_program(pool: Pool) -> None:
    code, out, err = pool.run(5, 5, "echo", "started")
    assert (code, out) == (step_main.LOST, "")
    assert "5 nodes wanted; the executor has 4" in err
    said = (pool.folder / "task-0" / ERROR_FILE.format(rank="launcher")).read_text()
    assert json.loads(said)["status"] == "lost"


def test_a_step_that_was_there_before_is_left_alone(pool: Pool) -> None:
    service = subprocess.Popen(
        [*pool.inside("service"), "sh", "-c", "echo up; exec sleep 300"],
        env=pool.cluster.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert service.stdout is not None
    with service, service.stdout:
        service.stdout.readline()
        assert pool.run(1, 1, "sh", "-c", "exit 3")[0] == 3
        assert len(pool.steps()) == 1
        service.terminate()


def test_a_step_that_a_dead_driver_left_is_cleared_first(pool: Pool) -> None:
    first = pool.start(1, 1, "sh", "-c", STUBBORN)
    assert first.stdout is not None
    first.stdout.readline()
    (pid,) = pool.claims().values()
    os.kill(pid, signal.SIGSTOP)
    for child in children(pid):
        os.kill(child, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    ended(first)
    assert len(pool.steps()) == 1
    pool.started.clear()
    pool.folder /= "resumed"
    pool.folder.mkdir()
    code, out, _ = pool.run(4, 4, "sh", "-c", STAYS)
    assert (code, len(hosts(out))) == (0, 4)
    assert pool.steps() == []


def test_threads_and_words_of_the_task_reach_the_ranks(pool: Pool) -> None:
    tell = "echo $OMP_NUM_THREADS $SLURM_CPUS_PER_TASK ${SLURM_LABELIO-none}"
    words = ("--nodes", "1", "--ranks", "2", "--option", "--cpus-per-task=2", "--")
    code, out, _ = ended(
        pool.main(*words, "sh", "-c", tell, OMP_NUM_THREADS="2", SLURM_LABELIO="1")
    )
    assert (code, out) == (0, "2 2 none\n" * 2)


def test_the_probe_names_a_launcher_that_works(pool: Pool) -> None:
    code, out, err = ended(pool.main("--probe", "--nodes", "2", "--ranks", "4"))
    assert code == 0, err
    assert out == "srun --mpi=pmi2\n"


def test_without_one_the_probe_says_what_each_said(pool: Pool) -> None:
    # No such library: every rank is alone, or fails.
    code, out, err = ended(
        pool.main("--probe", "--nodes", "2", "--ranks", "4", MPI4PY_LIBMPI="/nowhere/libmpi.so")
    )
    assert (code, out) == (1, "")
    for launcher in ("srun --mpi=pmi2: exit code", "srun --mpi=pmix: exit code", "mpiexec: exit"):
        assert launcher in err
    assert "cannot load MPI library" in err


def test_auto_tries_once_and_keeps_what_worked(pool: Pool) -> None:
    kept = pool.folder / "claims" / pool.job / ".launcher"
    for _ in "ab":
        code, out, err = pool.run(2, 4, *MPI, launcher="auto")
        assert (code, err) == (0, "")
        assert hosts(out) == sorted(pool.names[:2])
        assert json.loads(kept.read_text()) == ["srun", "--mpi=pmi2"]
    kept.write_text('["mpiexec"]')
    assert pool.run(2, 4, "env", launcher="auto")[1].count("PMI_SIZE=4") == 4


def test_auto_without_a_launcher_that_works_says_what_each_said(pool: Pool) -> None:
    code, out, err = pool.run(2, 4, *MPI, launcher="auto", MPI4PY_LIBMPI="/nowhere/libmpi.so")
    assert (code, out) == (step_main.REFUSED, "")
    assert "simgate: no launcher gives mpi4py 4 ranks; name one" in err
    assert "mpiexec: exit code" in err
    assert pool.run(4, 4, "true")[0] == 0
