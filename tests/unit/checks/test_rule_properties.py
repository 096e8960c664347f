"""What holds of every record, suite and condition, however odd."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from checks import Suite, check, compile_suite
from checks.custom import rule_type
from checks.grammar import parse
from checks.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Contains,
    Field,
    In,
    IsNull,
    Like,
    ListOf,
    Literal,
    Negative,
    Node,
    Not,
    Or,
    printed,
)  # fmt: skip

ENTRIES: list[dict[str, Any]] = [
    {"type": "not_null", "field": "a"},
    {"type": "no_null_fields", "params": {"exclude": ["b"]}},
    {"type": "item_count", "field": "a", "params": {"min": 1, "max": 3}},
    {"type": "word_count_between", "field": "t", "params": {"min": 1, "max": 4}},
    {"type": "word_count_ratio", "field": ["t", "a"], "params": {"max_ratio": 2}},
    {"type": "accepted_values", "field": "b", "params": {"values": [1, "x", None, [1.0]]}},
    {"type": "matches_regex", "field": "t", "params": {"pattern": r"^\w+\s*$"}},
    {"type": "matches_regex", "field": "a[*]", "params": {"pattern": "x", "negate": True}},
    {"type": "match_like_pattern", "field": "t", "params": {"like_pattern": "%a_"}},
    {"type": "no_forbidden_phrases", "field": "t", "params": {"phrases": ["ß", "a"]}},
    {"type": "contains_terms_from", "field": ["t", "b"], "params": {"terms": ["x", "1"]}},
    {"type": "value_between", "field": "a", "params": {"min": -1, "max": 2}},
    {"type": "value_between", "field": "b", "params": {"min": 0, "exclusive_min": True}},
    {"type": "is_finite", "field": "a"},
    {"type": "multiple_of", "field": "a", "params": {"step": 0.25}},
    {"type": "distinct", "field": ["a", "b"], "params": {"decimals": 3}},
    {"type": "distinct_from_history", "field": ["a", "b"], "params": {"decimals": 3}},
    {"type": "min_separation", "field": ["a", "b"],
     "params": {"distance": 0.1, "bounds": {"a": [0, 1], "b": [0, 2]}}},
    {"type": "value_between", "field": "a", "params": {"max": 1, "row_condition": "b > 0"}},
    {"type": "distinct", "field": "a", "params": {"row_condition": "b > 0"}},
    {"type": "value_between", "field": "a", "params": {"max": 1, "row_condition": "t is null"}},
    {"type": "value_between", "field": "a", "params": {"max": 1, "row_condition": "a is not null"}},
    {"type": "raises_on_text", "field": "t"},
    {"type": "not_null", "field": "t", "params": {"row_condition": "t LIKE '%a%' or a == 1"}},
    *(
        {"type": "expression", "params": {"condition": condition}}
        for condition in (
            "a < b", "not (a * b / 2 >= 1)", "0 < a <= 1 or b != b", "a between 0 and 1 and not b",
            "a ** b > exp(a) - log(abs(b))", "sqrt(a) < max(a, b, 1) + min(a, -b)",
            "a in [0, 0.5, 1]",
            "a is null or a / b > 1", "t contains b", "a == [1] or t > 'a'", "a in b",
            "c.d not in (1, 'x')",
        )
    ),
]  # fmt: skip


@check("raises_on_text")
def raises_on_text(value: Any, _: object) -> tuple[bool, str]:
    return value / 1 == 1, f"{value!r} is not 1"


SUITE = compile_suite(ENTRIES, types={"raises_on_text": rule_type(raises_on_text)})
HISTORY: list[dict[str, object]] = [{"a": 0.5, "b": 1}, {"a": "x", "b": None}]

NUMBERS = st.one_of(
    st.floats(),
    st.integers(),
    st.sampled_from([0.5, 1.0, 0.0, -0.0, 1, 0, 2**53, 2**53 + 1, 10**400, math.nan, math.inf]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6), st.just("\ud800x"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELD_VALUES = st.one_of(NUMBERS, NUMBERS, VALUES)
RECORDS = st.one_of(
    st.fixed_dictionaries({"a": NUMBERS, "b": NUMBERS, "t": st.text(max_size=6)}),
    st.fixed_dictionaries(
        {}, optional={"a": FIELD_VALUES, "b": FIELD_VALUES, "t": VALUES, "c": VALUES}
    ),
    VALUES,
)


def judged_one_by_one(records: list[object], pinned: Collection[int] = ()) -> list[object]:
    """The batch through the path for small batches, whatever its size."""
    marks = SUITE._marks(records)
    SUITE._compare(records, marks, HISTORY, pinned)
    return [SUITE._findings(judged) for judged in zip(records, marks, strict=True)]


@settings(deadline=None, max_examples=40)
@given(st.lists(RECORDS, min_size=1, max_size=30))
def test_a_batch_by_columns_and_one_by_one_says_the_same_of_every_rule(
    records: list[object],
) -> None:
    from checks.batch import Batch
    from checks.columns import Columns

    plain = [record if isinstance(record, dict) else {} for record in records]
    by_column = Batch(SUITE, Columns(plain), records).judge(HISTORY)
    assert [verdict.findings for verdict in by_column] == judged_one_by_one(records)


ALIKE = st.sampled_from([0.5, 0.5004, 0.5006, 0, 0.0, -0.0, -0.0004, 2, 2**53, 1e300, math.inf])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.fixed_dictionaries({"a": ALIKE, "b": ALIKE, "t": st.just("x")}), max_size=20),
    st.sets(st.integers(0, 19)),
)
def test_candidates_that_are_alike_are_found_by_columns_as_one_by_one(
    records: list[object], places: set[int]
) -> None:
    from checks.batch import Batch
    from checks.columns import Columns

    pinned = {place for place in places if place < len(records)}
    by_column = Batch(SUITE, Columns(records), records).judge(HISTORY, pinned)  # type: ignore[arg-type]
    assert [verdict.findings for verdict in by_column] == judged_one_by_one(records, pinned)


def test_candidates_far_apart_in_a_batch_are_compared() -> None:
    suite = compile_suite([{"type": "distinct", "field": ["a", "b"]}])
    batch = [{"a": float(place), "b": 1.0} for place in range(20_000)]
    batch[12_000] = batch[15_000] = batch[7]
    failed = {
        place: one.findings[0].reason
        for place, one in enumerate(suite.judge_batch(batch, pinned=[15_000]))
        if one.failed
    }
    said = "repeats candidate 15000 of the batch to 10 decimals; expected another one"
    assert failed == {7: said, 12_000: said}


@settings(deadline=None, max_examples=100)
@given(RECORDS)
@example({"a": 10**400, "b": -(10**5000), "t": "\ud800"})
@example({"a": True, "b": math.nan, "t": None})
def test_no_record_makes_judging_raise(record: object) -> None:
    verdict = SUITE.judge(record, history=HISTORY)
    assert len(verdict.findings) == len(ENTRIES)
    assert all(len(finding.reason) <= 400 for finding in verdict.findings)
    assert verdict.as_record()["overall_pass"] is verdict.overall_pass


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize(
    "record",
    [
        {"a": nested(20_000), "b": nested(20_000), "t": nested(20_000)},
        {f"field {i}": i for i in range(10_000)},
        {"a": "a" * 50_000, "b": ["x"] * 5_000, "t": "a " * 20_000},
        {1: 2, None: 3, "a": {1: object()}},
    ],
    ids=["deep", "ten thousand keys", "large", "odd keys"],
)
def test_no_size_or_depth_makes_judging_raise(record: object) -> None:
    for verdict in (SUITE.judge(record), *SUITE.judge_batch([record] * 25)):
        assert all(len(finding.reason) <= 400 for finding in verdict.findings)


def test_given_columns_are_judged_like_the_records_they_are() -> None:
    import numpy as np

    plain = [entry for entry in ENTRIES if entry["type"] != "raises_on_text"]
    suite = compile_suite(plain)
    a, b = np.linspace(-1, 3, 50), np.linspace(2, 0, 50)
    records = [{"a": x, "b": y, "t": "xa"} for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    by_column = suite.judge_columns({"a": a, "b": b, "t": ["xa"] * 50})
    assert by_column == suite.judge_batch(records)


NAMES = st.sampled_from(["a", "b", "ü", "in", "mesh-size", "x.y", "null", "Max"])
FIELDS = st.builds(Field, st.lists(NAMES, min_size=1, max_size=3).map(tuple))
FINITE = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: repr(x) != "-0.0")
LITERAL_NUMBERS = st.one_of(st.integers(-(10**30), 10**30), FINITE)
ITEMS = st.one_of(st.none(), st.booleans(), LITERAL_NUMBERS, st.text(max_size=5))
LISTS = st.builds(ListOf, st.lists(ITEMS, max_size=3).map(tuple))


@st.composite
def quantities(draw: st.DrawFn, depth: int = 2) -> Node:
    kind = draw(st.integers(0, 5)) if depth else 0
    below = quantities(depth - 1)
    if kind == 0:
        return draw(st.one_of(FIELDS, st.builds(Literal, LITERAL_NUMBERS)))
    if kind == 1:
        operand = draw(below)
        return operand if isinstance(operand, Literal) else Negative(operand)
    if kind == 2:
        return Call(draw(st.sampled_from(["abs", "sqrt", "log", "exp"])), (draw(below),))
    if kind == 3:
        return Call(draw(st.sampled_from(["min", "max"])), (draw(below), draw(below)))
    sign = draw(st.sampled_from(["+", "-", "*", "/", "**"]))
    return Arithmetic(sign, draw(below), draw(below))


@st.composite
def comparisons(draw: st.DrawFn, depth: int) -> Node:
    def operand() -> Node:
        if depth and draw(st.booleans()):
            return draw(conditions(depth - 1))
        return draw(st.one_of(quantities(), LISTS, st.builds(Literal, ITEMS)))

    way = draw(st.sampled_from([("<", "<="), (">", ">="), ("==", "=="), ("!=",)]))
    signs = way[: draw(st.integers(1, 2))]
    return Compare(tuple(operand() for _ in range(len(signs) + 1)), signs)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Node:
    kind = draw(st.integers(0, 9 if depth else 6))
    negated = draw(st.booleans())
    match kind:
        case 0:
            return draw(FIELDS)
        case 1:
            return draw(comparisons(depth))
        case 2:
            return In(draw(quantities()), draw(st.one_of(LISTS, FIELDS)), negated)
        case 3:
            return Like(draw(quantities()), draw(st.text(max_size=5)), negated)
        case 4:
            return Contains(draw(quantities()), draw(quantities()), negated)
        case 5:
            low, high = sorted([draw(LITERAL_NUMBERS), draw(LITERAL_NUMBERS)])
            return Between(draw(quantities()), Literal(low), Literal(high), negated)
        case 6:
            return IsNull(draw(FIELDS), negated)
        case 7:
            return Not(draw(conditions(depth - 1)))
    join = And if kind == 8 else Or
    parts = [draw(conditions(depth - 1)) for _ in range(draw(st.integers(2, 3)))]
    return join(tuple(Not(part) if isinstance(part, join) else part for part in parts))


@settings(deadline=None, max_examples=200)
@given(conditions())
def test_a_condition_printed_and_parsed_again_is_the_same_tree(tree: Node) -> None:
    assert repr(parse(printed(tree))) == repr(tree)  # repr tells 1 from true and from 1.0


def test_the_suite_is_the_public_one() -> None:
    assert isinstance(SUITE, Suite)
