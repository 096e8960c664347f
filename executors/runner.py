"""The warm process that calls a campaign's Python functions, one after the other.

Forked by the guard, which it obeys over a socket and which it never outlives. Modules a task
imports stay imported; everything else a task may have moved (working directory, environment,
path, streams, signals) is put back after it, and whatever cannot be put back (a thread left
running, a process left behind) is reported, so that the guard replaces this process.
Standard library only.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal

from executors import processes, values, wire

Verdict = Literal[b"D", b"E", b"U"]
"""Done, error (the function's), unreadable (its answer)."""
_HERE = os.path.dirname(__file__)  # noqa: PTH120


def serve(sock: socket.socket, guard: int, streams: tuple[int, int]) -> None:
    """Answer requests until the guard goes away; never returns to the guard's code."""
    os.setsid()
    processes.die_with_parent(guard)
    # Daemons a task forks become children of this process: no child left means nothing left.
    processes.become_subreaper()
    runner = _Runner(streams)
    while (request := wire.receive(sock)) is not None:
        verdict, payload = runner.attempt(json.loads(request))
        wire.send(sock, verdict + (b"d" if runner.restore() else b"c") + payload)
    os._exit(0)


class _Runner:
    def __init__(self, streams: tuple[int, int]) -> None:
        self._streams = streams
        self._functions: dict[str, Callable[..., object]] = {}
        self._forget_ourselves()
        self._environ = os.environ.copy()
        self._raw_environ = _raw_environ()
        self._path = list(sys.path)
        self._threads = threading.active_count()
        self._open_streams()

    def attempt(self, request: dict[str, Any]) -> tuple[Verdict, bytes]:
        """Call the function of one request; every failure of it becomes data here."""
        try:
            os.chdir(request["directory"])
            os.environ.update(request["env"])
            sys.path[:0] = request["path"]
            sys.argv = [request["function"]]
            function = self._function(request["function"])
            if request["reader"]:
                value = function(request["directory"])
            else:
                value = function(request["candidate"], **request["arguments"])
        except BaseException as error:  # SystemExit and KeyboardInterrupt of a task included
            self._print(error)
            where = f"reader {request['function']}: " if request["reader"] else ""
            return b"U" if request["reader"] else b"E", (where + values.describe(error)).encode(
                errors="replace"
            )
        try:
            return b"D", values.encode(value)
        except values.NotAnAnswer as error:
            return b"U", str(error).encode(errors="replace")
        except BaseException as error:  # a Mapping's own code may raise anything
            return b"U", values.describe(error).encode(errors="replace")

    def restore(self) -> bool:
        """Put back what the task moved; whether something of it is still running."""
        self._flush()
        os.chdir("/")
        if _raw_environ() != self._raw_environ:
            for name in set(os.environ) - set(self._environ):
                del os.environ[name]
            os.environ.update(self._environ)
        sys.path[:] = self._path
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return threading.active_count() > self._threads or _has_children()

    def _function(self, name: str) -> Callable[..., object]:
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = values.resolve(name)
        return function

    def _forget_ourselves(self) -> None:
        """Leave the name ``executors`` free for a module of the campaign."""
        root = os.path.dirname(_HERE)  # noqa: PTH120
        for name in [n for n in sys.modules if n.partition(".")[0] == "executors"]:
            del sys.modules[name]
        if sys.path and sys.path[0] == root:
            del sys.path[0]

    def _open_streams(self) -> None:
        self._out, self._err = (
            io.TextIOWrapper(
                io.FileIO(fd, "w", closefd=False),
                encoding="utf-8",
                errors="backslashreplace",
                line_buffering=True,
                write_through=False,
            )
            for fd in (1, 2)
        )
        sys.stdout = sys.__stdout__ = self._out  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._err  # type: ignore[misc]

    def _print(self, error: BaseException) -> None:
        try:
            traceback.print_exception(error.with_traceback(_beyond_us(error)), file=sys.stderr)
        except BaseException:  # streams a task closed, a __str__ that raises: the reason remains
            return

    def _flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._out.flush()
            self._err.flush()
        for target, source in zip((1, 2), self._streams, strict=True):
            os.dup2(source, target)  # a task may have closed them, or turned them elsewhere
        if self._out.closed or self._err.closed:
            self._open_streams()
        elif sys.stdout is not self._out or sys.stderr is not self._err:
            sys.stdout, sys.stderr = self._out, self._err


def _beyond_us(error: BaseException) -> TracebackType | None:
    """The traceback from the task's own code on; all of it when it never got there."""
    frame = error.__traceback__
    while frame is not None and os.path.dirname(frame.tb_frame.f_code.co_filename) == _HERE:  # noqa: PTH120
        frame = frame.tb_next
    return frame or error.__traceback__


def _raw_environ() -> dict[bytes, bytes]:
    """The environment as bytes: decoding every entry twice per task costs more than calling it."""
    return dict(vars(os.environ).get("_data") or os.environb)


def _has_children() -> bool:
    """Whether any process below us is alive; those that ended are reaped."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
