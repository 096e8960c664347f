"""What Parsl runs: hand one task to a guard, answer what the guard says. Data in, data out.

The same function serves a worker process of Parsl's pool and a thread of the driver; nothing but
bytes crosses, in particular no exception. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from executors import adopt, processes, wire

_GUARD = "import sys; sys.path.insert(0, sys.argv[1]); from executors.guard import main; main()"
_ROOT = str(Path(__file__).parent.parent)
_END = 10.0  # seconds a guard may take to kill what is below it


def run_task(request: bytes, pool: str) -> bytes:
    """Run one try under an idle guard of ``pool`` (or a new one) and answer its result as JSON.

    Raises nothing: a guard that dies under the task is a ``lost`` result.
    """
    with _lock:
        guards = _pools.setdefault(pool, _Guards())
        closed, guard = guards.closed, guards.take()
    if closed:
        return _lost("the executor is closed")
    try:
        if guard is None:
            guard = Guard()
            with _lock:
                guards.all.append(guard)
                if guards.closed:
                    guard.sock.close()
        answer = guard.ask(request)
    except Exception as error:  # no process, no memory, no descriptor: not the task's doing
        return _lost(f"cannot start the guard of the task: {type(error).__name__}: {error}")
    if answer is not None:
        with _lock:
            guards.idle.append(guard)
        return answer
    with _lock:
        guards.all.remove(guard)
    return _bereaved(guard, request)


def hello() -> str:
    """Says that a worker is up: the name of its host."""
    return socket.gethostname()


def close_guards(pool: str) -> None:
    """End every guard of ``pool`` in this process, and with them the tasks below them."""
    with _lock:
        guards = _pools.setdefault(pool, _Guards())
        guards.closed = True
        ending = list(guards.all)
    for guard in ending:
        with contextlib.suppress(OSError):
            guard.sock.shutdown(socket.SHUT_RDWR)
    for guard in ending:
        guard.reap()
        guard.sock.close()


def forget_pool(pool: str) -> None:
    """Drop the memory of a closed pool."""
    with _lock:
        _pools.pop(pool, None)


class Guard:
    """A guard process, seen from the worker."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair()
        worker, number = str(os.getpid()), str(theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _GUARD, _ROOT, worker, number],
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()

    def ask(self, request: bytes) -> bytes | None:
        """Run one try; None when the guard died under it."""
        try:
            wire.send(self.sock, request)
        except OSError:
            return None
        return wire.receive(self.sock)

    def alive(self) -> bool:
        """Whether the process is there; it ends with the thread that started it."""
        return self._process.poll() is None

    def reap(self) -> int:
        """Wait for the end of the process, helping after a while; its exit code."""
        try:
            return self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class _Guards:
    def __init__(self) -> None:
        self.idle: list[Guard] = []
        self.all: list[Guard] = []
        self.closed = False

    def take(self) -> Guard | None:
        """An idle guard that is alive; None when a new one is needed."""
        while self.idle:
            guard = self.idle.pop()
            if guard.alive():
                return guard
            self.all.remove(guard)
            guard.sock.close()
        return None


_pools: dict[str, _Guards] = {}
_lock = threading.Lock()


def _bereaved(guard: Guard, request: bytes) -> bytes:
    """A guard died: kill what it watched over (it was told to die with it, its children not)."""
    with contextlib.suppress(OSError):
        guard.sock.shutdown(socket.SHUT_RDWR)
    code = guard.reap()
    guard.sock.close()
    directory = json.loads(request)["directory"]
    processes.kill_marked(f"{wire.TASK_DIR}={directory}".encode())
    how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    ran = adopt.ran_for(Path(directory))
    return _lost(f"the guard of the task died ({how})", ran)


def _lost(reason: str, seconds: float = 0.0) -> bytes:
    return json.dumps(
        {
            "owner": {"host": socket.gethostname(), "pid": os.getpid()},
            "status": "lost",
            "reason": reason,
            "exit_code": None,
            "log_tail": "",
            "seconds": seconds,
            "value": None,
        }
    ).encode()
