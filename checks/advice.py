"""What to write instead, at a place where a condition does not parse."""

from __future__ import annotations

import re

from checks.tree import KEYWORDS

# What other languages write, by the text at the place of the fault.
_INSTEAD = (
    ("=", "equality is =="),
    ("<>", "inequality is !="),
    (">", "inequality is !="),
    ("&", "conjunction is `and`"),
    ("|", "disjunction is `or`"),
    ("!", "negation is `not`"),
    ("%", "there is no remainder; use the rule multiple_of"),
    ("[", "items of a list cannot be picked; use IN or CONTAINS"),
    ("#", "there are no comments"),
    ("?", "there is no conditional; use `and` and `or`"),
    ("'", "the quote is never closed"),
    ('"', "the quote is never closed"),
)


def advice(before: str, rest: str) -> str:
    """What would be right between ``before`` and ``rest``; ``""`` when nobody can tell."""
    if re.search(r"\b(?i:in)\Z", before):
        return "IN takes a list, as in IN ['a', 'b']"
    if re.search(r"(?i)\bbetween\b[^,]*\Z", before) and rest.startswith(","):
        return "the ends are joined by AND"
    if before.endswith("<") and rest.startswith(">"):
        return "inequality is !="
    word = re.match(r"\w+", rest)
    if word and word[0].lower() in KEYWORDS:
        return f"a field called {word[0]} is written `{word[0]}`"
    if (word or rest[0] in "'\"") and re.search(r"[\w'\"]\Z", before):
        return "an operator is missing before it, or quotes around the text"
    return next((better for sign, better in _INSTEAD if rest.startswith(sign)), "")
