"""Generates the tables of ``docs/reference/rules.md`` from the types of rules there are.

python -m checks.manual

A table stands between a comment that names it and ``<!-- end -->``: ``types`` is that of all
types, the name of a type that of its parameters. The rest of the page is written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from checks.ruletype import Param, RuleType
from checks.world import BUILT_IN, GATE

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "rules.md"
MADE = re.compile(r"(<!-- made by python -m checks\.manual: (\w+) -->\n).*?(<!-- end -->)", re.S)

SAYS: Mapping[str, str] = {
    "not_null": "The value is there and not empty.",
    "no_null_fields": "No field of the record is null.",
    "item_count": "A list has so many items.",
    "word_count_between": "A text has so many words.",
    "word_count_ratio": "No text of a list is much longer than another.",
    "accepted_values": "The value is one of a list.",
    "matches_regex": "A pattern is found in the text.",
    "match_like_pattern": "The whole text is of a LIKE pattern.",
    "no_forbidden_phrases": "The text contains none of some phrases.",
    "contains_terms_from": "The text contains some of a list of terms.",
    "expression": "A condition over several fields is true.",
    "value_between": "A number lies between bounds.",
    "is_finite": "The value is a number, and neither infinite nor NaN.",
    "multiple_of": "A number is a whole multiple of a step.",
    "distinct": "No earlier candidate of the batch has the same values.",
    "distinct_from_history": "No candidate of an earlier round has the same values.",
    "min_separation": "No earlier candidate of the batch is too near.",
    "llm_judge": "A language model says that the value satisfies a rule in plain words.",
}
"""What each type checks."""

PARAMS: Mapping[str, Mapping[str, str]] = {
    "no_null_fields": {"exclude": "Fields that may be null."},
    "item_count": {
        "equals": "The number of items; excludes `min` and `max`.",
        "min": "The least number, inclusive.",
        "max": "The greatest number, inclusive.",
    },
    "word_count_between": {
        "min": "The least number, inclusive. At least one of the two is given.",
        "max": "The greatest number, inclusive.",
    },
    "word_count_ratio": {
        "max_ratio": "The most words of an item, divided by the fewest; at most this."
    },
    "accepted_values": {"values": "What is accepted."},
    "matches_regex": {
        "pattern": "A regular expression, at most 2,000 characters.",
        "negate": "Whether the pattern must not be found.",
    },
    "match_like_pattern": {
        "like_pattern": "`%` is any run of characters, `_` is one, everything else is itself.",
        "negate": "Whether the text must not be of the pattern.",
    },
    "no_forbidden_phrases": {
        "phrases": "What must not occur.",
        "case_sensitive": "Whether capitals matter.",
    },
    "contains_terms_from": {
        "terms": "What is looked for.",
        "min_matches": "How many of the terms must occur.",
    },
    "expression": {"condition": "See [conditions](expressions.md)."},
    "value_between": {
        "min": "The lower end. At least one of the two ends is given.",
        "max": "The upper end.",
        "exclusive_min": "Whether `min` itself is out.",
        "exclusive_max": "Whether `max` itself is out.",
    },
    "multiple_of": {
        "step": "What the value, less the offset, is divided by.",
        "offset": "Where counting begins.",
        "tolerance": "How far from a whole number the quotient may be.",
    },
    "distinct": {"decimals": "Numbers that round to the same are the same."},
    "distinct_from_history": {"decimals": "Numbers that round to the same are the same."},
    "min_separation": {
        "distance": "The least distance in the unit cube.",
        "bounds": "What is 0 and what is 1 of each field; by default the parameter's `min` and "
        "`max`.",
    },
    "llm_judge": {
        "rule": "What the value must satisfy, in plain words.",
        "votes": "How often the model is asked.",
        "model": "The model that is asked; by default the judge's.",
        "context": "References `name.field`: what the model is given to ground its answer on, see "
        "below.",
    },
}
"""What each parameter of a type means."""


def rendered(page: str) -> str:
    """The page with its tables made anew."""
    return MADE.sub(lambda found: found[1] + "\n".join(table(found[2])) + "\n" + found[3], page)


def table(name: str) -> Iterator[str]:
    """The lines between the comment of this name and its end."""
    yield ""
    yield from _types() if name == "types" else _params(BUILT_IN[name])
    yield ""


def _types() -> Iterator[str]:
    yield "| type | checks | `field` |"
    yield "|---|---|---|"
    for kind in BUILT_IN.values():
        yield f"| [`{kind.name}`](#{kind.name}) | {SAYS[kind.name]} | {selectors(kind)} |"


def _params(kind: RuleType) -> Iterator[str]:
    yield f"{SAYS[kind.name]} Takes {selectors(kind)}."
    yield ""
    if not kind.params:
        yield f"It has no parameter but `{GATE}`."
        return
    yield "| parameter | type | default | meaning |"
    yield "|---|---|---|---|"
    for name, param in kind.params.items():
        says = PARAMS[kind.name][name]
        yield f"| `{name}` | {param.read.__doc__} | {_default(param)} | {says} |"


def selectors(kind: RuleType) -> str:
    """What a rule of this type may be pointed at, in words."""
    if kind.whole_record:
        return "no field"
    taken = ["`name`"]
    if kind.each:
        taken.append("`name[*]`")
    if kind.together:
        taken.append("`[a, b]`")
    return f"{', '.join(taken[:-1])} or {taken[-1]}"


def _default(param: Param) -> str:
    if param.required:
        return "required"
    if param.default is None:
        return "none"
    return f"`{json.dumps(param.default)}`"


def main() -> None:
    """Write the page into the checkout this module lies in."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
