"""The ledger: append-only, durable, one writer; the only truth of a run.

``append`` returns when its events are on disk. A line cut off by a kill is dropped when the
ledger is next opened for writing and passed over by readers; anything else that does not
read is :class:`LedgerError`, never skipped.
"""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from campaign.events import VERSION, Entry, Event
from campaign.lock import WriterLock

NAME = "ledger.jsonl"


class LedgerError(Exception):
    """The ledger cannot be read or written: which file, where, and why."""


class Ledger:
    """The writing end. Use as a context manager; a second writer is refused by name."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._lock = WriterLock(directory)
        self._encoder = msgspec.json.Encoder()
        self.recovered: tuple[Entry, ...] = ()  # what an earlier writer left
        self._file = -1
        self._next = 1

    def __enter__(self) -> Self:
        self._lock.acquire()
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        os.close(self._file)
        self._lock.release()

    def append(self, *events: Event) -> tuple[Entry, ...]:
        """Put events on disk, all of them or (after a crash) a prefix; return their entries.

        Raises :class:`LedgerError` when the disk refuses or another driver took the run over.
        """
        if not self._lock.held():
            raise LedgerError(
                f"{self._lock.path}: no longer ours; another driver took this run over"
            )
        now = time.time()
        entries = tuple(Entry(self._next + i, now, event) for i, event in enumerate(events))
        data = b"".join(self._encoder.encode(entry) + b"\n" for entry in entries)
        try:
            _write_all(self._file, data)
            os.fdatasync(self._file)
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be written: {error.strerror}") from error
        self._next += len(events)
        return entries

    def _open(self) -> None:
        new = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if new:
            _sync_directory(self.path.parent)
        entries, end = _parse(self.path)
        os.ftruncate(self._file, end)
        self.recovered = tuple(entries)
        self._next = len(entries) + 1


def read(directory: Path) -> list[Entry]:
    """Every event of the run in ``directory``, in order.

    Raises :class:`LedgerError` naming what is wrong when there is no ledger, a line does not
    read, numbers have a gap, or the format is newer than this simgate.
    """
    return _parse(directory / NAME)[0]


def _parse(path: Path) -> tuple[list[Entry], int]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise LedgerError(f"{path}: no ledger can be read: {error.strerror}") from error
    end = data.rfind(b"\n") + 1  # what follows was cut off by a kill
    _check_version(path, data[: data.find(b"\n") + 1])
    decoder = msgspec.json.Decoder(Entry)
    collecting = gc.isenabled()
    gc.disable()  # a collection at every thousandth new event would be most of the time
    try:
        entries = decoder.decode_lines(data[:end])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _located(path, data[:end], decoder) from error
    finally:
        if collecting:
            gc.enable()
    for number, entry in enumerate(entries, start=1):
        if entry.n != number:
            raise LedgerError(f"{path}: line {number} holds event {entry.n}; lines are missing")
    return entries, end


def _located(path: Path, data: bytes, decoder: msgspec.json.Decoder[Entry]) -> LedgerError:
    """Name the first line that does not read."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return LedgerError(f"{path}: line {number} does not read: {error}")
    return LedgerError(f"{path}: does not read")


def _check_version(path: Path, first_line: bytes) -> None:
    """A newer format may have events this simgate cannot even name: look at its version first."""
    if not first_line:
        return
    try:
        first = msgspec.json.decode(first_line)["event"]
        kind, version = first["kind"], first.get("version", 0)
    except (msgspec.MsgspecError, UnicodeDecodeError, LookupError, TypeError):
        return  # the decoder says what is wrong with it
    if kind != "run_created":
        raise LedgerError(f"{path}: starts with {kind!r}; a ledger starts with 'run_created'")
    if version > VERSION:
        raise LedgerError(f"{path}: format version {version}; this simgate reads up to {VERSION}")


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
