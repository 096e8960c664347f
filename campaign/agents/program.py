"""A program that is asked: a process that ends with the driver, and with it all it started.

Everything here blocks and belongs in a thread, one call at a time; only :meth:`Program.interrupt`
may be called from another one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from campaign.agents.base import AgentError
from campaign.agents.pipes import Exchange, close
from executors.lifeline import NOT_STARTED, held

_WORDS = 200  # characters of somebody else's text in a message
_ENDING = 10.0  # seconds in which all it started is gone, once it is told to end
_EXITING = 2.0  # seconds between the end of its output and its own


@dataclass(frozen=True, slots=True)
class Terms:
    """How a program is started, and how long an answer may take (seconds) and be (bytes)."""

    argv: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    timeout: float
    max_bytes: int


class Program:
    """One process at a time, started by the first call, or the first after the last one ended."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._told = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._process: subprocess.Popen[bytes] | None = None
        self._tail = bytearray()
        self._in_step = True  # a request for each line, a line for each request

    def whole(self, request: bytes) -> bytes:
        """All it writes to ``request`` until it ends by itself, with exit code 0.

        Raises :class:`AgentError`. When this returns nothing it started is there any more.
        """
        try:
            return self._whole(request)
        finally:
            self._end()

    def line(self, request: bytes) -> bytes:
        """The line it writes to ``request``, which is one line, without its end.

        Raises :class:`AgentError`, also where the process ends with its line begun; then nothing
        it started is there any more.
        """
        if not self._idle():
            self._end()
        try:
            return self._line(request)
        except BaseException:
            self._end()
            raise

    def interrupt(self) -> None:
        """Have the call in another thread, or the next one, raise at once."""
        os.eventfd_write(self._told, 1)

    def listen(self) -> None:
        """Take an interrupt back, once the call it was for has raised."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._told)

    def close(self) -> None:
        """End it and all it started, for good."""
        self._end()
        os.close(self._told)

    def _whole(self, request: bytes) -> bytes:
        process = self._started()
        talk = Exchange(process, request, self._tail, self._told)
        talk.until(lambda: talk.silent and talk.over, self._terms.timeout, self._terms.max_bytes)
        if code := process.wait():
            raise AgentError(self._how_it_ended(code), retryable=code != NOT_STARTED)
        return bytes(talk.said)

    def _line(self, request: bytes) -> bytes:
        process = self._started()
        talk = Exchange(process, request, self._tail, self._told, keep=True)
        timeout, most = self._terms.timeout, self._terms.max_bytes
        talk.until(lambda: talk.silent or b"\n" in talk.said, timeout, most)
        answer, newline, more = talk.said.partition(b"\n")
        if newline:
            self._in_step = talk.delivered and not more
            return bytes(answer)
        what, code = "its output ended", 0
        with contextlib.suppress(AgentError):
            talk.until(lambda: talk.over, _EXITING, most)
            code = process.wait()
            what = self._how_it_ended(code)
        why = f"no whole line: {what}"
        raise AgentError(why, retryable=code != NOT_STARTED)

    def _idle(self) -> bool:
        """Whether it runs and waits for a request, having written nothing unasked."""
        process = self._process
        if not self._in_step or process is None or process.poll() is not None:
            return False
        assert process.stdout is not None
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        return not poll.poll(0)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process, self._in_step = _start(self._terms), True
            self._tail.clear()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        from executors.provider import end_group  # Parsl, which only a run pays for

        process.terminate()
        end_group(process, _ENDING)
        for pipe in (process.stdin, process.stdout, process.stderr):
            close(pipe)

    def _how_it_ended(self, code: int) -> str:
        try:
            end = f"killed by {signal.Signals(-code if code < 0 else code - 128).name}"
        except ValueError:
            end = f"exit code {code}"
        lines = reversed(self._tail.decode(errors="replace").splitlines())
        said = next((words for line in lines if (words := one_line(line))), "")
        return f"{end}: {said}" if said else end


def one_line(text: str) -> str:
    """Somebody else's text as a message may hold it: on one line, of at most 200 characters."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain if len(plain) <= _WORDS else f"{plain[: _WORDS - 1]}…"


def _start(terms: Terms) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            held(terms.argv),
            cwd=terms.folder,
            env={**os.environ, **terms.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        why = f"{error.filename or terms.argv[0]}: {error.strerror}"
        raise AgentError(f"cannot be started: {why}", retryable=False) from error
