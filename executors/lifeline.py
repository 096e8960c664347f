"""Runs one of Parsl's own programs so that it cannot outlive the driver.

``lifeline.py DRIVER_PID MODULE ARGS...`` runs MODULE as ``python -m`` would, in a child of its
own; 0 stands for whatever started it, as on another machine. When the driver dies, however it
dies, or when it tells us to end (SIGTERM), everything below is ended; when the child dies by
itself, what it left behind is ended and its exit code handed on.
Standard library only; started by file path, with the folder above as its only addition to the path.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
from pathlib import Path

_LOOK = 0.5  # seconds between two looks at who our parent is
_LAST_WORDS = 1.0  # seconds for guards to kill their tasks and to say so


def main() -> None:
    """Run the module named on the command line until it, or the driver, ends."""
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
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    status = _watch(driver, child, ends)
    processes.end_descendants(watcher, _LAST_WORDS)
    os._exit(status)


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
