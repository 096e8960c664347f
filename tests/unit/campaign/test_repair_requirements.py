"""The page that says which test shows which repair requirement, held against the tests."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).parents[2]
(PAGE,) = (TESTS.parent / "docs" / "adr").glob("*-what-the-repair-requirements-come-to.md")
ROW = re.compile(r"\| R(\d+) \| .+ \| (.+) \|")


def rows() -> dict[int, str]:
    """What stands in the last column, by the number of the requirement."""
    found = [ROW.fullmatch(line) for line in PAGE.read_text().splitlines()]
    return {int(row[1]): row[2] for row in found if row is not None}


def named_tests() -> set[str]:
    text = "\n".join(path.read_text() for path in TESTS.rglob("test_*.py"))
    return set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))


def test_every_requirement_is_on_the_page_once_and_has_a_test() -> None:
    assert list(rows()) == list(range(1, 43))
    assert [number for number, said in rows().items() if "`test_" not in said] == []


def test_every_test_the_page_names_is_there() -> None:
    named = {name for said in rows().values() for name in re.findall(r"`(test_[\w*]+)`", said)}
    known = named_tests()
    assert [one for one in sorted(named) if not any(fnmatch(have, one) for have in known)] == []


def test_every_test_that_is_named_after_a_requirement_is_on_the_page() -> None:
    said = rows()
    for name in sorted(named_tests()):
        for number in map(int, re.findall(r"_r(\d\d)(?=_)", name)):
            listed = re.findall(r"`(test_[\w*]+)`", said[number])
            assert any(fnmatch(name, one) for one in listed), (name, number)
