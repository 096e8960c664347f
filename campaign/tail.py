"""Reading a ledger while somebody writes it: each look goes on where the one before has ended.

The file is opened anew for every look, by which a network file system shows what others wrote.
Nothing is written, and no lock is taken. What an append has brought only in part is not there yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from campaign.events import Entry
from campaign.ledger import NAME, LedgerError, check_version, opened, read, stamp_of, uncollected

CHUNK = 4 << 20  # bytes of one look, or one line if that is longer


class LedgerRewrittenError(LedgerError):
    """What was read before is in the file no more: begin anew."""


class Tail:
    """The entries of the run in ``directory``, in portions."""

    def __init__(self, directory: Path, chunk: int = CHUNK) -> None:
        self.path = directory / NAME
        self.count = 0  # entries read
        self._chunk = chunk
        self._offset = 0  # where the next line begins
        self._last = b""  # the line before it
        self._doubtful = b""  # what the last look could not take
        self._decoder = msgspec.json.Decoder(Entry)

    def read(self) -> Sequence[Entry]:
        """What is new, about ``chunk`` bytes at the most; nothing when all has been read.

        Raises ``NoLedgerError`` while there is no ledger, :class:`LedgerRewrittenError`, and as
        :func:`campaign.ledger.read` does ``LedgerError``: for a line that does not read only when
        it is found so twice, since what is being written can look like that once.
        """
        data = self._fresh()
        lines = _whole(data)
        if self.count == 0:
            check_version(self.path, lines[: lines.find(b"\n") + 1])
        entries, size = self._entries(lines)
        if entries:
            self._offset += size
            self._last = lines[lines.rfind(b"\n", 0, size - 1) + 1 : size]
            self.count += len(entries)
            self._doubtful = b""
        elif (rest := data.strip(b"\n\0")) and _more_than_one_append(rest):
            if rest == self._doubtful:
                self._explain()
            self._doubtful = rest
        return entries

    def _fresh(self) -> bytes:
        """The bytes after what was read, from the beginning of a line."""
        with opened(self.path) as file:
            try:
                file.seek(self._offset - len(self._last))
                data = file.read(len(self._last) + self._chunk)
                fresh = data[len(self._last) :]
                while b"\n" not in fresh and (more := file.read(self._chunk)):
                    fresh += more
            except OSError as error:
                raise LedgerError(f"{self.path}: cannot be read: {error.strerror}") from error
        if not data.startswith(self._last):
            raise self._rewritten()
        return fresh

    def _entries(self, lines: bytes) -> tuple[list[Entry], int]:
        """The entries at the beginning of ``lines`` that follow what was read, and their bytes."""
        try:
            with uncollected():
                entries = self._decoder.decode_lines(lines)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return self._one_by_one(lines)
        numbers = range(self.count + 1, self.count + 1 + len(entries))
        if all(entry.n == number for entry, number in zip(entries, numbers, strict=True)):
            return entries, len(lines)
        return self._one_by_one(lines)

    def _one_by_one(self, lines: bytes) -> tuple[list[Entry], int]:
        entries: list[Entry] = []
        size = 0
        for line in lines.splitlines(keepends=True):
            try:
                entry = self._decoder.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                break
            if entry.n != self.count + len(entries) + 1:
                break
            entries.append(entry)
            size += len(line)
        return entries, size

    def _explain(self) -> None:
        """Raise what is wrong with lines that follow and cannot be read, if anything is."""
        if len(read(self.path.parent)) > self.count:
            raise self._rewritten()

    def _rewritten(self) -> LedgerRewrittenError:
        return LedgerRewrittenError(
            f"{self.path}: holds other events than it did; what its driver could not keep was "
            "taken back, or another run is in its place"
        )


def _whole(data: bytes) -> bytes:
    """The whole lines before the space that a writer keeps ahead, or before what was lost."""
    if data[:1] in (b"\n", b"\0"):
        return b""
    ends = [place for place in (data.find(b"\n\n"), data.find(b"\0")) if place >= 0]
    if ends:
        data = data[: min(ends) + 1]
    return data[: data.rfind(b"\n") + 1]


def _more_than_one_append(rest: bytes) -> bool:
    """Whether lines of several appends are there; each was durable before the next one began."""
    return len({stamp_of(line) for line in rest.splitlines()} - {None}) > 1
