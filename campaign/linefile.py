"""A file that takes whole lines or nothing, and never complains to who writes."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path


class LineFile(io.TextIOBase):
    """Appends to ``path``; a line that cannot be written whole is taken back and lost.

    ``loss`` is told why, every time. Raises ``OSError`` where the file cannot be opened.
    """

    def __init__(self, path: Path, loss: Callable[[str], None]) -> None:
        super().__init__()
        self._path, self._loss = path, loss
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._end = os.fstat(self._fd).st_size
        self._torn = False
        self._lock = threading.Lock()

    def writable(self) -> bool:
        return True

    def write(self, line: str, /) -> int:
        """Write a line with its newline; the length of ``line``, whatever became of it."""
        data = memoryview(line.encode("utf-8", "backslashreplace"))
        with self._lock:
            if not (self._torn or self.closed):  # its number may be another file's by now
                self._append(data)
        return len(line)

    def close(self) -> None:
        with self._lock:
            if not self.closed:
                # A full disk may come to light only here, and there is nobody left to be told.
                with contextlib.suppress(OSError):
                    os.close(self._fd)
            super().close()

    def _append(self, data: memoryview) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            self._loss(f"{self._path}: {error.strerror}")
            self._take_back(written)
        else:
            self._end += written

    def _take_back(self, written: int) -> None:
        """Leave no half of a line, which would spoil the next one; else write no more."""
        if written:
            try:
                os.ftruncate(self._fd, self._end)
            except OSError:
                self._torn = True
