"""YAML read by one parser means the same as read by the other, and bounds hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from campaign import yamlfile
from campaign.problems import ConfigError
from campaign.yamlfile import plain_scalar, read_text

CASES = Path(__file__).parents[2] / "cases"


def outcome(text: str) -> object:
    """What reading gives: data, lines and problems, or the lines of the refusal."""
    try:
        return read_text(text)
    except ConfigError as error:
        syntax = [one for one in error.problems if one.message.startswith("not YAML")]
        return [] if syntax else error.problems


@pytest.mark.parametrize("path", sorted(CASES.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_both_parsers_of_pyyaml_give_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = path.read_text(encoding="utf-8")
    first = outcome(text)
    monkeypatch.setattr(yamlfile, "_LOADER", yaml.SafeLoader)
    assert repr(outcome(text)) == repr(first)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("1e-3", 1e-3), (".5", 0.5), ("1e5", 1e5), ("5.", 5.0), ("-1.5E+3", -1500.0)),
        *(("0", 0), ("-7", -7), ("+7", 7), ("true", True), ("False", False), ("~", None)),
        *((text, text) for text in ("no", "on", "yes", "off", "y", "tRue", "none", "None")),
        *((text, text) for text in ("010", "-010", "0x1F", "0o17", "0b1", "1_000", "1:30")),
        *((text, text) for text in ("2026-01-01", "00:05:00", "1e", "e5", ".", "-", "1.2.3", "=")),
        *((text, text) for text in ("१२", "1" * 301, "inf", "nan", "Infinity")),
        (".inf", float("inf")),
        ("1e999", float("inf")),
    ],
)
def test_a_word_without_quotes_means(text: str, expected: object) -> None:
    found = plain_scalar(text)
    assert (type(found), found) == (type(expected), expected)
    assert read_text(f"key: '{text}'").data == {"key": text}


def test_lines_are_those_of_the_keys_and_items() -> None:
    document = read_text("a: 1\nb:\n  - x\n  - {c: 2,\n     d: 3}\n'e.f':\n  1\n")
    assert dict(document.lines) == {
        (): 1,
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 4,
        ("b", 1, "c"): 4,
        ("b", 1, "d"): 5,
        ("e.f",): 6,
    }


def test_a_value_that_cannot_be_read_is_told_and_left_out() -> None:
    document = read_text("a: !!python/none 1\nb: [1, !x {}]\n")
    assert document.data == {"a": None, "b": [1, None]}
    assert document.unread == {("a",), ("b", 1)}
    assert [str(problem).split(";")[0] for problem in document.problems] == [
        "line 1, a: the tag !!python/none",
        "line 2, b[1]: the tag !x",
    ]


def test_what_an_anchor_holds_is_wrong_once() -> None:
    document = read_text("a: &a {x: 1, x: 2}\nb: *a\nc: {<<: *a}\n")
    assert [str(problem) for problem in document.problems] == [
        "line 1, a.x: given twice, on lines 1 and 1; keep one"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 50_000,
        "- " * 100_000,
        "? " * 50_000,
        "[" + "a," * 200_000 + "]",
        "&a " * 10_000,
        "!x" * 100_000,
        "a: " + "'" * 500_001,
        "- &a [" + "x," * 999 + "]\n" + "- *a\n" * 1000,
    ],
    ids=lambda text: text[:6],
)
def test_a_hostile_text_ends_soon(text: str) -> None:
    with pytest.raises(ConfigError):
        read_text(text)
