"""Executors on Parsl: what comes back, whatever a task or its surroundings do, and what is left."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import parsl
import psutil
import pytest
from parsl.errors import NoDataFlowKernelError

from executors import adopt, open_executors
from executors.base import (
    CommandWork,
    MpiWork,
    Output,
    Task,
    TaskResult,
    TaskStatus,
)
from executors.config import ExecutorConfig, LocalConfig, ThreadsConfig
from executors.launch import default_launcher
from executors.parsl import ExecutorError
from executors.pool import Pool
from opened import Opened

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parents[1] / "support"
LOCAL = LocalConfig(kind="local", workers=2)
THREADS = ThreadsConfig(kind="threads", workers=2)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Both kinds, in a folder whose name a shell or a format string would choke on."""
    folder = tmp_path_factory.mktemp("run") / "it's a {run} & $HOME"
    running = Opened({"local": LOCAL, "threads": THREADS}, folder)
    yield running
    running.close()
    assert family() == []


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Executors for tests to break, started where the virtual environment is not on PATH."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/usr/bin:/bin")
        running = Opened({"default": LOCAL}, tmp_path_factory.mktemp("fragile"))
        yield running
        began = time.monotonic()
        running.close()
        assert time.monotonic() - began < 10
    assert family(running.folder) == []


# Tasks that behave


@pytest.mark.parametrize("label", ["local", "threads"])
def test_a_function_is_run_and_answered(shared: Opened, label: str) -> None:
    task = shared.task("double", label)
    result = shared.run(task)
    assert (result.status, result.value) == (TaskStatus.DONE, {"y": 1.0})
    assert adopt.read_result(task.directory) == result


@pytest.mark.parametrize("label", ["local", "threads"])
def test_a_command_is_run_and_answered(shared: Opened, label: str) -> None:
    work = CommandWork(("sh", "-c", "echo '[1, 2]' > a.json"))
    result = shared.run(shared.task(work, label, output=Output(json="a.json")))
    assert (result.status, result.value) == (TaskStatus.DONE, [1, 2])


@pytest.mark.parametrize("label", ["local", "threads"])
def test_nothing_of_parsl_reaches_the_environment_of_a_task(shared: Opened, label: str) -> None:
    seen = shared.run(shared.task("surroundings", label)).value
    assert isinstance(seen, dict)
    assert seen["parsl"] == []


@pytest.mark.parametrize("label", ["local", "threads"])
def test_many_tasks_are_each_answered_once(shared: Opened, label: str) -> None:
    async def all_of_them() -> list[TaskResult]:
        tasks = [shared.task("double", label, candidate={"x": n}) for n in range(100)]
        return await asyncio.gather(*map(shared.executors.run, tasks))

    values = [result.value for result in shared.wait(all_of_them())]
    assert values == [{"y": 2.0 * n} for n in range(100)]
    load = shared.executors.load()[label]
    assert (load.workers, load.running, load.queued) == (2, 0, 0)


# MPI


def mpi(function: str, ranks: int, **arguments: Any) -> MpiWork:
    launcher = default_launcher(ranks)
    assert launcher is not None
    return MpiWork(f"spmd:{function}", launcher, arguments)


@pytest.mark.mpi
@pytest.mark.parametrize("label", ["local", "threads"])
def test_an_mpi_task_answers_what_rank_0_returns(shared: Opened, label: str) -> None:
    result = shared.run(shared.task(mpi("total", 2, offset=1.0), label, ranks=2))
    assert (result.status, result.value) == (TaskStatus.DONE, {"size": 2, "total": 3.0})


@pytest.mark.mpi
def test_one_failing_rank_ends_all_and_is_named(shared: Opened) -> None:
    result = shared.run(shared.task(mpi("rank_fails", 2), "threads", ranks=2))
    assert result.status is TaskStatus.ERROR
    assert result.reason == "rank 1: ValueError: not my kind of density"
    assert result.exit_code


