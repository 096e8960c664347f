"""Candidates read from a file: JSON, JSON lines or CSV, every problem at once."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NoReturn, TypeAlias

from campaign.judging import CANDIDATES
from campaign.packing import unpack
from campaign.problems import ConfigError, Problem, observed
from campaign.yamlfile import plain_scalar

Format: TypeAlias = Literal["json", "jsonl", "csv"]

_BY_SUFFIX: Mapping[str, Format] = {
    ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv",
}  # fmt: skip


def read_records(
    path: Path, *, form: Format | None = None, texts: Sequence[str] = ()
) -> list[object]:
    """The records of a file, or of standard input for ``-``.

    Without ``form`` the name's suffix tells, or the first character. In CSV an empty cell is
    null, and a cell is a number or a boolean where YAML would read one, but in the columns
    ``texts`` it stays text.

    Raises ``ConfigError`` with every problem of the file.
    """
    name = "standard input" if str(path) == "-" else str(path)
    text = _text(path, name)
    if not text.strip():
        _refuse(name, "is empty; give at least one record")
    form = form or _BY_SUFFIX.get(path.suffix.lower()) or _guessed(text)
    if form == "csv":
        records = _csv(text, name, frozenset(texts))
    else:
        records = _json_lines(text, name) if form == "jsonl" else _json(text, name)
    if not records:
        _refuse(name, "has no record; give at least one")
    return [unpack(record) for record in records]


def _text(path: Path, name: str) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        _refuse(name, f"cannot be read: {error.strerror}; give a file of records, or -")
    except UnicodeDecodeError as error:
        _refuse(name, f"byte {error.start} is not UTF-8; save the file as UTF-8")


def _guessed(text: str) -> Format:
    start = text.lstrip()[:1]
    if start == "[":
        return "json"
    if start != "{":
        return "csv"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "jsonl"
    return "json"


def _json(text: str, name: str) -> list[object]:
    try:
        data = json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        _refuse(name, "is nested too deeply; a record is an object of values")
    except json.JSONDecodeError as error:
        _refuse(name, f"not JSON at column {error.colno}: {error.msg}", error.lineno)
    except ValueError as error:
        _refuse(name, str(error))
    if isinstance(data, dict) and isinstance(data.get(CANDIDATES), list):
        data = data[CANDIDATES]
    if isinstance(data, dict):
        return [data]
    if not isinstance(data, list):
        _refuse(name, f"holds {observed(data)}; give an object, a list of them, or one a line")
    return list(data)


def _json_lines(text: str, name: str) -> list[object]:
    records: list[object] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line, object_pairs_hook=_once))
        except RecursionError:
            problems.append(Problem("", "is nested too deeply", number))
        except ValueError as error:
            problems.append(Problem("", f"not JSON: {error}; give one object a line", number))
    if problems:
        raise ConfigError(problems, name)
    return records


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; a key that is given twice would lose a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} is given twice in one object; keep one")
    return found


def _csv(text: str, name: str, texts: frozenset[str]) -> list[object]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    records: list[object] = []
    problems: list[Problem] = []
    try:
        header = [cell.strip() for cell in next(rows)]
        twice = sorted({cell for cell in header if header.count(cell) > 1})
        if twice or "" in header:
            found = f"the column {twice[0]!r} twice" if twice else "a column without a name"
            _refuse(name, f"{found}; the first line names each column once", 1)
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                said = f"{len(row)} cells; the first line names {len(header)} columns"
                problems.append(Problem("", said, rows.line_num))
                continue
            records.append(
                {key: _cell(cell, key in texts) for key, cell in zip(header, row, strict=True)}
            )
    except csv.Error as error:
        problems.append(Problem("", f"not CSV: {error}", rows.line_num))
    if problems:
        raise ConfigError(problems, name)
    return records


def _cell(cell: str, is_text: bool) -> object:
    if is_text:
        return cell
    word = cell.strip()
    if word.lower() in ("nan", "inf", "-inf", "+inf"):  # as NumPy and pandas write them
        return float(word)
    value = plain_scalar(word)
    return cell if isinstance(value, str) else value


def _refuse(name: str, message: str, line: int | None = None) -> NoReturn:
    raise ConfigError([Problem("", message, line)], name) from None
