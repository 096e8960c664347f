"""Candidates from files: what each form reads as, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from campaign.problems import ConfigError
from campaign.records import read_records


def read(directory: Path, name: str, text: str, *texts: str) -> list[object]:
    (directory / name).write_text(text, encoding="utf-8")
    return read_records(directory / name, texts=texts)


ONE = {"x": 1, "y": 2.5}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[{"x": 1, "y": 2.5}]'),
        ("a.json", '{"x": 1, "y": 2.5}'),
        ("a.json", '{"rationale": "so", "candidates": [{"x": 1, "y": 2.5}]}'),
        ("a.jsonl", '\n{"x": 1, "y": 2.5}\n\n'),
        ("a.csv", "x,y\n1,2.5\n"),
        ("a.csv", '\ufeffx, y\r\n"1",2.5\r\n\r\n'),
        ("a.txt", '[{"x": 1, "y": 2.5}]'),
        ("a.txt", '{"x": 1,\n "y": 2.5}'),
        ("a", '{"x": 1, "y": 2.5}\n'),
        ("a.dat", "x,y\n1,2.5"),
    ],
)
def test_every_form_reads_as_the_same_records(tmp_path: Path, name: str, text: str) -> None:
    assert read(tmp_path, name, text) == [ONE]


def test_lines_that_are_objects_are_records_whatever_the_name(tmp_path: Path) -> None:
    assert read(tmp_path, "a.txt", '{"x": 1}\n{"x": 2}\n') == [{"x": 1}, {"x": 2}]


def test_a_cell_is_what_yaml_would_read_and_nothing_is_null(tmp_path: Path) -> None:
    text = "a,b,c,d,e,f\n1e-3,true,,no,007,NaN\n"
    (record,) = read(tmp_path, "a.csv", text)
    assert isinstance(record, dict)
    assert math.isnan(record.pop("f"))
    assert record == {"a": 1e-3, "b": True, "c": None, "d": "no", "e": "007"}


def test_a_column_of_text_stays_text(tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", "x,solver\n1,2\n", "solver") == [{"x": 1, "solver": "2"}]


def test_what_a_ledger_writes_for_no_number_is_read_back(tmp_path: Path) -> None:
    ((record),) = read(tmp_path, "a.json", '{"x": {"$float": "inf"}}')
    assert record == {"x": math.inf}


REFUSED = [
    ("a.json", "", "is empty; give at least one record"),
    ("a.json", "[]", "has no record; give at least one"),
    ("a.json", "[1,\n ]", "line 2: not JSON at column 2: Expecting value"),
    ("a.json", "3", "holds 3 (a number); give an object, a list of them, or one a line"),
    ("a.json", '{"x": 1, "x": 2}', "the key 'x' is given twice in one object; keep one"),
    ("a.json", "[" * 100_000, "is nested too deeply; a record is an object of values"),
    ("a.jsonl", '{"x": 1}\n{"x"}\n{}\n{', "line 2: not JSON: "),
    ("a.csv", "x,x\n1,2", "line 1: the column 'x' twice; the first line names each column once"),
    ("a.csv", "x,\n1,2", "line 1: a column without a name; the first line names each column once"),
    ("a.csv", "x,y\n1\n1,2\n1,2,3", "line 2: 1 cells; the first line names 2 columns"),
    ("a.csv", 'x\n"1', "not CSV: unexpected end of data"),
]


@pytest.mark.parametrize(("name", "text", "said"), REFUSED, ids=[said[:40] for *_, said in REFUSED])
def test_what_cannot_be_read_is_refused_by_name(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, name, text)
    assert said in str(error.value)


def test_every_broken_line_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, "a.jsonl", '{"x": 1}\n{"x"}\n{}\n{')
    assert [one.line for one in error.value.problems] == [2, 4]
    with pytest.raises(ConfigError) as error:
        read(tmp_path, "a.csv", "x,y\n1\n1,2\n1,2,3")
    assert [one.line for one in error.value.problems] == [2, 4]


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_records(tmp_path / "a.json")
    (tmp_path / "b.json").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="byte 0 is not UTF-8"):
        read_records(tmp_path / "b.json")