@pytest.mark.mpi
def test_ranks_that_do_not_see_each_other_are_an_error(shared: Opened) -> None:
    work = MpiWork("spmd:total", (sys.executable, str(SUPPORT / "strangers.py"), "2"))
    result = shared.run(shared.task(work, "threads", ranks=2))
    assert result.status is TaskStatus.ERROR
    assert result.reason == (
        "communicator has size 1, expected 2: launcher and MPI library do not belong together"
    )


@pytest.mark.mpi
def test_an_mpi_task_past_its_walltime_leaves_no_rank(shared: Opened) -> None:
    result = shared.run(shared.task(mpi("hangs", 2), "threads", ranks=2, walltime=2.0))
    assert result.status is TaskStatus.WALLTIME
    assert [line for line in family() if "mpi4py" in line] == []


@pytest.mark.mpi
def test_an_mpi_task_whose_value_is_no_json_is_unreadable(shared: Opened) -> None:
    result = shared.run(shared.task(mpi("answers_nonsense", 1), "threads"))
    assert (result.status, result.reason) == (
        TaskStatus.UNREADABLE,
        "value.p: nan; JSON has no NaN or infinity",
    )


# Tasks that misbehave: each is classified, none hangs, nothing is left


MISBEHAVIOUR = [
    ("raises", {"kind": "keyword_only"}, 30.0, TaskStatus.ERROR, "KeywordOnlyError: code 3"),
    ("prints_much", {"megabytes": 100}, 30.0, TaskStatus.DONE, ""),
    (
        "ignores_sigterm",
        {},
        0.5,
        TaskStatus.WALLTIME,
        "walltime: still running after 0.5 s; killed",
    ),
    ("forks_a_daemon", {}, 30.0, TaskStatus.DONE, ""),
    (
        "deletes_its_directory",
        {},
        30.0,
        TaskStatus.UNREADABLE,
        "the task deleted its own directory",
    ),
    (
        "kills_its_guard",
        {},
        30.0,
        TaskStatus.LOST,
        "the guard of the task died (killed by SIGKILL)",
    ),
]


@pytest.mark.parametrize("label", ["local", "threads"])
@pytest.mark.parametrize(("function", "candidate", "walltime", "status", "reason"), MISBEHAVIOUR)
def test_a_task_that_misbehaves_is_classified_and_leaves_nothing(
    shared: Opened,
    label: str,
    function: str,
    candidate: dict[str, Any],
    walltime: float,
    status: TaskStatus,
    reason: str,
) -> None:
    task = shared.task(function, label, candidate=candidate, walltime=walltime)
    result = shared.run(task)
    assert (result.status, result.reason) == (status, reason)
    assert adopt.try_is_alive(task.directory) is False
    until(lambda: not any("sleep" in line for line in family()))
    assert shared.run(shared.task("double", label)).status is TaskStatus.DONE


@pytest.mark.parametrize("label", ["local", "threads"])
def test_cancelling_run_kills_the_task(shared: Opened, label: str) -> None:
    task = shared.task(CommandWork(("sh", "-c", "trap '' TERM; sleep 600 & wait; wait")), label)
    future = shared.begin(task)
    until(lambda: any("sleep 600" in line for line in family()))
    future.cancel()

    async def settled() -> None:
        while adopt.try_is_alive(task.directory):
            await asyncio.sleep(0.01)

    shared.wait(settled())
    assert [line for line in family() if "sleep" in line] == []
    result = adopt.read_result(task.directory)
    assert result is not None
    assert result.status is TaskStatus.CANCELLED


def test_a_task_cancelled_while_it_waits_never_starts(shared: Opened, tmp_path: Path) -> None:
    def touching(name: str, *, wait: bool) -> Task:
        candidate = {"folder": str(tmp_path), "name": name, "wait": wait}
        return shared.task("touches", "threads", candidate=candidate, ranks=2)

    first, second = touching("first", wait=True), touching("second", wait=False)
    running, waiting = shared.begin(first), shared.begin(second)
    until((tmp_path / "first").exists)
    waiting.cancel()
    until(lambda: shared.executors.load()["threads"].queued == 0)
    (tmp_path / "go").touch()
    assert running.result(30).status is TaskStatus.DONE
    assert not second.directory.exists()


