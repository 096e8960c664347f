"""The ledger keeps what it was given, and says what is wrong with one it cannot read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from campaign import events
from campaign.events import Event, JobEnded, RoundStarted, RunCreated
from campaign.ledger import NAME, Ledger, LedgerError, NoLedgerError, read
from campaign.packing import pack, unpack

CREATED = RunCreated(version=1, simgate="0.1.0", name="n", mode="campaign", folder="/f", config={})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.integers(0, 2**53)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | FINITE | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
FINDING = st.builds(events.FindingRecord, TEXT, TEXT, TEXT, TEXT, OBJECT)
BY_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "int": NUMBER,
    "float": FINITE,
    "str": TEXT,
    "bool": st.booleans(),
    "Any": JSON,
    "JsonObject": OBJECT,
    "int | None": st.none() | NUMBER,
    "bool | None": st.none() | st.booleans(),
    "list[int]": st.lists(NUMBER, max_size=3),
    "list[str]": st.lists(TEXT, max_size=3),
    "list[Any]": st.lists(JSON, max_size=3),
    "list[RuleRecord]": st.lists(st.builds(events.RuleRecord, OBJECT, TEXT), max_size=2),
    "list[VerdictRecord]": st.lists(
        st.builds(
            events.VerdictRecord,
            NUMBER,
            st.lists(FINDING, max_size=2),
            OBJECT,
            st.lists(TEXT, max_size=2),
        ),
        max_size=2,
    ),
}


def event_of(kind: type[Any]) -> st.SearchStrategy[Any]:
    annotations = kind.__annotations__
    return st.builds(kind, **{name: BY_TYPE[what] for name, what in annotations.items()})


KINDS = get_args(Event)
ANY_EVENT = st.one_of(*(event_of(kind) for kind in KINDS if kind is not RunCreated))


def write(directory: Path, *groups: list[Any]) -> None:
    with Ledger(directory) as ledger:
        for group in groups:
            ledger.append(*group)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=6)
def test_every_kind_of_event_reads_back_as_it_was_appended(
    kind: type[Any], data: st.DataObject
) -> None:
    event = data.draw(event_of(kind))
    with TemporaryDirectory() as folder:
        write(Path(folder), [CREATED], [event])
        assert [entry.event for entry in read(Path(folder))] == [CREATED, event]


@given(groups=st.lists(st.lists(ANY_EVENT, min_size=1, max_size=3), max_size=4))
@settings(max_examples=15)
def test_events_are_numbered_from_one_without_gaps_over_groups_and_writers(
    groups: list[list[Any]],
) -> None:
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        write(directory, [CREATED])
        for group in groups:
            write(directory, group)
        entries = read(directory)
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.event for entry in entries] == [CREATED, *(e for g in groups for e in g)]


def test_a_writer_is_told_what_an_earlier_one_left(tmp_path: Path) -> None:
    write(tmp_path, [CREATED, RoundStarted(round=1)])
    with Ledger(tmp_path) as ledger:
        assert [entry.event for entry in ledger.recovered] == [CREATED, RoundStarted(round=1)]
        (entry,) = ledger.append(RoundStarted(round=2))
    assert entry.n == 3


def test_a_last_line_cut_off_at_any_byte_is_passed_over_by_readers_and_dropped_by_writers(
    tmp_path: Path,
) -> None:
    write(tmp_path, [CREATED, RoundStarted(round=1)])
    path = tmp_path / NAME
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for cut in range(start, len(whole)):
        path.write_bytes(whole[:cut])
        assert [entry.event for entry in read(tmp_path)] == [CREATED]
        write(tmp_path, [RoundStarted(round=7)])
        assert [entry.event for entry in read(tmp_path)] == [CREATED, RoundStarted(round=7)]


FILLS = pytest.mark.parametrize("fill", [b"\0", b"\n"], ids=["zeros", "empty lines"])


@FILLS
@pytest.mark.parametrize("cut", [0, 1, 20])
def test_space_at_the_end_and_a_line_torn_by_it_are_passed_over(
    tmp_path: Path, fill: bytes, cut: int
) -> None:
    write(tmp_path, [CREATED], [RoundStarted(round=1)])
    path = tmp_path / NAME
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut] + fill * 500)
    left = 1 if cut > 1 or (cut == 1 and fill == b"\0") else 2
    assert len(read(tmp_path)) == left
    write(tmp_path, [RoundStarted(round=2)])
    assert len(read(tmp_path)) == left + 1


def test_a_run_that_was_killed_reads_as_far_as_its_last_append(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        ledger.append(CREATED)
        killed = (tmp_path / NAME).read_bytes()
    assert set(killed[len(killed.rstrip()) :]) == set(b"\n")  # a person can search and follow it
    assert len(read(tmp_path)) == 1
    (tmp_path / NAME).write_bytes(killed)
    assert len(read(tmp_path)) == 1
    write(tmp_path, [RoundStarted(round=1)])
    assert b"\n\n" not in (tmp_path / NAME).read_bytes()
    assert len(read(tmp_path)) == 2


@FILLS
def test_an_append_of_which_the_disk_kept_only_the_end_never_was(
    tmp_path: Path, fill: bytes
) -> None:
    write(tmp_path, [CREATED], [RoundStarted(round=n) for n in range(1, 9)])
    content = bytearray((tmp_path / NAME).read_bytes())
    second = content.index(b"\n") + 1
    content[second + 5 : second + 200] = fill * 195
    (tmp_path / NAME).write_bytes(content)
    assert [entry.event for entry in read(tmp_path)] == [CREATED]


@FILLS
def test_space_before_what_was_durable_is_a_broken_line(tmp_path: Path, fill: bytes) -> None:
    write(tmp_path, [CREATED], [RoundStarted(round=1)], [RoundStarted(round=2)], [CREATED])
    content = bytearray((tmp_path / NAME).read_bytes())
    second = content.index(b"\n") + 1
    content[second + 5 : second + 9] = fill * 4
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(LedgerError, match="line 2 does not read: part of it is missing"):
        read(tmp_path)


def test_a_ledger_whose_first_line_is_cut_off_is_empty(tmp_path: Path) -> None:
    write(tmp_path, [CREATED])
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-1])
    assert read(tmp_path) == []


@pytest.mark.parametrize(
    "broken",
    [b'{"n":2,"t":1', b"\xff\xfe", b"null", b'{"n":2,"t":1.0,"event":{"kind":"never_heard"}}'],
)
def test_a_broken_line_in_the_middle_is_named_by_its_number(tmp_path: Path, broken: bytes) -> None:
    write(tmp_path, [CREATED, RoundStarted(round=1), RoundStarted(round=2)])
    lines = (tmp_path / NAME).read_bytes().split(b"\n")
    (tmp_path / NAME).write_bytes(b"\n".join([lines[0], broken, *lines[2:]]))
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: line 2 does not read: "):
        read(tmp_path)
    with pytest.raises(LedgerError, match="line 2"), Ledger(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [NAME]  # and the lock is free again


def test_a_missing_line_is_named(tmp_path: Path) -> None:
    write(tmp_path, [CREATED, RoundStarted(round=1), RoundStarted(round=2)])
    lines = (tmp_path / NAME).read_bytes().splitlines(keepends=True)
    (tmp_path / NAME).write_bytes(lines[0] + lines[2])
    with pytest.raises(LedgerError, match="line 2 holds event 3; lines are missing"):
        read(tmp_path)


def test_a_newer_format_is_refused_before_its_events_are_looked_at(tmp_path: Path) -> None:
    first = {"kind": "run_created", "version": 2, "of": "another shape"}
    lines = [{"n": 1, "t": 0.0, "event": first}, {"n": 2, "event": {"kind": "of_the_future"}}]
    (tmp_path / NAME).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(LedgerError, match="format version 2; this simgate reads up to 1"):
        read(tmp_path)


@pytest.mark.parametrize("version", ["2", None, [2], 1.5])
def test_a_version_that_is_no_whole_number_does_not_read(tmp_path: Path, version: object) -> None:
    first = msgspec.to_builtins(CREATED) | {"version": version}
    (tmp_path / NAME).write_text(json.dumps({"n": 1, "t": 0.0, "event": first}) + "\n")
    with pytest.raises(LedgerError, match="line 1 does not read"):
        read(tmp_path)


def test_a_ledger_starts_with_run_created(tmp_path: Path) -> None:
    write(tmp_path, [RoundStarted(round=1)])
    with pytest.raises(LedgerError, match="starts with 'round_started'"):
        read(tmp_path)


def test_a_directory_without_a_ledger_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(NoLedgerError, match="holds no run"):
        read(tmp_path)
    with pytest.raises(NoLedgerError, match="holds no run"):
        read(tmp_path / "missing")


def test_a_ledger_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"writer\.lock: cannot be written: No such file"):
        Ledger(tmp_path / "missing").__enter__()
    (tmp_path / NAME).mkdir()
    with pytest.raises(LedgerError, match=r"ledger\.jsonl: cannot be written: Is a directory"):
        Ledger(tmp_path).__enter__()


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from campaign.events import JobEnded, RoundStarted, RunCreated
from campaign.ledger import SPACE, Ledger, LedgerError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with Ledger(Path(sys.argv[1])) as ledger:
    ledger.append(RunCreated(version=1, simgate="", name="", mode="", folder="", config={}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (SPACE, resource.RLIM_INFINITY))
    long = JobEnded(job=1, outcome="failed", reason="x" * 2 * SPACE)
    for attempt in range(2):
        try:
            ledger.append(RoundStarted(round=1), long)
        except LedgerError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    left = ledger.path.read_bytes()
    print(left.count(b"\\n"), left[-1:])
"""


