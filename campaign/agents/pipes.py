"""One request to a process and what comes back, over its pipes."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import IO

from campaign.agents.base import AgentError
from campaign.fields import duration_text

_CHUNK = 1 << 16
_TAIL = 4096  # bytes kept of what it writes to standard error
_LONGEST = 3600.0  # seconds of one wait; the system counts milliseconds in 32 bits


class Exchange:
    """A request on its way to ``process``, and what it writes to its standard output.

    ``tail`` collects the end of what it writes to standard error. With ``keep`` its standard
    input stays open for further requests. Once ``told`` can be read, :meth:`until` raises.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        request: bytes,
        tail: bytearray,
        told: int,
        *,
        keep: bool = False,
    ) -> None:
        self.said = bytearray()
        self.silent = False  # nothing more comes
        self.over = False  # and all it started has ended
        self._left = memoryview(request)
        self._stdin, self._keep, self._tail = process.stdin, keep, tail
        self._poll = select.poll()
        self._does: dict[int, Callable[[int], None]] = {}
        self._on(process.stdin, select.POLLOUT, self._write)
        self._on(process.stdout, select.POLLIN, self._read)
        self._on(process.stderr, select.POLLIN, self._hear)
        self._poll.register(told, select.POLLIN)
        self._does[told] = _interrupted

    @property
    def delivered(self) -> bool:
        """Whether all of the request has gone into the pipe."""
        return not self._left

    def until(self, done: Callable[[], bool], seconds: float, most: int) -> None:
        """Pass on what is said, either way, until ``done``.

        Raises :class:`AgentError` after ``seconds``, or ``most`` bytes of an answer.
        """
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0:
                raise AgentError(
                    f"no answer within {duration_text(seconds)}; give it more time by timeout, "
                    "or less to do"
                )
            for number, _ in self._poll.poll(1 + int(1000 * min(left, _LONGEST))):
                if number in self._does:
                    self._does[number](number)
            if len(self.said) > most:
                raise AgentError(f"an answer of more than {most} bytes; max_bytes allows no more")

    def _on(self, pipe: IO[bytes] | None, event: int, does: Callable[[int], None]) -> None:
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._poll.register(pipe, event)
        self._does[pipe.fileno()] = does

    def _off(self, number: int) -> None:
        self._poll.unregister(number)
        del self._does[number]

    def _write(self, number: int) -> None:
        try:
            self._left = self._left[os.write(number, self._left[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it reads no more, which is its own affair
            self._off(number)
        else:
            if self._left:
                return
            self._off(number)
        if not self._keep:
            close(self._stdin)

    def _read(self, number: int) -> None:
        if chunk := os.read(number, _CHUNK):
            self.said += chunk
        else:
            self.silent = True
            self._off(number)

    def _hear(self, number: int) -> None:
        if chunk := os.read(number, _CHUNK):
            self._tail += chunk
            del self._tail[:-_TAIL]
        else:
            self.over = True
            self._off(number)


def close(pipe: IO[bytes] | None) -> None:
    """Close a pipe, whoever has gone from its other end."""
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()


def _interrupted(_: int) -> None:
    raise AgentError("interrupted")
