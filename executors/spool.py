"""What a runner prints, on its way into the files of the try that is running.

The files are made by the first byte: most functions print nothing, and making a file costs more
than calling a function. Standard library only.
"""

from __future__ import annotations

import os

_NAMES = ("stdout", "stderr")
_CHUNK = 1 << 16  # a pipe's capacity
_AT_ONCE = 16  # chunks: a task that never stops printing must not keep us from the clock


class Spool:
    """Two pipes from a runner, emptied by the guard into ``stdout`` and ``stderr``."""

    def __init__(self) -> None:
        pipes = [os.pipe2(os.O_CLOEXEC) for _ in _NAMES]
        self.fds = tuple(read for read, _ in pipes)
        self._writers = tuple(write for _, write in pipes)
        self._files: dict[int, int] = {}
        self._directory = "/"

    def become_writer(self) -> tuple[int, int]:
        """In the runner: the pipes become its standard streams; copies to restore them from."""
        for fd in self.fds:
            os.close(fd)
        out, err = self._writers
        os.dup2(out, 1)
        os.dup2(err, 2)
        return out, err

    def become_reader(self) -> None:
        """In the guard: only the runner and its children hold the writing ends."""
        for fd in self._writers:
            os.close(fd)
        for fd in self.fds:
            os.set_blocking(fd, False)

    def begin(self, directory: str) -> None:
        """What comes from now on belongs to the try in ``directory``."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()
        self._directory = directory

    def drain(self) -> None:
        """Move everything that is there; a full disk loses it rather than blocking the task."""
        for fd, name in zip(self.fds, _NAMES, strict=True):
            for _ in range(_AT_ONCE):
                try:
                    data = os.read(fd, _CHUNK)
                except BlockingIOError:
                    break
                if not data:
                    break
                self._keep(fd, name, data)

    def close(self) -> None:
        """Let go of pipes and files."""
        for fd in (*self.fds, *self._files.values()):
            os.close(fd)
        self._files.clear()

    def _keep(self, fd: int, name: str, data: bytes) -> None:
        try:
            target = self._files.get(fd)
            if target is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                target = self._files[fd] = os.open(f"{self._directory}/{name}", flags, 0o644)
            os.write(target, data)
        except OSError:
            return
