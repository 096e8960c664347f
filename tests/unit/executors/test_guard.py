"""Functions and commands under a guard: how each end is classified, and that nothing is left."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from executors import adopt, task_main, wire
from executors.base import CommandWork, Output, PythonWork, TaskResult, TaskStatus

Below = Callable[[], list[str]]


def shell(script: str) -> CommandWork:
    return CommandWork(("sh", "-c", script))


# Functions


def test_a_function_gets_the_candidate_and_its_arguments(worker: Any) -> None:
    result = worker.run(PythonWork("misbehave:double", {"factor": 3.0}))
    assert (result.status, result.value) == (TaskStatus.DONE, {"y": 1.5})
    assert 0 < result.seconds < 30
    assert result.host == os.uname().nodename


def test_a_try_leaves_its_candidate_and_the_result_it_answered(worker: Any) -> None:
    result = worker.call("double")
    left = sorted(path.name for path in worker.directory.iterdir())
    assert left == ["candidate.json", "result.json"]
    assert json.loads((worker.directory / "candidate.json").read_text()) == {"x": 0.5}
    assert adopt.read_result(worker.directory) == result


def test_a_function_runs_in_its_directory_with_its_environment_and_streams(worker: Any) -> None:
    seen = worker.call("surroundings", env={"GREETING": "hi"}).value
    assert seen == {
        "cwd": str(worker.directory),
        "pid": seen["pid"],
        "greeting": "hi",
        "left": None,
        "threads": "1",
        "parsl": [],
        "sigterm": True,
        "stdin": "",
        "here": True,
    }
    assert (worker.directory / "stdout").read_text() == "hello from 0.5\nchild\n"
    assert (worker.directory / "stderr").read_text() == "careful\n"


def test_what_a_function_moves_is_put_back_in_the_same_warm_process(worker: Any) -> None:
    first = worker.call("surroundings").value
    second = worker.call("surroundings").value
    assert second["pid"] == first["pid"]
    assert second["left"] is None
    assert second["sigterm"]
    assert second["here"]


def test_another_thread_limit_gets_a_process_that_starts_with_it(worker: Any) -> None:
    first = worker.call("surroundings").value
    other = worker.call("surroundings", env={"OMP_NUM_THREADS": "2"}).value
    assert other["threads"] == "2"
    assert other["pid"] != first["pid"]


def test_closed_streams_do_not_reach_the_next_task(worker: Any) -> None:
    assert worker.call("closes_streams").value == "closed"
    assert (worker.directory / "stdout").read_text() == "before\n"
    worker.call("surroundings")
    assert (worker.directory / "stdout").read_text() == "hello from 0.5\nchild\n"


def test_numpy_values_are_answered_as_numbers_and_lists(worker: Any) -> None:
    assert worker.call("numpy_values").value == {
        "scalar": 1.5,
        "single": 0.5,
        "count": 3,
        "flag": True,
        "field": [[0, 1], [2, 3]],
    }


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("nan", "value.p[1].q: nan; JSON has no NaN or infinity"),
        (
            "object",
            "value.p[1]: object is not JSON; return numbers, text, lists and mappings of them",
        ),
        ("set", "value.p: set is not JSON; return numbers, text, lists and mappings of them"),
        ("bytes", "value: bytes is not JSON; return numbers, text, lists and mappings of them"),
        ("key", "value: a key is tuple; keys are text"),
        ("large", "value: 2097154 bytes as JSON; an answer has at most 1048576"),
    ],
)
def test_a_value_that_is_not_json_is_unreadable(worker: Any, kind: str, reason: str) -> None:
    result = worker.call("answer", candidate={"kind": kind})
    assert (result.status, result.reason) == (TaskStatus.UNREADABLE, reason)


def test_a_value_that_contains_itself_is_unreadable(worker: Any) -> None:
    result = worker.call("answer", candidate={"kind": "loop"})
    assert result.status is TaskStatus.UNREADABLE
    assert result.reason.endswith("nested too deeply, or it contains itself")


def test_a_coroutine_is_no_answer(worker: Any) -> None:
    result = worker.call("asynchronous")
    assert result.status is TaskStatus.UNREADABLE
    assert result.reason.startswith("value: coroutine is not JSON")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("keyword_only", "KeywordOnlyError: code 3"),
        ("plain", "ValueError: density is negative"),
        ("exit", "SystemExit: 3"),
        ("interrupt", "KeyboardInterrupt"),
        ("mute", "Mute: (its message cannot be shown)"),
    ],
)
def test_whatever_a_function_raises_is_its_error(worker: Any, kind: str, reason: str) -> None:
    result = worker.call("raises", candidate={"kind": kind})
    assert (result.status, result.reason) == (TaskStatus.ERROR, reason)
    assert "misbehave.py" in result.log_tail
    assert "executors/" not in result.log_tail, "the traceback starts in the task's own code"
    assert worker.call("double").status is TaskStatus.DONE


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("nowhere:f", "ModuleNotFoundError: No module named 'nowhere'"),
        ("misbehave:f", "AttributeError: module 'misbehave' has no attribute 'f'"),
        (
            "misbehave:not_a_function",
            "TypeError: 'misbehave:not_a_function' is int, not a function",
        ),
    ],
)
def test_a_function_that_is_not_there_is_an_error(worker: Any, function: str, reason: str) -> None:
    result = worker.run(PythonWork(function))
    assert (result.status, result.reason) == (TaskStatus.ERROR, reason)


@pytest.mark.parametrize(
    ("kind", "code", "reason"),
    [
        ("exit", 7, "the function's process ended: exit code 7"),
        ("SIGSEGV", -11, "the function's process ended: killed by SIGSEGV"),
        ("SIGKILL", -9, "the function's process ended: killed by SIGKILL"),
    ],
)
def test_a_function_that_ends_its_process_is_an_error(
    worker: Any, kind: str, code: int, reason: str
) -> None:
    result = worker.call("crashes", candidate={"kind": kind})
    assert result.status is TaskStatus.ERROR
    assert (result.exit_code, result.reason) == (code, reason)
    assert worker.call("double").status is TaskStatus.DONE


def test_a_module_of_the_campaign_may_have_the_name_of_our_package(
    worker: Any, tmp_path: Path
) -> None:
    (tmp_path / "executors.py").write_text("def mine(candidate):\n    return __file__\n")
    result = worker.run(PythonWork("executors:mine"), import_path=(str(tmp_path),))
    assert result.value == str(tmp_path / "executors.py")


# Ends that are not the task's own


def test_a_function_past_its_walltime_is_killed_and_its_output_kept(
    worker: Any, below: Below
) -> None:
    result = worker.call("sleeps", walltime=0.3)
    assert result.status is TaskStatus.WALLTIME
    assert result.reason == "walltime: still running after 0.3 s; killed"
    assert result.log_tail == "going to sleep\n"
    assert 0.3 <= result.seconds < 2
    assert below() == []


@pytest.mark.slow
def test_a_function_that_ignores_sigterm_is_killed_all_the_same(worker: Any, below: Below) -> None:
    result = worker.call("ignores_sigterm", walltime=0.3)
    assert result.status is TaskStatus.WALLTIME
    assert below() == []


def test_a_function_that_never_stops_printing_meets_its_walltime(worker: Any) -> None:
    result = worker.call("prints_forever", walltime=0.3)
    assert result.status is TaskStatus.WALLTIME
    assert result.seconds < 4


def test_a_daemon_a_function_left_is_killed(worker: Any, below: Below) -> None:
    result = worker.call("forks_a_daemon")
    assert result.status is TaskStatus.DONE
    assert below() == []
    assert not psutil.pid_exists(result.value["daemon"])


def test_a_thread_a_function_left_costs_it_the_process(worker: Any) -> None:
    left = worker.call("leaves_a_thread").value
    assert not psutil.pid_exists(left)


def test_a_function_that_deletes_its_directory_is_unreadable(worker: Any) -> None:
    result = worker.call("deletes_its_directory")
    assert result.status is TaskStatus.UNREADABLE
    assert result.reason == "the task deleted its own directory"
    assert adopt.read_result(worker.directory) == result


def test_only_the_tail_of_much_output_is_answered(worker: Any) -> None:
    result = worker.call("prints_much", candidate={"megabytes": 100})
    assert (result.status, result.log_tail) == (TaskStatus.DONE, "")
    assert (worker.directory / "stdout").stat().st_size == 100 * 1024 * 1024 + 8


@pytest.mark.slow
def test_a_cancelled_try_is_killed(worker: Any, below: Below) -> None:
    task = worker.task(shell("trap '' TERM; sleep 600 & wait; sleep 600"))
    answers: list[TaskResult] = []
    thread = threading.Thread(
        target=lambda: answers.append(wire.result(task_main.run_task(wire.request(task), "own")))
    )
    thread.start()
    try:
        _until(lambda: len([line for line in below() if "sleep" in line]) > 1)
        assert adopt.try_is_alive(task.directory) is True
        assert adopt.ask_to_end(task.directory) is True
        thread.join(10)
    finally:
        task_main.close_guards("own")
        task_main.forget_pool("own")
    assert [answer.status for answer in answers] == [TaskStatus.CANCELLED]
    assert adopt.read_result(task.directory) == answers[0]
    assert adopt.try_is_alive(task.directory) is False
    assert below() == []


def test_a_try_cancelled_before_its_start_never_runs(worker: Any) -> None:
    task = worker.task(shell("touch ran"))
    assert adopt.ask_to_end(task.directory) is False
    result = wire.result(task_main.run_task(wire.request(task), str(worker.folder)))
    task_main.close_guards(str(worker.folder))
    assert result.status is TaskStatus.CANCELLED
    assert not (task.directory / "ran").exists()


def test_when_the_guard_is_killed_the_task_is_lost_and_nothing_is_left(
    worker: Any, below: Below
) -> None:
    result = worker.call("kills_its_guard")
    assert result.status is TaskStatus.LOST
    assert result.reason == "the guard of the task died (killed by SIGKILL)"
    _until(lambda: below() == [])
    assert adopt.try_is_alive(worker.directory) is False
    assert worker.call("double").status is TaskStatus.DONE


def test_when_the_worker_dies_everything_below_it_dies(worker: Any) -> None:
    task = worker.task(shell("setsid sleep 600 & sleep 600"))
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from executors import task_main; "
        "task_main.run_task(sys.argv[2].encode(), 'p')"
    )
    root = str(Path(task_main.__file__).parents[1])
    request = wire.request(task).decode()
    process = psutil.Popen([sys.executable, "-c", script, root, request])
    _until(lambda: sum("sleep" in p.name() for p in process.children(recursive=True)) == 2)
    family = process.children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == []
    assert adopt.read_result(task.directory) is None
    assert adopt.try_is_alive(task.directory) is False


FORKING_WORKER = """
import os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from executors import task_main

