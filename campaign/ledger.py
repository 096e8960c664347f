"""The ledger: append-only, durable, one writer; the only truth of a run.

``append`` returns when its events are on disk. While a driver writes, the file ends in empty lines:
an append into space the file has already is durable sooner than one that makes it longer. They, and
what a kill cut off, are dropped when the ledger is next opened for writing and passed over by
readers; anything else that does not read is :class:`LedgerError`, never skipped.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

from campaign.events import VERSION, Entry, Event, RunCreated
from campaign.lock import WriterLock

NAME = "ledger.jsonl"
SPACE = 1 << 20  # bytes the file is made longer at a time
_SPACE = re.compile(rb"\n?\x00+|\n{2,}")  # ours, or what a file system leaves of a lost write


class LedgerError(Exception):
    """The ledger cannot be read or written: which file, where, and why."""


class NoLedgerError(LedgerError):
    """The directory holds no run."""


class Ledger:
    """The writing end. Use as a context manager; a second writer is refused by name."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._lock = WriterLock(directory)
        self._encoder = msgspec.json.Encoder()
        self.recovered: tuple[Entry, ...] = ()  # what an earlier writer left
        self._file = -1
        self._next = 1
        self._end = 0  # bytes that are whole and durable
        self._size = 0  # bytes of the file, space included
        self._closed = "is not open"  # why nothing can be appended, "" when it can
        self._turn = threading.Lock()  # a caller that gave up may have left an append behind

    def __enter__(self) -> Self:
        try:
            self._lock.acquire()
        except OSError as error:
            raise LedgerError(f"{self._lock.path}: cannot be written: {error.strerror}") from error
        try:
            self._open()
        except BaseException as error:
            self._close()
            if isinstance(error, OSError):
                raise LedgerError(f"{self.path}: cannot be written: {error.strerror}") from error
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def append(self, *events: Event) -> tuple[Entry, ...]:
        """Put events on disk, all of them or (after a crash) a prefix; return their entries.

        Raises :class:`LedgerError` when the disk refuses or another driver took the run over;
        then nothing of them is left in the file, and nothing can be appended any more.
        """
        with self._turn:
            if self._closed:
                raise LedgerError(f"{self.path}: {self._closed}")
            if not self._lock.held():
                self._closed = "no longer ours; another driver took this run over"
                raise LedgerError(f"{self.path}: {self._closed}")
            now = time.time()
            entries = tuple(Entry(n, now, event) for n, event in enumerate(events, self._next))
            data = self._encoder.encode_lines(entries)
            try:
                self._make_space(len(data))
                _write_all(self._file, data, self._end)
                os.fdatasync(self._file)
            except OSError as error:
                self._give_up(error)
                raise LedgerError(f"{self.path}: {self._closed}") from error
            self._next += len(events)
            self._end += len(data)
            return entries

    def _open(self) -> None:
        new = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if new:
            _sync_directory(self.path.parent)
        entries, self._end = _parse(self.path)
        os.ftruncate(self._file, self._end)
        self._size = self._end
        self.recovered = tuple(entries)
        self._next = len(entries) + 1
        self._closed = ""

    def _make_space(self, wanted: int) -> None:
        """Empty lines, durable with the append that follows; where they find no room, it may."""
        if self._end + wanted <= self._size:
            return
        space = b"\n" * (wanted + SPACE)
        with contextlib.suppress(OSError):
            _write_all(self._file, space, self._size)
        self._size = max(self._size + len(space), self._end + wanted)

    def _give_up(self, error: OSError) -> None:
        """What a failed sync left on disk is unknown: take it back, and append nothing after it."""
        self._closed = f"cannot be written: {error.strerror}"
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self._end)

    def _close(self) -> None:
        with self._turn:
            self._closed = "is closed"
            if self._file >= 0:
                with contextlib.suppress(OSError):
                    if self._size > self._end and self._lock.held():
                        os.ftruncate(self._file, self._end)
                os.close(self._file)
                self._file = -1
        self._lock.release()


def read(directory: Path) -> list[Entry]:
    """Every event of the run in ``directory``, in order.

    Raises :class:`LedgerError` naming what is wrong when there is no ledger, a line does not
    read, numbers have a gap, or the format is newer than this simgate.
    """
    return _parse(directory / NAME)[0]


def created(directory: Path) -> RunCreated | None:
    """The first event of the run in ``directory``, None when no line of it is whole.

    Costs nothing, however long the ledger is; raises :class:`LedgerError` as :func:`read` does.
    """
    path = directory / NAME
    with opened(path) as file:
        line = file.readline()
    check_version(path, line)
    if not line.endswith(b"\n"):
        return None
    try:
        event = msgspec.json.decode(line, type=Entry).event
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise LedgerError(f"{path}: line 1 does not read: {error}") from error
    return event if isinstance(event, RunCreated) else None


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Make events without a look for garbage at every thousandth, which would be half the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"{path.parent}: holds no run; give a directory with a {NAME}"
        raise NoLedgerError(message) from error
    except OSError as error:
        raise LedgerError(f"{path}: cannot be read: {error.strerror}") from error


def _parse(path: Path) -> tuple[list[Entry], int]:
    with opened(path) as file:
        data = file.read()
    data = _whole_lines(path, data)
    end = len(data)
    check_version(path, data[: data.find(b"\n") + 1])
    decoder = msgspec.json.Decoder(Entry)
    try:
        with uncollected():
            entries = decoder.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _located(path, data, decoder) from error
    for number, entry in enumerate(entries, start=1):
        if entry.n != number:
            raise LedgerError(f"{path}: line {number} holds event {entry.n}; lines are missing")
    return entries, end


def _whole_lines(path: Path, data: bytes) -> bytes:
    """The lines that were written whole: without the space after them, and without a torn last one.

    Of an append that was on its way when the power failed, the disk may have kept the end without
    the beginning. Its lines bear one time stamp; lines of more than one were durable once.
    """
    places = [
        place for place in (data.find(b"\n\n"), data.find(b"\n\0"), data.find(b"\0")) if place >= 0
    ]
    if places and (gap := _SPACE.match(data, min(places))):
        stamps = {stamp_of(line) for line in _SPACE.sub(b"\n", data[gap.end() :]).splitlines()}
        if len(stamps - {None}) > 1:
            number = data.count(b"\n", 0, gap.start()) + 1
            raise LedgerError(f"{path}: line {number} does not read: part of it is missing")
        data = data[: gap.start()] + b"\n" * data.startswith(b"\n", gap.start())
    data = data[: data.rfind(b"\n") + 1]
    last = data.rfind(b"\n", 0, -1) + 1
    return data if stamp_of(data[last:]) is not None else data[:last]


def stamp_of(line: bytes) -> float | None:
    """When a line was written, None for what is no line."""
    try:
        return msgspec.json.decode(line, type=_Stamp).t
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class _Stamp(msgspec.Struct):
    t: float


def _located(path: Path, data: bytes, decoder: msgspec.json.Decoder[Entry]) -> LedgerError:
    """Name the first line that does not read."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return LedgerError(f"{path}: line {number} does not read: {error}")
    return LedgerError(f"{path}: does not read")


def check_version(path: Path, first_line: bytes) -> None:
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
    if not isinstance(version, int):
        return
    if version > VERSION:
        raise LedgerError(f"{path}: format version {version}; this simgate reads up to {VERSION}")


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, offset)
        view, offset = view[written:], offset + written


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
