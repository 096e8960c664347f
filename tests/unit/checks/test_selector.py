"""Selectors: what they read, and what they refuse."""

from __future__ import annotations

import re

import pytest

from checks.declared import Fields
from checks.selector import Unselected, selector

RECORD = {"a": 1, "b.c": 2, "items": [1, None], "text": "x"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("a", 1),
        ("b.c", 2),
        ("items", [1, None]),
        ("items[*]", [1, None]),
        (["a", "text"], [1, "x"]),
    ],
)
def test_a_selector_reads_what_it_names(field: object, value: object) -> None:
    assert selector(field, None).of(RECORD) == value


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("z", "field 'z' is missing"),
        ("z[*]", "field 'z' is missing"),
        ("text[*]", "text[*]: needs a list at 'text', found text, 'x'"),
        (["a", "y", "z"], "field 'y' is missing from the record; field 'z' is missing"),
        ("items[0]", "field 'items[0]' is missing"),
        ("items[*][*]", "field 'items[*]' is missing"),
    ],
)
def test_what_a_record_does_not_have_is_named(field: object, reason: str) -> None:
    with pytest.raises(Unselected, match=re.escape(reason)):
        selector(field, None).of(RECORD)


@pytest.mark.parametrize(
    ("field", "refusal"),
    [
        ("", "must not be empty"),
        ("  ", "must not be empty"),
        ([], "must not be empty"),
        (7, "7; it must be a string or a list of strings"),
        ({"name": "a"}, "it must be a string or a list of strings"),
        (["a", 2], "2 in a list"),
        (["a[*]", "b"], "'a[*]' in a list; members are plain names"),
        (["a", "a"], "'a' twice"),
        ("densty", "unknown field 'densty'; did you mean density?"),
        ("a.b", "never a path"),
        ("items[0]", "unknown field 'items[0]'"),
        ("density[*]", "density is a number; [*] needs a list"),
    ],
)
def test_a_selector_that_cannot_be_meant_is_refused(field: object, refusal: str) -> None:
    fields = Fields.of({"a": "any", "b": "any", "density": "number", "items": "list"})
    with pytest.raises(ValueError, match=re.escape(refusal)):
        selector(field, fields)
