"""Every example of the reference of conditions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from checks.declared import Fields
from checks.expression import Condition, ConditionError
from checks.grammar import DEEPEST, LONGEST

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "expressions.md"
ANSWERS = {True: "true", False: "false", None: "cannot be told"}
FIELDS = Fields.of(
    {
        "cfl": "number", "cells": "number", "density": "number", "material": "text",
        "gpu": "boolean", "low": "number", "layers": "list", "label": "text",
    }
)  # fmt: skip


def rows(columns: int) -> list[tuple[str, ...]]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == columns:
            found.append(tuple(cells))
    return found


def code(cell: str) -> str:
    """What stands in a cell's code span, whose fence may be longer than one backtick."""
    fence = re.match("`+", cell)
    assert fence is not None
    return cell.removeprefix(fence[0]).removesuffix(fence[0]).strip()


@pytest.mark.parametrize(("condition", "record", "answer"), rows(3))
def test_an_example_is_answered_as_the_page_says(condition: str, record: str, answer: str) -> None:
    compiled = Condition.of(code(condition))
    assert ANSWERS[compiled.holds(json.loads(code(record)))] == answer


@pytest.mark.parametrize(("condition", "reason"), rows(2))
def test_what_the_page_says_is_refused_is_refused_so(condition: str, reason: str) -> None:
    with pytest.raises(ConditionError, match=re.escape(reason)):
        Condition.of(code(condition), FIELDS)


def test_the_page_has_its_tables_and_the_limits() -> None:
    assert len(rows(3)) > 45
    assert len(rows(2)) > 12
    page = PAGE.read_text(encoding="utf-8")
    assert f"{LONGEST:,} characters" in page
    assert f"{DEEPEST} levels" in page
