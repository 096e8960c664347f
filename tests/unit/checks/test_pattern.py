"""Patterns: Python's meaning, linear time, refusals by name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from checks.pattern import PatternError, like, regex


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^steel$", "steel\n"), (r"^steel$", "steel\n\n"), (r"(?m)^b$", "a\nb\nc"),
        (r"^\d+$", "\u0664\u0662"), (r"^\w+$", "stra\u00dfe"), (r"a\sb", "a\u00a0b"),
        (r"^[\d.]+$", "\u0664.\u0662"), (r"[^\w]", "\u00e4"), (r"^\S+$", "a\u2003b"),
        (r"a\Z", "a\n"), (r"[$]", "$"), (r"\$", "$"), (r"[]$]x", "$x"), (r"[^]$]x", "$x"),
        (r"a$|b", "a\n"), (r"(?i)STEEL", "steel"), (r"^$", ""), (r"^$", "\n"),
    ],
)  # fmt: skip
def test_a_pattern_finds_what_pythons_finds(pattern: str, text: str) -> None:
    assert regex(pattern)(text) is (re.search(pattern, text) is not None)


@pytest.mark.parametrize("letters", [50_000, 500_000])
def test_a_pattern_that_backtracking_never_ends_is_answered(letters: int) -> None:
    assert regex("(a+)+$")("a" * letters + "b") is False
    assert like("%a%a%a%a%a%a%a%a%b")("a" * letters) is False


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        ("(?=a)b", "look-around"), ("a(?!b)", "look-around"), ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"), (r"(a)\1", "back-reference"),
        ("(?P<n>a)(?P=n)", "back-reference"), ("(?>a)b", "atomic group"),
        ("a++", "possessive"), ("a(?#why)", "comment"), ("(a)?(?(1)b|c)", "conditional"),
        ("a{2000}", "more than 1000"), ("[unclosed", "missing ]"), ("(", "missing )"),
    ],
)  # fmt: skip
def test_what_the_matcher_cannot_do_is_refused_by_name(pattern: str, construct: str) -> None:
    with pytest.raises(PatternError, match=re.escape(construct)):
        regex(pattern)


def test_a_pattern_is_no_longer_than_it_may_be() -> None:
    with pytest.raises(PatternError, match="at most 2000"):
        regex("a" * 2001)


def test_no_text_matches_nothing_and_half_surrogates_are_a_character() -> None:
    assert regex("")(None) is False
    assert like("_")("\ud800") is True


def matches_slowly(pattern: str, text: str) -> bool:
    """LIKE as it is defined: by all ways to split."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(matches_slowly(pattern[1:], text[i:]) for i in range(len(text) + 1))
    return bool(text) and pattern[0] in ("_", text[0]) and matches_slowly(pattern[1:], text[1:])


@given(st.text(alphabet="ab%_\n\\.", max_size=6), st.text(alphabet="ab\n\\.", max_size=6))
def test_like_is_what_its_definition_says(pattern: str, text: str) -> None:
    assert like(pattern)(text) is matches_slowly(pattern, text)
