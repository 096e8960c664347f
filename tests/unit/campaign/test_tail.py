"""A ledger that is read while it is written gives what reading it at the end gives."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings, strategies as st

from campaign.events import Entry, RoundStarted, RunCreated
from campaign.ledger import NAME, SPACE, Ledger, LedgerError, NoLedgerError, read
from campaign.tail import LedgerRewrittenError, Tail

CREATED = RunCreated(version=1, simgate="0.1.0", name="n", mode="campaign", folder="/f", config={})


def whole(count: int = 6) -> bytes:
    """The bytes of a closed ledger; every event was an append of its own."""
    with TemporaryDirectory() as folder:
        with Ledger(Path(folder)) as ledger:
            ledger.append(CREATED)
            for number in range(count):
                ledger.append(RoundStarted(round=number * 37))
        return (Path(folder) / NAME).read_bytes()


WHOLE = whole()


def everything(tail: Tail) -> list[Entry]:
    found: list[Entry] = []
    while entries := tail.read():
        found += entries
    return found


@given(
    cuts=st.lists(st.integers(0, len(WHOLE)), max_size=12),
    space=st.sampled_from([b"", b"\n" * 50, b"\0" * 50, b"\n\0\0"]),
    chunk=st.integers(1, 400),
)
@settings(max_examples=150)
def test_however_a_ledger_grows_its_entries_are_the_same(
    cuts: list[int], space: bytes, chunk: int
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        path.touch()
        tail = Tail(Path(folder), chunk)
        found: list[Entry] = []
        for cut in [*sorted(cuts), len(WHOLE)]:
            path.write_bytes(WHOLE[:cut] + space)
            found += everything(tail)
            assert [entry.n for entry in found] == list(range(1, len(found) + 1))
        assert found == read(Path(folder))
        assert tail.count == len(found)


def test_each_append_is_there_at_the_next_look_while_the_writer_is_at_work(tmp_path: Path) -> None:
    tail = Tail(tmp_path)
    with Ledger(tmp_path) as ledger:
        assert list(tail.read()) == []
        for number in range(50):
            entries = ledger.append(CREATED if number == 0 else RoundStarted(round=number))
            assert tuple(tail.read()) == entries
            assert list(tail.read()) == []
        assert tail.path.stat().st_size > SPACE


def test_nothing_is_written_and_no_lock_taken(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(WHOLE)
    before = (tmp_path / NAME).stat()
    everything(Tail(tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).stat().st_mtime_ns == before.st_mtime_ns


def test_where_no_ledger_is_that_is_said_until_there_is_one(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "r")
    for _ in range(2):
        with pytest.raises(NoLedgerError, match="holds no run"):
            tail.read()
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / NAME).write_bytes(WHOLE)
    assert len(everything(tail)) == 7


def test_a_torn_end_is_waited_for_and_what_a_resume_writes_over_it_is_read(tmp_path: Path) -> None:
    lines = WHOLE.splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(b"".join(lines[:3]) + lines[3][:20] + b"\n" * 99)
    tail = Tail(tmp_path)
    assert len(everything(tail)) == 3
    assert everything(tail) == []
    with Ledger(tmp_path) as ledger:
        ledger.append(RoundStarted(round=99))
        (entry,) = tail.read()
    assert entry.event == RoundStarted(round=99)


def test_lines_whose_beginning_a_file_system_does_not_show_yet_are_waited_for(
    tmp_path: Path,
) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.append(CREATED)
        ledger.append(*(RoundStarted(round=number) for number in range(3)))
    data = (tmp_path / NAME).read_bytes()
    first = data.find(b"\n") + 1
    second = data.find(b"\n", first) + 1
    (tmp_path / NAME).write_bytes(data[:first] + b"\n" * (second - first) + data[second:])
    tail = Tail(tmp_path)
    assert len(everything(tail)) == 1
    assert everything(tail) == []
    (tmp_path / NAME).write_bytes(data)
    assert [entry.n for entry in everything(tail)] == [2, 3, 4]


@pytest.mark.parametrize("spoilt", [b'{"n":3,"t":1.0,"event":{"kind":"odd"}}\n', b"\n" * 9])
def test_what_is_wrong_for_good_is_named_at_the_second_look(tmp_path: Path, spoilt: bytes) -> None:
    lines = WHOLE.splitlines(keepends=True)
    lines[2] = spoilt
    (tmp_path / NAME).write_bytes(b"".join(lines))
    tail = Tail(tmp_path)
    assert len(tail.read()) == 2
    assert list(tail.read()) == []
    with pytest.raises(LedgerError, match=r"line [23] does not read"):
        tail.read()


def test_missing_lines_are_named(tmp_path: Path) -> None:
    lines = WHOLE.splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(b"".join([*lines[:2], *lines[3:]]))
    tail = Tail(tmp_path)
    assert len(tail.read()) == 2
    assert list(tail.read()) == []
    with pytest.raises(LedgerError, match="lines are missing"):
        tail.read()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(WHOLE.replace(b'"version":1', b'"version":9'))
    with pytest.raises(LedgerError, match="format version 9"):
        Tail(tmp_path).read()


@pytest.mark.parametrize("kept", [0, 3])
def test_a_ledger_that_lost_what_was_read_is_to_be_read_anew(tmp_path: Path, kept: int) -> None:
    (tmp_path / NAME).write_bytes(WHOLE)
    tail = Tail(tmp_path)
    everything(tail)
    (tmp_path / NAME).write_bytes(b"".join(WHOLE.splitlines(keepends=True)[:kept]))
    with pytest.raises(LedgerRewrittenError, match="holds other events"):
        tail.read()
