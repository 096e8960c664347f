"""Runs a program so that it cannot outlive the driver.

``lifeline.py DRIVER_PID MODULE ARGS...`` runs MODULE as ``python -m`` would, in a child of its
own; 0 stands for whatever started it, as on another machine. ``lifeline.py DRIVER_PID -- ARGV...``
runs any program, see :func:`held`. When the driver dies, however it dies, or when it tells us to
end (SIGTERM), everything below is ended; when the child dies by itself, what it left behind is
ended and its exit code handed on, that of a signal as 128 and its number.
Standard library only; started by file path, with the folder above as its only addition to the path.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

NOT_STARTED = 127
"""The exit code of a held program that could not be started; standard error says why."""
_LOOK = 0.5  # seconds between two looks at who our parent is
_LAST_WORDS = 1.0  # seconds for guards to kill their tasks and to say so
_PROGRAM = "--"  # in place of a module: what follows is a program


def held(argv: Sequence[str]) -> list[str]:
    """``argv`` so that the program, and all it starts, ends with this process or with a SIGTERM.

    Its pipes are its own, but standard error stays open until everything it started has ended.
    """
    script = str(Path(__file__).absolute())
    # Nothing the environment says about Python is meant for us.
    return [sys.executable, "-ES", script, str(os.getpid()), _PROGRAM, *argv]


def main() -> None:
    """Run the module or program named on the command line until it, or the driver, ends."""
    sys.path[0] = str(Path(__file__).parent.parent)
    from executors import processes

    driver, module, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    driver = driver or os.getppid()
    # Away from the terminal's process group: Ctrl-C is for the driver, which then ends us.
    with contextlib.suppress(PermissionError):  # we lead a session already
        os.setsid()
    ends = {signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    processes.become_subreaper()
    watcher = os.getpid()
    child = os.fork()
    if child == 0:
        processes.die_with_parent(watcher)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)
        if module == _PROGRAM:
            _become(arguments)
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    if module == _PROGRAM:
        _let_go(0, 1)
    status = _watch(driver, child, ends)
    processes.end_descendants(watcher, _LAST_WORDS)
    os._exit(status)


def _become(argv: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python's own, which exec would hand on
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        os.write(2, f"cannot be started: {argv[0]!r}: {why}\n".encode(errors="replace"))
    os._exit(NOT_STARTED)


def _let_go(*numbers: int) -> None:
    """Hold no end of the program's pipes: it, and who speaks to it, must see the other's end."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        os.dup2(null, number)
    os.close(null)


def _watch(driver: int, child: int, ends: set[signal.Signals]) -> int:
    """Wait for the first end: the driver's, the child's, or ours; the exit code to leave with."""
    while os.getppid() == driver:
        seen = signal.sigtimedwait(ends, _LOOK)
        if seen is not None and seen.si_signo == signal.SIGTERM:
            return 128 + signal.SIGTERM
        while True:  # several children may have ended behind one SIGCHLD: reap them all
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    return 0


if __name__ == "__main__":
    main()
