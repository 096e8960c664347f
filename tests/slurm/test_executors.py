"""Tasks in pilot jobs of a real Slurm: what is answered, and what breaks without costing more."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from executors import adopt, slurm
from executors.base import CommandWork, Task, TaskStatus, Work
from executors.config import ExecutorConfig, LocalConfig, MpiConfig, SlurmConfig
from executors.launch import step_launcher
from executors.slurm import job_prefix
from minicluster import Minicluster, until
from opened import Opened

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

SUPPORT = Path(__file__).parents[1] / "support"
FOREVER = CommandWork(("sleep", "600"))
PATIENCE = 120.0


class Running(Opened):
    """Executors that are open beside a private Slurm."""

    def __init__(self, cluster: Minicluster, configs: Mapping[str, ExecutorConfig], folder: Path):
        super().__init__(configs, folder, patience=PATIENCE)
        self.cluster = cluster

    def task(
        self, work: Work | str, label: str = "pilot", *, walltime: float = 60.0, **fields: Any
    ) -> Task:
        return super().task(work, label, walltime=walltime, **fields)

    def sleeping(self, label: str = "pilot", *, walltime: float = 60.0) -> tuple[Task, Any]:
        """A task that is in the middle of its work."""
        task = self.task(FOREVER, label, walltime=walltime)
        future = self.begin(task)
        until(lambda: future.done() or (task.directory / "started.json").exists(), "it began", 60)
        return task, future

    def pilots(self, label: str = "pilot") -> list[str]:
        """The numbers of pilot jobs that wait or run."""
        prefix = job_prefix(self.folder) + label
        states = ("PENDING", "CONFIGURING", "RUNNING")
        jobs = self.cluster.jobs().values()
        return [job.id for job in jobs if job.name.startswith(prefix) and job.state in states]

    def pilot(self) -> str:
        (number,) = self.pilots()
        return number


def pilots(
    *, nodes: int = 1, workers: int = 1, pilot: Mapping[str, object] | None = None, **more: object
) -> SlurmConfig:
    asks = {"walltime": "10m", "memory": "100M", **(pilot or {})}
    return SlurmConfig.model_validate(
        {
            "kind": "slurm",
            "nodes": nodes,
            "workers_per_node": workers,
            "address": "127.0.0.1",
            "pilot": asks,
            **more,
        }
    )


@pytest.fixture(scope="module", autouse=True)
def _on_the_cluster(cluster: Minicluster) -> Iterator[None]:
    """The driver's commands are for the private Slurm."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SLURM")]:
            patch.delenv(name)
        patch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        yield


@contextmanager
def running(cluster: Minicluster, folder: Path, **configs: ExecutorConfig) -> Iterator[Running]:
    """Executors for the block; afterwards neither a job nor a process of theirs is left."""
    opened = Running(cluster, configs, folder)
    try:
        yield opened
    finally:
        opened.close()
    assert left(cluster, folder) == []


def left(cluster: Minicluster, folder: Path) -> list[str]:
    """What of the run in ``folder`` is in the queue, and processes that work below it."""
    queued = cluster.run("squeue", "-h", "-o", "%i %j %T").stdout.splitlines()
    jobs = [job for job in queued if job_prefix(folder) in job]
    return jobs + [str(process) for process in psutil.process_iter() if _works_in(process, folder)]