def test_a_candidate_that_is_not_json_is_an_error_of_the_task(shared: Opened) -> None:
    result = shared.run(shared.task("double", "local", candidate={"x": float("nan")}))
    assert result.status is TaskStatus.ERROR
    assert result.reason.startswith("task: not JSON: Out of range float values")


def test_a_lost_task_is_charged_for_the_time_it_ran(shared: Opened) -> None:
    result = shared.run(shared.task("kills_its_guard", "threads"))
    assert result.status is TaskStatus.LOST
    assert 0 < result.seconds < 30


def test_a_task_no_executor_could_run_is_refused_with_what_would_be_right(shared: Opened) -> None:
    with pytest.raises(ValueError, match=r"^executor 'locl': unknown; known are local, threads; d"):
        shared.run(shared.task("double", "locl"))
    with pytest.raises(ValueError, match=r"3 ranks; executor 'local' has 2 workers$"):
        shared.run(shared.task("double", "local", ranks=3))


def test_wide_tasks_wait_for_their_slots_and_do_not_starve(shared: Opened, tmp_path: Path) -> None:
    """Two tasks of one rank run; one of two ranks waits; a later single must not pass it."""

    def touching(name: str, ranks: int, *, wait: bool) -> Task:
        candidate = {"folder": str(tmp_path), "name": name, "wait": wait}
        return shared.task("touches", "threads", candidate=candidate, ranks=ranks)

    first = [shared.begin(touching(name, 1, wait=True)) for name in ("a", "b")]
    until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    wide = shared.begin(touching("wide", 2, wait=False))
    last = shared.begin(touching("last", 1, wait=False))
    until(lambda: shared.executors.load()["threads"].queued == 2)
    assert not (tmp_path / "last").exists()
    (tmp_path / "go").touch()
    assert [f.result(30).status for f in (*first, wide, last)] == [TaskStatus.DONE] * 4
    assert (tmp_path / "wide").stat().st_mtime_ns < (tmp_path / "last").stat().st_mtime_ns


# Parsl's surroundings


def test_the_global_kernel_of_parsl_is_not_touched(shared: Opened) -> None:
    assert shared.run(shared.task("double", "local")).status is TaskStatus.DONE
    with pytest.raises(NoDataFlowKernelError):
        parsl.dfk()


