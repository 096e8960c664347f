"""A held program ends with what holds it, and takes along what it started."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from executors.lifeline import NOT_STARTED, held
from onlookers import PATIENCE, Onlookers, onlookers


@pytest.fixture
def watch() -> Iterator[Onlookers]:
    with onlookers() as found:
        yield found


def run(*argv: str, **how: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(held(argv), capture_output=True, timeout=PATIENCE, check=False, **how)  # type: ignore[call-overload, no-any-return]


def test_a_held_program_has_its_pipes_and_its_exit_code() -> None:
    script = "import sys; print(sys.stdin.read().upper()); print('why', file=sys.stderr); exit(3)"
    done = run(sys.executable, "-c", script, input=b"request")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"REQUEST\n", b"why\n")


def test_a_signal_is_told_as_a_shell_tells_it() -> None:
    done = run(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    assert done.returncode == 128 + signal.SIGKILL


def test_a_program_that_is_not_there_says_so() -> None:
    done = run("no-such-program")
    assert done.returncode == NOT_STARTED
    assert b"cannot be started: 'no-such-program': No such file or directory" in done.stderr


def test_signals_are_as_a_program_expects_them() -> None:
    shown = run("sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status")
    masks = [int(line.split()[1], 16) for line in shown.stdout.splitlines()]
    assert masks == [0, 0]


def test_what_a_program_leaves_behind_ends_with_it(watch: Onlookers) -> None:
    done = run(sys.executable, "-c", watch.daemon)
    assert done.returncode == 0
    watch.wait_for(1)
    assert watch.all_gone()


def test_it_ends_with_all_it_started_when_it_is_told_to(watch: Onlookers) -> None:
    script = f"{watch.daemon}\n{watch.joins}\nwatched.recv(1)"
    with subprocess.Popen(held([sys.executable, "-c", script])) as process:
        watch.wait_for(2)
        process.terminate()
        assert process.wait(PATIENCE) == 128 + signal.SIGTERM
    assert watch.all_gone()


def test_it_ends_with_all_it_started_when_its_driver_is_killed(watch: Onlookers) -> None:
    script = f"{watch.daemon}\n{watch.joins}\nwatched.recv(1)"
    driver = (
        "import subprocess, sys; from executors.lifeline import held\n"
        f"subprocess.run(held([sys.executable, '-c', {script!r}]))"
    )
    with subprocess.Popen([sys.executable, "-c", driver]) as process:
        watch.wait_for(2)
        process.kill()
    assert watch.all_gone()