def test_a_full_disk_is_named_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path], capture_output=True, text=True, check=False
    )
    said = f"{tmp_path / NAME}: cannot be written: File too large"
    assert ran.stdout.splitlines() == [said, said, "1 b'\\n'"], ran.stderr
    assert [type(entry.event) for entry in read(tmp_path)] == [RunCreated]


def test_a_closed_ledger_takes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    with pytest.raises(LedgerError, match="is not open"):
        ledger.append(CREATED)
    with ledger:
        ledger.append(CREATED)
    with pytest.raises(LedgerError, match="is closed"):
        ledger.append(JobEnded(job=1, outcome="done", reason=""))


UNTRUSTED = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**128), 2**128)
    | st.integers(2**1023, 2**1024 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.sampled_from(["$float", "$plain"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$float", "$plain", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(value=UNTRUSTED)
def test_what_an_agent_answers_comes_back_from_the_ledger_as_it_was(value: Any) -> None:
    through = msgspec.json.decode(msgspec.json.encode(pack(value)))
    assert repr(unpack(through)) == repr(value)
    assert through == pack(value)


def test_what_json_cannot_hold_becomes_text_and_never_stops_the_ledger(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    odd = [10**5000, "\ud800", {"\udcff": 1}, {1: 2}, {1, 2}, b"x", object(), deep, float("nan")]
    packed = [pack(one) for one in odd]
    answered = events.Answered(round=1, generation=1, candidates=packed)
    write(tmp_path, [CREATED], [answered])
    assert read(tmp_path)[1].event == answered
    assert packed[0] == "(an integer of 16610 bits)"
    assert packed[1] == "\\ud800"