def fork_once_started():
    while not os.path.exists(sys.argv[3] + "/up"):
        time.sleep(0.01)
    if os.fork() == 0:
        time.sleep(600)
    open(sys.argv[3] + "/forked", "w").close()

threading.Thread(target=fork_once_started).start()
task_main.run_task(sys.argv[2].encode(), "p")
"""


@pytest.mark.slow
def test_a_copy_of_the_guards_socket_in_a_forked_child_does_not_keep_the_task_alive(
    worker: Any,
) -> None:
    task = worker.task(shell("touch up; exec sleep 600"))
    root = str(Path(task_main.__file__).parents[1])
    argv = [sys.executable, "-c", FORKING_WORKER, root, wire.request(task).decode()]
    process = psutil.Popen([*argv, str(task.directory)])
    _until((task.directory / "forked").exists)
    family = process.children(recursive=True)
    (copy,) = [p for p in process.children() if "executors.guard" not in " ".join(p.cmdline())]
    process.kill()
    process.wait()
    try:
        _, alive = psutil.wait_procs([p for p in family if p != copy], timeout=20)
        assert alive == []
        assert copy.is_running()
    finally:
        copy.kill()


# Commands


def test_a_command_answers_by_a_json_file(worker: Any) -> None:
    result = worker.run(
        shell('echo \'{"p": 1.5, "n": [1]}\' > out.json'), output=Output(json="out.json")
    )
    assert (result.status, result.value, result.exit_code) == (
        TaskStatus.DONE,
        {"p": 1.5, "n": [1]},
        0,
    )


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("touch other.txt", "out.json: not there; the task left candidate.json, other.txt, "),
        (
            "echo P = 3 > out.json",
            "out.json: not JSON (Expecting value: line 1 column 1 (char 0));",
        ),
        (": > out.json", "out.json: not JSON (Expecting value"),
        ("echo '{\"p\": NaN}' > out.json", "out.json: it holds NaN; JSON has no NaN or infinity"),
        ("mkdir out.json", "out.json: Is a directory"),
        ("mkfifo out.json", "out.json: no plain file; an answer is JSON in a plain file"),
        ("ln -s /dev/zero out.json", "out.json: no plain file"),
        (
            "yes | head -c 3000000 > out.json",
            "out.json: 3000000 bytes; an answer has at most 10485",
        ),
        ("echo '[1e999]' > out.json", "value[0]: inf; JSON has no NaN or infinity"),
    ],
)
def test_an_output_file_that_holds_no_answer_is_unreadable(
    worker: Any, script: str, reason: str
) -> None:
    result = worker.run(shell(script), output=Output(json="out.json"))
    assert result.status is TaskStatus.UNREADABLE
    assert result.reason.startswith(reason)


def test_an_exit_code_nobody_mapped_is_an_error_with_the_log_tail(worker: Any) -> None:
    result = worker.run(shell("echo out; echo first >&2; echo last >&2; exit 3"))
    assert result.status is TaskStatus.ERROR
    assert (result.exit_code, result.reason) == (3, "exit code 3: last")
    assert result.log_tail == "first\nlast\n"


def test_without_standard_error_the_tail_is_of_standard_output(worker: Any) -> None:
    result = worker.run(shell("yes | head -n 100000; echo last; exit 1"))
    assert result.log_tail.endswith("y\nlast\n")
    assert len(result.log_tail) == 4096


def test_a_command_killed_by_a_signal_is_an_error_that_names_it(worker: Any) -> None:
    result = worker.run(shell("kill -SEGV $$"))
    assert (result.exit_code, result.reason) == (-11, "killed by SIGSEGV")


VERDICTS = Output(exit_codes={0: "pass", 3: "reject"})


def test_a_mapped_exit_code_is_a_verdict_with_the_last_line_as_reason(worker: Any) -> None:
    assert worker.run(shell("exit 0"), output=VERDICTS).value == {"verdict": "pass"}
    rejected = worker.run(shell("echo step 1; echo energy drifts; echo; exit 3"), output=VERDICTS)
    assert rejected.value == {"verdict": "reject", "reason": "energy drifts"}
    silent = worker.run(shell("exit 3"), output=VERDICTS)
    assert silent.value == {"verdict": "reject", "reason": "exit code 3"}
    unknown = worker.run(shell("exit 4"), output=VERDICTS)
    assert unknown.status is TaskStatus.ERROR
    assert unknown.reason == "exit code 4; output.exit_codes says what 0, 3 mean"


def test_a_reader_says_what_a_command_answered(worker: Any, read_output: Output) -> None:
    result = worker.run(shell("echo 1 2.5 > numbers.txt"), output=read_output)
    assert result.value == {"sum": 3.5, "cwd": True}


def test_a_reader_that_fails_makes_the_output_unreadable(worker: Any, read_output: Output) -> None:
    result = worker.run(shell("echo one > numbers.txt"), output=read_output)
    assert result.status is TaskStatus.UNREADABLE
    assert result.reason == (
        "reader misbehave:reads: ValueError: could not convert string to float: 'one'"
    )
    assert worker.run(shell("exit 1"), output=read_output).status is TaskStatus.ERROR


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        ("lmpp", "command not found: 'lmpp'; name one on PATH, or give its full path"),
        ("/no/lmp", "command not found: '/no/lmp'; name one on PATH, or give its full path"),
        ("./notes.txt", "command not executable: '{directory}/notes.txt'; chmod +x it, or name "),
    ],
)
def test_a_command_that_cannot_start_is_an_error(worker: Any, argv: str, reason: str) -> None:
    result = worker.run(CommandWork((argv,)), files={"notes.txt": "no program"})
    assert result.status is TaskStatus.ERROR
    assert result.reason.startswith(reason.format(directory=worker.directory))


def test_a_relative_program_is_looked_for_beside_the_campaign(worker: Any, tmp_path: Path) -> None:
    program = tmp_path / "solver"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    result = worker.run(CommandWork(("./solver",)), import_path=(str(tmp_path),))
    assert result.exit_code == 3


def test_values_reach_a_command_unchanged_by_any_shell(worker: Any) -> None:
    words = ("a b", "$HOME", "`id`", "*", "'", '"', "")
    result = worker.run(
        CommandWork(
            (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *words)
        )
    )
    assert result.status is TaskStatus.DONE
    assert json.loads((worker.directory / "stdout").read_text()) == list(words)


def test_files_are_written_before_the_command_starts(worker: Any) -> None:
    worker.run(shell("cat deck/in.txt > copy"), files={"deck/in.txt": "density 0.8\n"})
    assert (worker.directory / "copy").read_text() == "density 0.8\n"


@pytest.mark.parametrize("name", ["../outside.txt", "/tmp/outside.txt"])
def test_a_file_outside_the_directory_is_refused(worker: Any, name: str) -> None:
    result = worker.run(shell("true"), files={name: ""})
    assert result.status is TaskStatus.ERROR
    assert result.reason == (f"file {name!r}: outside the task's directory; name a path inside it")


def test_a_directory_that_cannot_be_made_loses_the_task(worker: Any, tmp_path: Path) -> None:
    (tmp_path / "tasks").write_text("a file where the folder should be")
    result = worker.call("double")
    assert result.status is TaskStatus.LOST
    assert result.reason.startswith("cannot make the task's directory: ")


def test_a_full_disk_is_no_failure_of_the_task(worker: Any) -> None:
    first = worker.folder / "tasks" / "t1"
    first.mkdir(parents=True)
    (first / "started.json").symlink_to("/dev/full")
    result = worker.call("double")
    assert result.status is TaskStatus.CANCELLED
    assert "No space left on device" in result.reason


@pytest.mark.slow
def test_a_walltime_kills_the_whole_process_tree_of_a_command(worker: Any, below: Below) -> None:
    script = "trap '' TERM; (setsid sleep 600 &); sh -c 'sleep 600 & wait' & echo up; wait; sleep 9"
    result = worker.run(shell(script), walltime=0.5)
    assert (result.status, result.log_tail) == (TaskStatus.WALLTIME, "up\n")
    assert below() == []


def test_what_a_command_leaves_in_the_background_is_killed(worker: Any, below: Below) -> None:
    result = worker.run(shell("sleep 600 & setsid sleep 600 & (setsid sleep 600 &); exit 0"))
    assert result.status is TaskStatus.DONE
    assert result.seconds < 5
    assert below() == []


def test_a_command_asked_to_end_may_clean_up(worker: Any) -> None:
    script = "trap 'echo saved; exit 0' TERM; echo up; sleep 600 & wait"
    result = worker.run(shell(script), walltime=0.5)
    assert (result.status, result.log_tail) == (TaskStatus.WALLTIME, "up\nsaved\n")


def test_a_closed_pool_takes_no_task(worker: Any) -> None:
    task_main.close_guards("closed")
    answer = task_main.run_task(wire.request(worker.task(shell("touch ran"))), "closed")
    task_main.forget_pool("closed")
    assert wire.result(answer).status is TaskStatus.LOST
    assert not worker.directory.exists()


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s"
        time.sleep(0.01)