def test_every_socket_listens_on_loopback_only(shared: Opened) -> None:
    assert shared.run(shared.task("double", "local")).status is TaskStatus.DONE
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = {
        ipaddress.ip_address(connection.laddr.ip.removeprefix("::ffff:"))
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening
    assert all(address.is_loopback for address in listening)


def test_parsl_writes_no_log_line_per_task(shared: Opened) -> None:
    def logged() -> int:
        return sum(p.stat().st_size for p in shared.folder.glob("parsl/**/*") if p.is_file())

    async def some() -> None:
        await asyncio.gather(
            *(shared.executors.run(shared.task("double", "local")) for _ in range(20))
        )

    shared.wait(some())
    before = logged()
    shared.wait(some())
    assert logged() == before


def test_an_executor_starts_without_an_activated_environment(fragile: Opened) -> None:
    assert not any((Path(p) / "interchange.py").exists() for p in os.environ["PATH"].split(":"))
    assert fragile.run(fragile.task("double", "default")).status is TaskStatus.DONE


# What breaks beside the task


def pool_lifeline(running: Opened) -> psutil.Process:
    """Our lifeline above Parsl's worker pool."""
    return psutil.Process(int(next(iter(parsls(running).job_ids_to_block))))


def interchange_lifeline(running: Opened) -> psutil.Process:
    return psutil.Process(parsls(running).interchange_proc.pid)


def parsls(running: Opened) -> Any:
    """Parsl's own executor."""
    assert running.executors._kernel is not None
    return running.executors._kernel.sites["default"].executor


def only_child(process: psutil.Process) -> psutil.Process:
    (child,) = process.children()
    return child


def busy_worker(running: Opened) -> psutil.Process:
    (worker,) = [
        child
        for child in only_child(pool_lifeline(running)).children()
        if any("sleep" in p.name() for p in child.children(recursive=True))
    ]
    return worker


VICTIMS: dict[str, Callable[[Opened], psutil.Process]] = {
    "interchange": lambda running: only_child(interchange_lifeline(running)),
    "pool": lambda running: only_child(pool_lifeline(running)),
    "pool's lifeline": pool_lifeline,
    "worker": busy_worker,
}


@pytest.mark.parametrize("victim", VICTIMS)
def test_what_is_killed_under_a_task_loses_it_and_is_replaced(fragile: Opened, victim: str) -> None:
    fragile.run(fragile.task("double", "default"))
    future = fragile.begin(fragile.task(CommandWork(("sleep", "600")), "default"))
    until(lambda: any("sleep 600" in line for line in family(fragile.folder)))
    killed = time.monotonic()
    VICTIMS[victim](fragile).kill()
    result = future.result(30)
    assert result.status is TaskStatus.LOST, result
    assert time.monotonic() - killed < 10
    assert not any("sleep 600" in line for line in family(fragile.folder))
    assert fragile.run(fragile.task("double", "default")).status is TaskStatus.DONE


def test_tasks_handed_over_but_not_begun_survive_the_executor(
    fragile: Opened, tmp_path: Path
) -> None:
    def touching(name: str, *, wait: bool) -> Task:
        candidate = {"folder": str(tmp_path), "name": name, "wait": wait}
        return fragile.task("touches", "default", candidate=candidate)

    for _ in range(30):  # short tasks: more of them are then handed over than there are workers
        fragile.run(fragile.task("double", "default"))
    begun = [fragile.begin(touching(name, wait=True)) for name in ("a", "b")]
    until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    ahead = [fragile.begin(touching(name, wait=False)) for name in ("c", "d")]
    until(lambda: fragile.executors.load()["default"].queued == 2)
    pool = fragile.executors._pools["default"]
    assert isinstance(pool, Pool)
    assert len(pool._traffic.flying) == 4
    interchange_lifeline(fragile).kill()
    assert [f.result(30).status for f in begun] == [TaskStatus.LOST] * 2
    assert [f.result(30).status for f in ahead] == [TaskStatus.DONE] * 2
    for name in "cd":
        assert len((tmp_path / name).read_text().splitlines()) == 1, "run once, not twice"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_parsl_cannot_unpickle_ends_its_result_thread_but_no_later_task(
    fragile: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    """Not from a task, of which only bytes come back: from a worker gone mad."""
    fragile.run(fragile.task("double", "default"))
    kernel = fragile.executors._kernel
    assert kernel is not None
    # A builtin: the worker has no way to import this module.
    path = f"__import__('sys').path.insert(0, {str(SUPPORT)!r})"
    kernel.submit("default", eval, f"{path} or __import__('misbehave').KeywordOnlyError(code=3)")
    until(lambda: "executor default: Parsl's result thread ended" in caplog.text)
    assert fragile.run(fragile.task("double", "default")).status is TaskStatus.DONE


def test_a_worker_that_is_frozen_loses_its_task_by_the_deadline(
    fragile: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executors.traffic.GRACE", 1.0)
    fragile.run(fragile.task("double", "default"))
    work = CommandWork(("sleep", "600"))
    future = fragile.begin(fragile.task(work, "default", walltime=1.0))
    until(lambda: any("sleep 600" in line for line in family(fragile.folder)))
    only_child(busy_worker(fragile)).suspend()  # the guard, which alone keeps the walltime
    result = future.result(30)
    assert result.status is TaskStatus.LOST
    assert result.reason == "the guard of the task died (killed by SIGKILL)"
    assert fragile.run(fragile.task("double", "default")).status is TaskStatus.DONE


def test_closing_does_not_hang_on_an_interchange_that_was_killed(tmp_path: Path) -> None:
    running = Opened({"default": LOCAL}, tmp_path)
    interchange_lifeline(running).kill()
    began = time.monotonic()
    running.close()
    assert time.monotonic() - began < 10
    assert family(tmp_path) == []


def test_a_pool_that_does_not_start_in_time_loses_its_tasks(tmp_path: Path) -> None:
    config = {"kind": "local", "workers": 1, "start_timeout": "0.01s"}
    running = Opened({"default": LocalConfig.model_validate(config)}, tmp_path)
    result = running.run(running.task("double", "default"))
    running.close()
    assert (result.status, result.reason) == (
        TaskStatus.LOST,
        "the worker pool did not start within 0.01 s",
    )


@pytest.mark.parametrize("config", [LOCAL, THREADS], ids=["local", "threads"])
def test_closing_ends_what_runs_and_answers_it_as_cancelled(
    tmp_path: Path, config: ExecutorConfig
) -> None:
    running = Opened({"default": config}, tmp_path)
    work = CommandWork(("sleep", "600"))
    futures = [running.begin(running.task(work, "default")) for _ in range(4)]
    until(lambda: sum("sleep 600" in line for line in family(tmp_path)) == 2)
    began = time.monotonic()
    running.wait(running.executors.close())
    assert time.monotonic() - began < 10
    assert [f.result(0.1).status for f in futures] == [TaskStatus.CANCELLED] * 4
    assert family(tmp_path) == []
    late = running.run(running.task("double", "default"))
    assert late.status is TaskStatus.CANCELLED
    running.close()  # a second time


def test_executors_that_cannot_start_say_why_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "parsl").write_text("a file where the folder should be")

    async def start() -> None:
        async with open_executors({"default": LOCAL}, tmp_path):
            pytest.fail("not to be reached")

    with pytest.raises(ExecutorError, match=r"^executors: "):
        asyncio.run(start())
    assert family(tmp_path) == []


@pytest.mark.parametrize("how", ["closed", "pool's lifeline"])
def test_no_semaphore_of_a_worker_pool_stays_on_the_machine(tmp_path: Path, how: str) -> None:
    """Python's own tracker removes them, unless it is killed with the others."""
    running = Opened({"default": LOCAL}, tmp_path)
    running.run(running.task("double", "default"))
    lifeline = pool_lifeline(running)
    mapped = {
        Path(entry.path)
        for process in lifeline.children(recursive=True)
        for entry in process.memory_maps()
        if entry.path.startswith("/dev/shm/sem.")
    }
    assert any(path.exists() for path in mapped)
    if how != "closed":
        lifeline.kill()
    running.close()
    until(lambda: not any(path.exists() for path in mapped))


def test_two_runs_at_once_in_one_folder_do_not_meet(tmp_path: Path) -> None:
    runs = [Opened({"default": THREADS}, tmp_path) for _ in range(2)]
    for running in runs:
        assert running.run(running.task("double", "default")).status is TaskStatus.DONE
    for running in runs:
        running.close()
    assert sorted(p.name for p in (tmp_path / "parsl").iterdir()) == ["job-1", "job-2"]


@pytest.mark.parametrize("kind", ["local", "threads"])
def test_nothing_outlives_a_driver_that_is_killed(tmp_path: Path, kind: str) -> None:
    marker = f"SIMGATE_TEST_RUN={tmp_path}"
    environment = {**os.environ, "SIMGATE_TEST_RUN": str(tmp_path)}
    process = subprocess.Popen(driver(tmp_path, kind, "sleeps"), env=environment)
    until(lambda: sum("sleep 600" in line for line in marked(marker)) == 3, 60)
    process.kill()
    process.wait()
    until(lambda: marked(marker) == [], 20)


def driver(folder: Path, kind: str, function: str) -> list[str]:
    """A driver of its own that runs one task; ``sleeps`` runs one that detaches a child, too."""
    return [sys.executable, str(SUPPORT / "lone_driver.py"), str(folder), kind, function]


def marked(marker: str) -> list[str]:
    """Command lines of live processes with this entry in their environment."""
    name, _, value = marker.partition("=")
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(name) == value and process.status() != "zombie":
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def family(folder: Path | None = None) -> list[str]:
    """Command lines of live processes below this one (working for a run in ``folder``)."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
            if process.status() == psutil.STATUS_ZOMBIE or "resource_tracker" in line:
                continue
            if folder is None or process.cwd().startswith(str(folder)):
                found.append(line)
        except psutil.Error:
            continue
    return found


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.02)
