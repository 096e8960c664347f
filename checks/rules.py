"""The types of rules that read text, lists and whole records: a name -> its type.

Where a value is text, a number or boolean is the text Python writes for it; ``null`` has no text:
no words, and nothing is found in it.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from checks.pattern import Matcher, PatternError, like, regex
from checks.ruletype import (
    Param,
    Params,
    RuleType,
    Test,
    at_least,
    flag,
    items,
    names,
    phrases,
    text,
    whole,
)
from checks.values import clipped, is_list, is_number, kind_of, same, shown, text_of, texts_in

if TYPE_CHECKING:
    from checks.ruletype import Flags

_LISTED = 10  # of many things in one detail


def _not_null(_: Params) -> Test:
    def passes(value: object) -> bool:
        if value is None:
            return False
        return bool(value) if isinstance(value, str | list | tuple | Mapping) else True

    return Test(passes, lambda v: "null" if v is None else f"an empty {kind_of(v).split()[-1]}")


def _no_null_fields(params: Params) -> Test:
    waived = frozenset(params["exclude"])

    def read(record: Mapping[str, object]) -> list[str]:
        return [name for name in record if name not in waived and not str(name).startswith("_")]

    def passes(record: Mapping[str, object]) -> bool:
        names = read(record)
        return bool(names) and not any(record[name] is None for name in names)

    def detail(record: Mapping[str, object]) -> str:
        if not (names := read(record)):
            return "the record has no fields to check"
        nulls = sorted(str(name) for name in names if record[name] is None)
        return f"null: {_several([clipped(name, 60) for name in nulls])}"

    return Test(passes, detail)


def _bounds(params: Params) -> tuple[float, float]:
    """The inclusive ends of a count. Raises ``ValueError`` where none is left between them."""
    equals = params.get("equals")
    low, high = params["min"], params["max"]
    if equals is None and low is None and high is None:
        wanted = "equals, min or max" if "equals" in params else "min or max"
        raise ValueError(f"no bound is given; give {wanted}")
    if equals is not None and (low is not None or high is not None):
        other = "min" if low is not None else "max"
        raise ValueError(f"equals and {other} are both given; give equals alone, or min and max")
    if equals is not None:
        low = high = equals
    ends = -math.inf if low is None else low, math.inf if high is None else high
    if ends[0] > ends[1]:
        raise ValueError(f"min {low} is above max {high}; nothing can pass")
    if ends[1] != math.inf and ends[0] > math.floor(ends[1]):
        raise ValueError(f"no count lies from {shown(ends[0])} to {shown(ends[1])}")
    return ends


def _expected(count: int, low: float, high: float) -> str:
    if low == high:
        return f"expected exactly {shown(low)}"
    return f"expected at least {shown(low)}" if count < low else f"expected at most {shown(high)}"


def _item_count(params: Params) -> Test:
    low, high = _bounds(params)

    def detail(value: object) -> str:
        if not is_list(value):
            return f"expected a list, found {kind_of(value)}, {shown(value)}"
        return f"{_counted(len(value), 'item')}, {_expected(len(value), low, high)}"

    return Test(lambda v: is_list(v) and low <= len(v) <= high, detail)


def _words(value: object) -> int | None:
    """Words between white space; ``None`` for a list or mapping, which is no text."""
    if value is None:
        return 0
    if not isinstance(value, str | bool | int | float):
        return None
    return len(value.split()) if isinstance(value, str) else 1


def _word_count_between(params: Params) -> Test:
    low, high = _bounds(params)

    def passes(value: object) -> bool:
        if type(value) is str:
            return low <= len(value.split()) <= high
        count = _words(value)
        return count is not None and low <= count <= high

    def texts(values: Sequence[str]) -> Flags:
        from checks.words import word_counts

        counts = word_counts(values)
        return (counts >= low) & (counts <= high)

    def detail(value: object) -> str:
        count = _words(value)
        if count is None:
            return f"expected text, found {kind_of(value)}, {shown(value)}"
        found = "null, " if value is None else ""
        return f"{found}{_counted(count, 'word')}, {_expected(count, low, high)}"

    return Test(passes, detail, texts=texts)


def _word_count_ratio(params: Params) -> Test:
    most = params["max_ratio"]

    def judged(value: object) -> str:
        if not is_list(value):
            return f"expected a list, found {kind_of(value)}, {shown(value)}"
        if not value:
            return "no items to compare"
        counts = [_words(item) for item in value]
        if None in counts:
            at = counts.index(None)
            return f"item {at}: expected text, found {kind_of(value[at])}"
        known = [count for count in counts if count is not None]
        if 0 in known:
            empty = [at for at, count in enumerate(known) if not count]
            return f"items without words at [{_several(list(map(str, empty)))}]"
        ratio = max(known) / min(known)
        if ratio <= most:
            return ""
        return f"word counts {min(known)} to {max(known)}, ratio {ratio:.2f} exceeds {shown(most)}"

    return Test(lambda value: not judged(value), judged)


def _accepted_values(params: Params) -> Test:
    accepted = params["values"]
    texts = frozenset(item for item in accepted if isinstance(item, str))

    def passes(value: object) -> bool:
        if isinstance(value, str):
            return value in texts
        return any(same(value, item) for item in accepted)

    listed = _several([shown(item, 40) for item in accepted])
    return Test(passes, lambda v: f"{shown(v)} is not one of {listed}")


def _matching(matches: Matcher, negate: bool, wanted: str) -> Test:
    verb = "matches forbidden" if negate else "does not match"

    def detail(value: object) -> str:
        found = text_of(value)
        return f"{shown(value if found is None else found)} {verb} {wanted}"

    return Test(lambda value: matches(text_of(value)) is not negate, detail)


def _matches_regex(params: Params) -> Test:
    try:
        matches = regex(params["pattern"])
    except PatternError as fault:
        raise ValueError(str(fault)) from None
    return _matching(matches, bool(params["negate"]), f"pattern {shown(params['pattern'])}")


def _match_like_pattern(params: Params) -> Test:
    pattern = text_of(params["like_pattern"]) or ""
    return _matching(like(pattern), bool(params["negate"]), f"LIKE {shown(pattern)}")


def _folded(found: str) -> str:
    if found.isascii():
        return found.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", found).casefold())


def _composed(found: str) -> str:
    return found if found.isascii() else unicodedata.normalize("NFC", found)


def _no_forbidden_phrases(params: Params) -> Test:
    fold = _composed if params["case_sensitive"] else _folded
    sought = [(phrase, fold(phrase)) for phrase in params["phrases"]]

    def found(value: object) -> list[str]:
        texts = [fold(part) for part in texts_in(value)]
        return [phrase for phrase, key in sought if any(key in part for part in texts)]

    def detail(value: object) -> str:
        return f"contains {_several([shown(phrase, 60) for phrase in found(value)])}"

    return Test(lambda value: not found(value), detail)


def _contains_terms_from(params: Params) -> Test:
    terms, least = params["terms"], params["min_matches"]
    if least > len(terms):
        raise ValueError(f"min_matches {least} is above the number of terms, {len(terms)}")
    sought = [_folded(term) for term in terms]

    def count(value: object) -> int:
        texts = [_folded(part) for part in texts_in(value)]
        return sum(any(term in part for part in texts) for term in sought)

    def detail(value: object) -> str:
        listed = _several([shown(term, 40) for term in terms])
        return f"{count(value)} of the terms found, expected at least {least} of {listed}"

    return Test(lambda value: count(value) >= least, detail)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _several(parts: list[str]) -> str:
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return ", ".join(parts[:_LISTED]) + more


def _like_pattern(value: object) -> object:
    """text or number"""
    return value if is_number(value) else text(value)


_COUNT = {"min": Param(at_least(0)), "max": Param(at_least(0))}
_NEGATE = Param(flag, default=False)

TYPES = {
    kind.name: kind
    for kind in (
        RuleType("not_null", _not_null),
        RuleType(
            "no_null_fields", _no_null_fields, {"exclude": Param(names, default=())},
            whole_record=True,
        ),
        RuleType(
            "item_count", _item_count, {"equals": Param(at_least(0)), **_COUNT}, of_lists=True
        ),
        RuleType("word_count_between", _word_count_between, _COUNT),
        RuleType(
            "word_count_ratio", _word_count_ratio,
            {"max_ratio": Param(at_least(1), required=True)},
            together=True, of_lists=True,
        ),
        RuleType(
            "accepted_values", _accepted_values, {"values": Param(items, required=True)},
            together=True,
        ),
        RuleType(
            "matches_regex", _matches_regex,
            {"pattern": Param(text, required=True), "negate": _NEGATE},
        ),
        RuleType(
            "match_like_pattern", _match_like_pattern,
            {"like_pattern": Param(_like_pattern, required=True), "negate": _NEGATE},
        ),
        RuleType(
            "no_forbidden_phrases", _no_forbidden_phrases,
            {
                "phrases": Param(phrases, required=True),
                "case_sensitive": Param(flag, default=False),
            },
            together=True,
        ),
        RuleType(
            "contains_terms_from", _contains_terms_from,
            {
                "terms": Param(phrases, required=True),
                "min_matches": Param(whole(0, 10_000), default=1, nullable=False),
            },
            together=True,
        ),
    )
}  # fmt: skip
