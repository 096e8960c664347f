"""The process between a worker and a task: it starts the task, times it, and leaves nothing behind.

One guard per worker, told what to do over a socket. It lives exactly as long as the worker holds
the other end: when the worker (or the driver) dies, by whatever signal, the socket closes, and the
guard kills everything below it. Being a subreaper it also owns daemons that detached themselves.
Standard library only.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, NoReturn

from executors import commands, processes, wire
from executors.base import TaskStatus
from executors.claim import Claim, Outcome, cannot_go_on
from executors.environment import THREAD_LIMITS, task_environment
from executors.warm import RunnerProcess

CANCEL_POLL = 0.2
"""Seconds between two looks for the file that cancels a try."""
TERM_GRACE = 2.0
"""Seconds between asking a task to end (SIGTERM) and ending it (SIGKILL)."""


class Ended(Enum):
    """Why a watch over a task came to its end."""

    BY_ITSELF = auto()
    WALLTIME = auto()
    CANCELLED = auto()


def main() -> None:
    """Serve the worker whose process id and socket are the last two arguments."""
    worker, number = map(int, sys.argv[-2:])
    sock = socket.socket(fileno=number)
    processes.become_subreaper()
    job = os.environ.get("SLURM_JOB_ID", "")
    environment = task_environment(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir("/")
    guard = Guard(sock, job)
    # A copy of our socket in some other child of the worker would keep it open after its death.
    signal.signal(signal.SIGTERM, lambda *_: guard.die())
    processes.die_with_parent(worker, signal.SIGTERM)
    while (request := wire.receive(sock)) is not None:
        wire.send(sock, guard.attempt(request))
    guard.die()


class Guard:
    """Runs one try at a time; see the module."""

    def __init__(self, sock: socket.socket, job: str) -> None:
        self._sock = sock
        self._job = job  # of Slurm's, in which we are
        self._abandon: Callable[[], None] = lambda: None
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._wake, select.POLLIN)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._runner: RunnerProcess | None = None
        self._deadline = 0.0
        self._claim: Claim

    def attempt(self, raw: bytes) -> bytes:
        """One try, from its directory to the bytes of its result; raises nothing."""
        request = json.loads(raw)
        self._deadline = time.monotonic() + request["walltime"]
        try:
            self._claim = Claim(
                request["directory"],
                request["candidate"],
                request["files"],
                self._job,
                request["env"].get(wire.TRACEPARENT, ""),
            )
            self._abandon = self._claim.abandon
        except OSError as error:
            status = TaskStatus.CANCELLED if cannot_go_on(error) else TaskStatus.LOST
            return _unclaimed(status, f"cannot make the task's directory: {error}")
        except ValueError as error:
            return _unclaimed(TaskStatus.ERROR, str(error))
        try:
            outcome = self._outcome(request, raw)
        except Exception:  # a fault of ours must not cost the worker
            self._retire()
            outcome = Outcome(
                TaskStatus.LOST, "the guard of the task failed", log_tail=traceback.format_exc()
            )
        return self._claim.finish(outcome)

    def die(self) -> NoReturn:
        """Take everything below along; the worker is gone and nobody waits for an answer."""
        if processes.kill_descendants(os.getpid()):
            self._abandon()
        os._exit(0)

    def _outcome(self, request: dict[str, Any], raw: bytes) -> Outcome:
        if self._claim.cancelled():
            return Outcome(TaskStatus.CANCELLED, "cancelled before it started")
        if request["kind"] == "python":
            outcome = self._call(request, raw)
        else:
            outcome = self._command(request)
        reader = request["output"].get("reader")
        if reader is None or outcome.status is not TaskStatus.DONE:
            return outcome
        request |= {"kind": "python", "function": reader, "reader": True}
        return self._call(request, json.dumps(request).encode())

    def _call(self, request: dict[str, Any], raw: bytes) -> Outcome:
        """Have the runner call a function."""
        runner = self._runner_for(request)
        runner.spool.begin(self._claim.path)
        wire.send(runner.sock, raw)
        ended = self._watch(runner.answered)
        runner.spool.drain()
        answer = runner.answer
        runner.answer = None
        if ended is not Ended.BY_ITSELF:
            return self._stopped(ended, request, self._retire)
        if answer is None:
            code = self._retire()
            return commands.failed(code, "the function's process ended: ", self._claim)
        verdict, dirty, payload = answer[:1], answer[1:2] == b"d", answer[2:]
        if dirty:
            self._retire()
        if verdict == b"D":
            return Outcome(TaskStatus.DONE, value=payload)
        status = TaskStatus.ERROR if verdict == b"E" else TaskStatus.UNREADABLE
        return Outcome(status, reason=payload.decode(), log_tail=self._claim.tail())

    def _command(self, request: dict[str, Any]) -> Outcome:
        process = commands.start(request, self._claim.path)
        if isinstance(process, Outcome):
            return process
        ended = self._watch(lambda: process.poll() is not None)
        if ended is not Ended.BY_ITSELF:
            return self._stopped(ended, request, lambda: self._sweep(process.poll))
        self._sweep(process.poll)
        return commands.outcome(request, process.returncode, self._claim)

    def _watch(self, done: Callable[[], bool]) -> Ended:
        """Wait for a task to end, for its walltime, for a cancel, or for our own end."""
        look = time.monotonic() + CANCEL_POLL
        while not done():
            now = time.monotonic()
            if now >= self._deadline:
                return Ended.WALLTIME
            if now >= look:
                if self._claim.cancelled():
                    return Ended.CANCELLED
                look = now + CANCEL_POLL
            self._turn(min(self._deadline, look) - now)
        return Ended.BY_ITSELF

    def _turn(self, seconds: float) -> None:
        """Sleep until something happens, and take in what it is."""
        for fd, _ in self._poll.poll(max(1, int(seconds * 1000) + 1)):
            if fd == self._sock.fileno():
                self.die()  # nobody speaks to a busy guard: this is the end of the worker
            elif fd == self._wake:
                os.read(self._wake, 512)
            elif self._runner is not None:
                self._runner.ready(fd)

    def _stopped(
        self, ended: Ended, request: dict[str, Any], clear: Callable[[], object]
    ) -> Outcome:
        """End a task that did not end by itself: ask, wait a little, kill."""
        me = os.getpid()
        deadline = time.monotonic() + TERM_GRACE
        if processes.signal_descendants(me, signal.SIGTERM):
            while time.monotonic() < deadline and processes.signal_descendants(me, 0):
                self._turn(0.02)
        clear()
        if ended is Ended.CANCELLED:
            return Outcome(TaskStatus.CANCELLED, "cancelled", log_tail=self._claim.tail())
        reason = f"walltime: still running after {request['walltime']:g} s; killed"
        return Outcome(TaskStatus.WALLTIME, reason, log_tail=self._claim.tail())

    def _sweep(self, reap: Callable[[], object]) -> None:
        """Nothing below us but the idle runner: kill the rest, and collect the dead."""
        reap()
        spare = () if self._runner is None else (self._runner.pid,)
        for pid in processes.children(os.getpid()):
            if pid not in spare:
                processes.kill_descendants(os.getpid(), spare)
                break
        reap()
        for pid in processes.children(os.getpid()):
            if pid not in spare:
                _reap(pid)

    def _runner_for(self, request: dict[str, Any]) -> RunnerProcess:
        """The warm runner, if it has the path and the thread limits this task wants."""
        limits = {name: request["env"].get(name, "1") for name in THREAD_LIMITS}
        wanted = (request["path"], limits)
        runner = self._runner
        if runner is None or runner.made_for != wanted or runner.gone():
            self._retire()
            runner = self._runner = RunnerProcess(wanted, self._sock)
            for fd in runner.fds:
                self._poll.register(fd, select.POLLIN)
        return runner

    def _retire(self) -> int:
        """End the runner and all it left; its exit code."""
        runner, self._runner = self._runner, None
        processes.kill_descendants(os.getpid(), () if runner is None else (runner.pid,))
        if runner is None:
            return 0
        for fd in runner.fds:
            self._poll.unregister(fd)
        code = runner.end()
        self._sweep(lambda: None)
        return code


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _unclaimed(status: TaskStatus, reason: str) -> bytes:
    """A result for a try that could not even begin."""
    return json.dumps(
        {
            "owner": {"host": socket.gethostname()},
            "status": status.value,
            "reason": reason,
            "exit_code": None,
            "log_tail": "",
            "seconds": 0.0,
            "value": None,
        }
    ).encode()


if __name__ == "__main__":
    main()