def _works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.cwd().startswith(str(folder)) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def processes(line: str, folder: Path) -> list[psutil.Process]:
    """Those below ``folder`` whose command line says so."""
    found = []
    for process in psutil.process_iter():
        try:
            if line in " ".join(process.cmdline()) and _works_in(process, folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


# A pilot of two nodes with two workers each, shared by tests that leave it usable


@pytest.fixture(scope="module")
def shared(cluster: Minicluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("run") / "it's a run"
    with running(cluster, folder, pilot=pilots(nodes=2, workers=2)) as opened:
        yield opened


def test_nothing_is_submitted_before_there_is_work(shared: Running) -> None:
    assert shared.pilots() == []


def test_tasks_run_on_all_nodes_of_the_pilot(shared: Running, tmp_path: Path) -> None:
    began = time.monotonic()
    assert shared.run(shared.task("double")).value == {"y": 1.0}
    assert time.monotonic() - began < 60
    names = "abcd"
    futures = [
        shared.begin(
            shared.task("touches", candidate={"folder": str(tmp_path), "name": name, "wait": True})
        )
        for name in names
    ]
    until(lambda: all((tmp_path / name).exists() for name in names), "four tasks run at once")
    (tmp_path / "go").touch()
    results = [future.result(PATIENCE) for future in futures]
    assert [result.status for result in results] == [TaskStatus.DONE] * 4
    assert len({result.host for result in results}) == (1 if shared.cluster.flat else 2)


def test_a_worker_that_is_killed_loses_its_task_alone(shared: Running) -> None:
    pilot = shared.pilot()
    task, future = shared.sleeping()
    _, other = shared.sleeping()
    killed = time.monotonic()
    _guard(task).parents()[0].kill()
    result = future.result(PATIENCE)
    assert result.status is TaskStatus.LOST
    assert result.reason.startswith("WorkerLost: ")
    assert 0 < result.seconds < 30
    assert time.monotonic() - killed < 15
    assert not other.done()
    other.cancel()
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    assert shared.pilot() == pilot


def test_a_pool_that_is_killed_loses_its_tasks_and_the_other_node_goes_on(
    shared: Running,
) -> None:
    pilot = shared.pilot()
    (first, lost), (_, kept) = two_on_different_nodes(shared)
    _pool(first).kill()
    result = lost.result(PATIENCE)
    assert result.status is TaskStatus.LOST
    assert "ManagerLost: " in result.reason
    assert 0 < result.seconds < 60
    assert not kept.done()
    kept.cancel()
    results = [shared.begin(shared.task("double")) for _ in range(10)]
    assert {one.result(PATIENCE).status for one in results} == {TaskStatus.DONE}
    assert shared.pilot() == pilot


def two_on_different_nodes(shared: Running) -> list[tuple[Task, Any]]:
    """Two tasks that sleep, each on another node; those that do not fit are cancelled."""
    begun = [shared.sleeping() for _ in range(4)]
    pools = [_pool(task).pid for task, _ in begun]
    other = next(at for at, pool in enumerate(pools) if pool != pools[0])
    for at, (_, future) in enumerate(begun):
        if at not in (0, other):
            future.cancel()
    return [begun[0], begun[other]]


def _guard(task: Task) -> psutil.Process:
    owner = adopt._owner(task.directory)
    assert owner is not None
    return psutil.Process(owner["pid"])


def _pool(task: Task) -> psutil.Process:
    """The worker pool above a task."""
    return _guard(task).parents()[1]


def test_a_pilot_cancelled_in_mid_task_is_named_and_replaced(shared: Running) -> None:
    task, future = shared.sleeping()
    pilot = shared.pilot()
    shared.cluster.run("scancel", pilot)
    result = future.result(PATIENCE)
    assert result.status is TaskStatus.LOST
    assert result.reason.startswith(f"the pilot job {pilot} ended (cancelled): ")
    assert "CANCELLED" in result.reason, "the end of the pilot's log"
    assert 0 < result.seconds < 60
    assert adopt.read_result(task.directory) is None
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    assert shared.pilot() != pilot


def test_a_pilot_that_ends_while_nobody_needs_it_costs_nothing(shared: Running) -> None:
    for _ in range(4):  # more often than an executor may break
        assert shared.run(shared.task("double")).status is TaskStatus.DONE
        shared.cluster.run("scancel", shared.pilot())
        until(lambda: shared.pilots() == [], "the pilot is gone")
        crew = shared.executors._pools["pilot"].crew  # type: ignore[union-attr]
        until(lambda crew=crew: not crew.ready, "its end was seen")  # type: ignore[misc]
        assert crew._failures == 0


def test_an_idle_pilot_is_given_back_before_slurm_ends_it(shared: Running) -> None:
    """Slurm may take a minute longer than it says, which nobody has reserved."""
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    pilot = shared.pilot()
    shared.cluster.run("scontrol", "update", f"jobid={pilot}", "EndTime=now+8")
    crew = shared.executors._pools["pilot"].crew  # type: ignore[union-attr]
    until(lambda: not crew.ready and not crew.ending, "it was given back")
    assert shared.cluster.jobs()[pilot].state == "CANCELLED"


def test_a_pilot_at_its_time_limit_is_named(shared: Running) -> None:
    _, future = shared.sleeping(walltime=500.0)
    pilot = shared.pilot()
    shared.cluster.run("scontrol", "update", f"jobid={pilot}", "EndTime=now+1")
    result = future.result(PATIENCE)
    assert result.status is TaskStatus.LOST
    assert result.reason.startswith(f"the pilot job {pilot} ended (time limit): ")
    assert "DUE TO TIME LIMIT" in result.reason


def test_what_does_not_fit_into_the_rest_of_a_pilot_waits_for_the_next(shared: Running) -> None:
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    pilot = shared.pilot()
    shared.cluster.run("scontrol", "update", f"jobid={pilot}", "EndTime=now+100")
    crew = shared.executors._pools["pilot"].crew  # type: ignore[union-attr]
    until(lambda: crew.ends_at() < time.time() + 100, "the new end is known")
    assert shared.run(shared.task("double", walltime=60.0)).status is TaskStatus.DONE
    assert shared.pilot() == pilot
    assert shared.run(shared.task("double", walltime=300.0)).status is TaskStatus.DONE
    assert shared.pilot() != pilot
    assert crew._failures == 0


def test_a_restarted_controller_costs_nothing(shared: Running) -> None:
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    pilot = shared.pilot()
    _, future = shared.sleeping(walltime=8.0)
    stop_controller(shared.cluster)
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    assert shared.cluster.control("up").returncode == 0
    assert future.result(PATIENCE).status is TaskStatus.WALLTIME
    assert shared.run(shared.task("double")).status is TaskStatus.DONE
    assert shared.pilot() == pilot


def stop_controller(cluster: Minicluster) -> None:
    """As for a restart: it writes its state down first. ``cluster.control("up")`` starts it."""
    controller = psutil.Process(cluster.pids()["slurmctld"])
    controller.terminate()
    controller.wait(30)


def test_a_pilot_is_submitted_once_the_controller_answers_again(shared: Running) -> None:
    if shared.pilots():
        shared.cluster.run("scancel", shared.pilot())
    crew = shared.executors._pools["pilot"].crew  # type: ignore[union-attr]
    until(lambda: not shared.pilots() and not crew.ready, "there is no pilot")
    stop_controller(shared.cluster)
    future = shared.begin(shared.task("double"))
    until(lambda: crew.coming, "it is asked for")
    assert shared.cluster.control("up").returncode == 0
    assert future.result(PATIENCE).status is TaskStatus.DONE
    assert len(shared.pilots()) == 1


# Pilots that never come up


def test_a_refused_pilot_ends_with_slurms_own_words(cluster: Minicluster, tmp_path: Path) -> None:
    refused = pilots(pilot={"partition": "nowhere"})
    with running(cluster, tmp_path, pilot=refused) as opened:
        result = opened.run(opened.task("double"))
        assert result.status is TaskStatus.LOST
        assert result.reason.startswith("the executor cannot start: no worker pool: sbatch: ")
        assert result.reason.endswith("Invalid partition name specified")
        assert opened.pilots() == []
        again = [opened.run(opened.task("double")) for _ in range(4)]
        assert {one.status for one in again} == {TaskStatus.LOST}
        assert again[-1].reason == f"{result.reason}; given up after 3 times in a row"


def test_a_bad_environment_is_named_with_what_it_printed(
    cluster: Minicluster, tmp_path: Path
) -> None:
    broken = pilots(pilot={"worker_init": ["echo no such module >&2", "exit 3"]})
    with running(cluster, tmp_path, pilot=broken) as opened:
        result = opened.run(opened.task("double"))
    assert result.status is TaskStatus.LOST
    assert result.seconds == 0.0
    assert "ended (bad environment: exit code 3 before its workers came up): " in result.reason
    assert "no such module" in result.reason


def test_a_pilot_in_the_queue_holds_up_nobody_else(cluster: Minicluster, tmp_path: Path) -> None:
    held = pilots(pilot={"scheduler_options": ["--hold"]}, start_timeout="40s")
    with running(cluster, tmp_path, held=held, free=pilots()) as opened:
        waiting = opened.begin(opened.task("double", "held"))
        until(lambda: opened.pilots("held"), "it is in the queue")
        assert opened.run(opened.task("double", "free")).status is TaskStatus.DONE
        load = opened.executors.load()
        assert (load["held"].running, load["held"].queued) == (0, 1)
        assert not waiting.done()
        (number,) = opened.pilots("held")
        cluster.run("scontrol", "release", number)
        assert waiting.result(PATIENCE).status is TaskStatus.DONE


@contextmanager
def partition(cluster: Minicluster, **keys: object) -> Iterator[str]:
    """A partition of all nodes by rules of its own."""
    words = [f"{key}={value}" for key, value in keys.items()]
    cluster.run("scontrol", "create", "PartitionName=ruled", "Nodes=ALL", "State=UP", *words)
    try:
        yield "ruled"
    finally:
        cluster.run("scontrol", "delete", "PartitionName=ruled")


@pytest.mark.parametrize(
    ("rule", "nodes", "words"),
    [
        ({"MaxNodes": 1}, 2, "PartitionNodeLimit"),
        ({"MaxTime": 1}, 1, "PartitionTimeLimit"),
        ({"AllowAccounts": "them"}, 1, "account"),
    ],
)
def test_a_pilot_that_can_never_start_ends_its_tasks_in_slurms_words(
    cluster: Minicluster, tmp_path: Path, rule: dict[str, object], nodes: int, words: str
) -> None:
    """Slurm takes it into the queue, where it would stay for ever."""
    with partition(cluster, **rule) as name:
        asks = pilots(nodes=nodes, pilot={"partition": name})
        with running(cluster, tmp_path, pilot=asks) as opened:
            result = opened.run(opened.task("double"))
            assert result.status is TaskStatus.LOST
            assert result.reason.startswith("pilot job ")
            assert " can never start: " in result.reason
            assert words in result.reason
            assert opened.pilots() == []


def test_a_pilot_that_waits_for_nodes_that_are_down_waits_and_says_so(
    cluster: Minicluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However long: an administrator may bring them back."""
    node = cluster.nodes[-1]
    asks = pilots(pilot={"scheduler_options": [f"--nodelist={node}"]})
    with running(cluster, tmp_path, pilot=asks) as opened:
        cluster.run("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=test")
        try:
            waiting = opened.begin(opened.task("double"))
            until(lambda: "waits: ReqNodeNotAvail" in caplog.text, "it is in the log")
            (pilot,) = opened.pilots()
            assert f"pilot job {pilot} waits: " in caplog.text
            assert not waiting.done()
        finally:
            cluster.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        assert waiting.result(PATIENCE).status is TaskStatus.DONE


def test_an_sbatch_that_hangs_holds_up_nobody_else_and_is_given_up(
    cluster: Minicluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "TIMEOUT", 5.0)
    monkeypatch.setattr(slurm, "PATIENCE", 1.0)
    monkeypatch.setattr("executors.crew.PATIENCE", 1.0)
    here = LocalConfig.model_validate({"kind": "local", "workers": 1})
    with running(cluster, tmp_path / "run", pilot=pilots(), here=here) as opened:
        hangs = tmp_path / "bin" / "sbatch"
        hangs.parent.mkdir()
        hangs.write_text("#!/bin/sh\nexec sleep 600\n")
        hangs.chmod(0o755)
        monkeypatch.setenv("PATH", str(hangs.parent), prepend=":")
        waiting = opened.begin(opened.task("double"))
        for _ in range(3):
            assert opened.run(opened.task("double", "here")).status is TaskStatus.DONE
        result = waiting.result(PATIENCE)
        assert result.status is TaskStatus.LOST
        assert "sbatch: no answer within 5 s" in result.reason
        assert opened.run(opened.task("double", "here")).status is TaskStatus.DONE


def test_a_pilot_is_taken_out_of_the_queue_when_the_run_ends(
    cluster: Minicluster, tmp_path: Path
) -> None:
    held = pilots(pilot={"scheduler_options": ["--hold"]})
    with running(cluster, tmp_path, pilot=held) as opened:
        waiting = opened.begin(opened.task("double"))
        until(opened.pilots, "it is in the queue")
    assert waiting.result(0.1).status is TaskStatus.CANCELLED


def test_two_runs_at_once_on_one_cluster_do_not_meet(cluster: Minicluster, tmp_path: Path) -> None:
    with running(cluster, tmp_path / "b", pilot=pilots()) as second:
        with running(cluster, tmp_path / "a", pilot=pilots()) as first:
            futures = [one.begin(one.task("double")) for one in (first, second)]
            assert [one.result(PATIENCE).status for one in futures] == [TaskStatus.DONE] * 2
        assert len(second.pilots()) == 1
        assert second.run(second.task("double")).status is TaskStatus.DONE


def test_tasks_share_out_the_nodes_of_a_pilot_and_are_lost_with_it(
    cluster: Minicluster, tmp_path: Path
) -> None:
    config = MpiConfig.model_validate(
        {
            "kind": "mpi",
            "nodes": 2,
            "launcher": "srun",
            "address": "127.0.0.1",
            "pilot": {"walltime": "10m", "memory": "100M"},
        }
    )
    with running(cluster, tmp_path, pilot=config) as opened:

        def program(nodes: int, *argv: str) -> Task:
            work = CommandWork((*step_launcher("srun", (), nodes, nodes), *argv))
            task = opened.task(work)
            return replace(task, resources=replace(task.resources, ranks=nodes, nodes=nodes))

        tasks = [program(nodes, "sh", "-c", "hostname; sleep 1") for nodes in (1, 1, 2)]
        results = [opened.begin(task) for task in tasks]
        assert [one.result(PATIENCE).status for one in results] == [TaskStatus.DONE] * 3
        ran = [set((task.directory / "stdout").read_text().split()) for task in tasks]
        assert ran[2] == ran[0] | ran[1]
        sleeping = program(2, "sleep", "600")
        future = opened.begin(sleeping)
        until((sleeping.directory / "started.json").exists, "it began")
        cluster.run("scancel", opened.pilot())
        result = future.result(PATIENCE)
        assert result.status is TaskStatus.LOST
        assert "ended (cancelled): " in result.reason


def test_closing_in_mid_task_leaves_nothing(cluster: Minicluster, tmp_path: Path) -> None:
    with running(cluster, tmp_path, pilot=pilots()) as opened:
        task, future = opened.sleeping()
        began = time.monotonic()
    assert time.monotonic() - began < 30
    assert future.result(0.1).status is TaskStatus.CANCELLED
    assert adopt.try_is_alive(task.directory) is False


def test_as_many_pilots_come_as_there_is_work_for(cluster: Minicluster, tmp_path: Path) -> None:
    with running(cluster, tmp_path, pilot=pilots(max_pilots=3)) as opened:
        assert opened.pilots() == [], "none before there is work"
        first = opened.begin(opened.task("double"))
        until(lambda: len(opened.pilots()) == 1, "a pilot for one task")
        assert first.result(PATIENCE).status is TaskStatus.DONE
        busy = [opened.sleeping()[1] for _ in range(3)]
        assert len(opened.pilots()) == 3
        waiting = opened.begin(opened.task("double"))
        until(lambda: opened.executors.load()["pilot"].queued == 1, "it waits for room")
        assert len(opened.pilots()) == 3, "and no fourth"
        busy.pop().cancel()
        assert waiting.result(PATIENCE).status is TaskStatus.DONE
        assert len(opened.pilots()) == 3, "none is given back"


def test_without_any_pilot_what_waits_is_told_slurms_words(
    cluster: Minicluster, tmp_path: Path
) -> None:
    asks = pilots(max_pilots=2, pilot={"partition": "nosuch"})
    with running(cluster, tmp_path, pilot=asks) as opened:
        futures = [opened.begin(opened.task("double")) for _ in range(3)]
        for future in futures:
            result = future.result(PATIENCE)
            assert result.status is TaskStatus.LOST
            assert "invalid partition specified: nosuch" in result.reason
        assert opened.pilots() == []
