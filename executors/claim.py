"""A try's own directory: who works there, what it left, and its result, written in one step.

``started.json`` says which process began the try; the very same file, completed, is renamed to
``result.json`` when it ended, so there is at any moment at most one of the two, and never half of
a result. It becomes ``abandoned.json`` instead where a try ended that nobody waited for any more.
Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from executors import processes, wire
from executors.base import TaskStatus

STARTED, RESULT, CANCEL, CANDIDATE = "started.json", "result.json", "cancel", "candidate.json"
ABANDONED = "abandoned.json"
TAIL = 4096
"""Bytes of a log that travel with a result."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the work of a try ended; ``value`` is JSON text."""

    status: TaskStatus
    reason: str = ""
    value: bytes = b"null"
    exit_code: int | None = None
    log_tail: str = ""


def cannot_go_on(error: OSError) -> bool:
    """Whether no try of any task can write: the run stops, and this one is made again."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class Claim:
    """The directory of one try, from its first moment to its result."""

    def __init__(
        self,
        directory: str,
        candidate: object,
        files: dict[str, str],
        job: str = "",
        trace: str = "",
    ) -> None:
        """Make the directory, say who works in it (within which Slurm job), write the inputs.

        ``trace`` is the trace the try belongs to, for whoever reads its result.

        Raises ``OSError``, and ``ValueError`` for a file that would lie elsewhere.
        """
        self.path = directory
        self._over = False
        self._began, now = time.monotonic(), time.time()
        try:
            os.mkdir(directory)  # noqa: PTH102 - one system call in the usual case
        except FileNotFoundError:
            Path(directory).mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            pass
        self._head = b'{"owner":{%s,"time":%.6f}' % (_identity(job), now)
        if trace:
            self._head += b',"%s":%s' % (wire.TRACE.encode(), json.dumps(trace).encode())
        self._fd = _create(f"{directory}/{STARTED}", self._head + b"}")
        os.close(_create(f"{directory}/{CANDIDATE}", json.dumps(candidate).encode()))
        for name, content in files.items():
            _write_inside(Path(directory), name, content)

    def cancelled(self) -> bool:
        """Whether the driver asked for an end; works over any shared file system."""
        return os.access(f"{self.path}/{CANCEL}", os.F_OK)

    def tail(self) -> str:
        """The end of what the try printed: standard error, or standard output without one."""
        return self._tail("stderr") or self._tail("stdout")

    def last_line(self, name: str) -> str:
        """The last line with anything in it that the try wrote to ``name``."""
        lines = [line.strip() for line in self._tail(name).splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def finish(self, outcome: Outcome) -> bytes:
        """Write ``result.json`` and answer its bytes, whatever has become of the directory."""
        self._over = True
        seconds = time.monotonic() - self._began
        body = self._body(outcome, seconds)
        try:
            # No shorter than what it overwrites, so one write never leaves a torn file behind.
            os.pwrite(self._fd, body, 0)
            os.replace(f"{self.path}/{STARTED}", f"{self.path}/{RESULT}")  # noqa: PTH105
        except OSError as error:
            body = self._rescue(outcome, error, seconds)
        finally:
            os.close(self._fd)
        return body

    def abandon(self) -> None:
        """Say that nothing of the try runs any more, and that it has no result.

        May come at any moment, as a signal does; a try that has a result keeps it.
        """
        if self._over:
            return
        body = b'%s,"seconds":%.6f}' % (self._head, time.monotonic() - self._began)
        with contextlib.suppress(OSError):
            os.pwrite(self._fd, body, 0)
            os.replace(f"{self.path}/{STARTED}", f"{self.path}/{ABANDONED}")  # noqa: PTH105

    def _rescue(self, outcome: Outcome, error: OSError, seconds: float) -> bytes:
        if outcome.status is TaskStatus.DONE:
            gone = not Path(self.path).exists()
            said = "the task deleted its own directory" if gone else f"{RESULT}: {error.strerror}"
            status = TaskStatus.CANCELLED if cannot_go_on(error) else TaskStatus.UNREADABLE
            outcome = Outcome(status, reason=said, exit_code=outcome.exit_code)
        body = self._body(outcome, seconds)
        with contextlib.suppress(OSError):
            Path(self.path).mkdir(parents=True, exist_ok=True)
            half = Path(self.path, f".{RESULT}")
            half.write_bytes(body)
            half.replace(Path(self.path, RESULT))
        return body

    def _body(self, outcome: Outcome, seconds: float) -> bytes:
        fields = b'"status":"%s","seconds":%.6f,"value":' % (outcome.status.value.encode(), seconds)
        if outcome.status is TaskStatus.DONE and outcome.exit_code is None:
            rest = b',"reason":"","exit_code":null,"log_tail":""}'
        else:
            said = {
                "reason": outcome.reason,
                "exit_code": outcome.exit_code,
                "log_tail": outcome.log_tail,
            }
            rest = b"," + json.dumps(said).encode()[1:]
        return b"%s,%s%s%s" % (self._head, fields, outcome.value, rest)

    def _tail(self, name: str) -> str:
        try:
            with open(f"{self.path}/{name}", "rb") as log:  # noqa: PTH123
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - TAIL))
                return log.read(TAIL).decode(errors="replace")
        except OSError:
            return ""


def _write_inside(directory: Path, name: str, content: str) -> None:
    target = directory / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"file {name!r}: outside the task's directory; name a path inside it")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


def _create(path: str, content: bytes) -> int:
    """A new file with ``content``, still open: pathlib takes five times as long."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    os.write(fd, content)
    return fd


@functools.cache
def _identity(job: str) -> bytes:
    """Which process this is, among all processes of all boots of all hosts; JSON's inside."""
    me = {
        "pid": os.getpid(),
        "start": processes.start_ticks(os.getpid()),
        "boot": processes.boot_id(),
        "host": socket.gethostname(),
        "job": job,
    }
    return json.dumps(me).encode()[1:-1]
