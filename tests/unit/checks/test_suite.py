"""Compiling rules, and judging by them."""

from __future__ import annotations

from typing import Any

import pytest

from checks import Finding, Severity, Status, compile_suite
from checks.suite import SuiteError

Entry = dict[str, Any]


def refusals(*entries: object, **known: Any) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as refused:
        compile_suite(entries, **known)
    return refused.value.problems


def said(entry: Entry, record: object) -> Finding:
    return compile_suite([entry]).judge(record).findings[0]


REFUSED: list[tuple[object, str]] = [
    ("not_null", "expectations[0]: 'not_null'; an entry of expectations is a mapping with a type"),
    ({"field": "a"}, "expectations[0]: type is missing; it is one of not_null, "),
    ({"type": 3, "field": "a"}, "type: 3; it must be a string"),
    ({"type": "not_nul", "field": "a"}, "unknown type 'not_nul'; did you mean not_null? the types"),
    ({"type": "not_null"}, "field is missing; name the field the rule reads"),
    ({"type": "not_null", "field": "a", "sevrity": "warn"},
     "unknown rule key 'sevrity'; did you mean severity?"),
    ({"type": "not_null", "field": "a", "colour": 1}, "unknown rule key 'colour'; the keys are"),
    ({"type": "item_count", "field": "a", "min": 1, "max": 2}, "params:; move min, max there"),
    ({"type": "not_null", "field": "a", "severity": "fail"}, "the levels are error, warn and info"),
    ({"type": "not_null", "field": "a", "severity": None}, "unknown severity null"),
    ({"type": "not_null", "field": "a", "scope": "all"}, "unknown scope 'all'"),
    ({"type": "not_null", "field": "a", "id": 7}, "id: 7; it must be a string, not a number"),
    ({"type": "not_null", "field": "a", "id": " "}, "id must not be empty"),
    ({"type": "not_null", "field": "a", "hint": ["x"]}, "hint: ['x']; it must be a string"),
    ({"type": "not_null", "field": "a", "params": [1]}, "params: [1]; it must be a mapping"),
    ({"type": "not_null", "field": "a", "params": {"phrases": []}},
     "type 'not_null' takes no parameter 'phrases'; its parameters are none but row_condition"),
    ({"type": "word_count_between", "field": "a", "params": {"mim": 3}}, "did you mean min?"),
    ({"type": "accepted_values", "field": "a"}, "requires parameter 'values'"),
    ({"type": "accepted_values", "field": "a", "params": {"values": "steel"}},
     "values: 'steel'; it must be a list, as in ['steel']"),
    ({"type": "accepted_values", "field": "a", "params": {"values": []}}, "must not be empty"),
    ({"type": "item_count", "field": "a", "params": {"min": "1"}}, "write it without quotes"),
    ({"type": "item_count", "field": "a", "params": {"min": True}}, "min: true; it must be"),
    ({"type": "item_count", "field": "a", "params": {"min": 4, "max": 2}}, "min 4 is above max 2"),
    ({"type": "item_count", "field": "a", "params": {"min": 4, "equals": 2}},
     "equals and min are both given"),
    ({"type": "item_count", "field": "a", "params": {"min": -3}}, "min: -3; it must be at least 0"),
    ({"type": "word_count_between", "field": "a", "params": {"max": -1}}, "it must be at least 0"),
    ({"type": "item_count", "field": "a", "params": {"equals": 2.5}}, "no count lies from 2.5 to"),
    ({"type": "item_count", "field": "a", "params": {"min": 1.2, "max": 1.8}}, "no count lies"),
    ({"type": "item_count", "field": "a"}, "no bound is given; give equals, min or max"),
    ({"type": "value_between", "field": "a", "params": {"min": 1, "max": 1, "exclusive_max": True}},
     "min 1 and max 1 leave nothing that can pass"),
    ({"type": "value_between", "field": "a", "params": {"min": 1, "exclusive_max": True}},
     "exclusive_max is given without max"),
    ({"type": "value_between", "field": "a", "params": {"min": float("inf")}}, "finite number"),
    ({"type": "multiple_of", "field": "a", "params": {"step": 0}}, "step: 0; it must be above 0"),
    ({"type": "matches_regex", "field": "a", "params": {"pattern": "a(?=b)"}}, "look-around"),
    ({"type": "matches_regex", "field": "a", "params": {"pattern": "a", "negate": "false"}},
     "negate: 'false'; it must be true or false, without quotes"),
    ({"type": "contains_terms_from", "field": "a", "params": {"terms": ["x"], "min_matches": 2}},
     "min_matches 2 is above the number of terms, 1"),
    ({"type": "no_forbidden_phrases", "field": "a", "params": {"phrases": [""]}}, "empty string"),
    ({"type": "word_count_ratio", "field": "a", "params": {"max_ratio": 0.5}}, "at least 1"),
    ({"type": "not_null", "field": ["a", "b"]}, "reads one value, not the list [a, b]"),
    ({"type": "distinct", "field": "a[*]"}, "compares records, not the items of a[*]"),
    ({"type": "min_separation", "field": ["a", "b"], "params": {"distance": 0.1}},
     "bounds: none for a, b"),
    ({"type": "min_separation", "field": "a", "params": {"distance": 2, "bounds": {"a": [0, 1]}}},
     "distance 2 is above 1, the unit cube's diagonal"),
    ({"type": "min_separation", "field": "a", "params": {"distance": 1, "bounds": {"a": [1, 1]}}},
     "it must be [low, high], low below high"),
    ({"type": "expression", "field": "a", "params": {"condition": "a"}},
     "expression reads the whole record and takes no field; remove field: 'a'"),
    ({"type": "expression", "params": {"condition": ""}}, "condition must be a non-empty text"),
    ({"type": "expression", "params": {"condition": True}}, "condition: true; it must be"),
    ({"type": "not_null", "field": "a", "params": {"row_condition": False}}, "row_condition:"),
    ({"type": "llm_judge", "field": "a", "params": {"rule": "x"}}, "no judge is configured"),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "problem"), REFUSED)
def test_an_entry_that_can_only_go_wrong_is_refused(entry: object, problem: str) -> None:
    assert any(problem in one for one in refusals(entry))


def test_every_refusal_of_every_entry_is_in_one_error() -> None:
    problems = refusals(
        {"id": "one", "type": "not_null", "severity": "high"},
        {"id": "two", "type": "item_count", "field": "a", "params": {"min": "1", "max": None}},
        {"id": "three", "type": "not_null", "field": "a"},
        {"id": "three", "type": "not_null", "field": "b"},
    )
    assert [problem.partition(":")[0] for problem in problems] == ["one", "one", "two", "three"]
    assert problems[-1] == "three: two rules share this id; give each its own"


def test_the_same_rule_twice_is_refused() -> None:
    rule = {"type": "not_null", "field": "a"}
    assert "share this id" in refusals(rule, {**rule, "hint": "again"})[0]


def test_a_derived_id_follows_from_what_a_rule_asks_alone() -> None:
    def derived(**more: Any) -> str:
        entry = {"type": "item_count", "field": "a", "params": {"min": 1}, **more}
        return compile_suite([entry]).rules[0].id

    assert derived() == "item_count_81bda2232598"
    same = (
        derived(hint="x"), derived(severity="warn"), derived(scope="record"),
        derived(params={"max": None, "min": 1.0}),
    )  # fmt: skip
    assert set(same) == {derived()}
    other = derived(params={"min": 2}), derived(field="b"), derived(scope="batch")
    assert len({derived(), *other}) == 4


@pytest.mark.parametrize(
    ("entry", "record", "detail"),
    [
        ({"type": "value_between", "field": "a", "params": {"max": 1}}, {"a": 2},
         "2, expected at most 1"),
        ({"type": "value_between", "field": "a", "params": {"min": 1, "exclusive_min": True}},
         {"a": 1.0}, "1.0, expected above 1"),
        ({"type": "value_between", "field": "a", "params": {"max": 1}}, {"a": True},
         "expected a number, found a boolean, true"),
        ({"type": "is_finite", "field": "a"}, {"a": float("nan")}, "nan, expected a finite number"),
        ({"type": "multiple_of", "field": "a", "params": {"step": 0.1}}, {"a": 0.25},
         "0.25, expected a multiple of 0.1"),
        ({"type": "item_count", "field": "a", "params": {"min": 2}}, {"a": [1]},
         "1 item, expected at least 2"),
        ({"type": "word_count_between", "field": "a", "params": {"max": 2}}, {"a": "x y z"},
         "3 words, expected at most 2"),
        ({"type": "not_null", "field": "a[*]"}, {"a": [1, None, ""]},
         "[1]: null; [2]: an empty text"),
        ({"type": "no_null_fields"}, {"b": None, "a": None, "c": 1}, "null: a, b"),
        ({"type": "not_null", "field": "a"}, [1], "the candidate is a list; expected an object"),
    ],
)  # fmt: skip
def test_a_detail_names_what_was_seen_and_what_is_right(
    entry: Entry, record: object, detail: str
) -> None:
    assert said(entry, record).reason == detail


@pytest.mark.parametrize("value", [0.3, 0.7, 1e7 + 0.1, 3, 0.0, -0.2])
def test_a_multiple_is_one_in_spite_of_rounding(value: float) -> None:
    entry = {"type": "multiple_of", "field": "a", "params": {"step": 0.1}}
    assert said(entry, {"a": value}).passed


def test_a_detail_is_clipped_whatever_the_value() -> None:
    entry = {"type": "matches_regex", "field": "a", "params": {"pattern": "^x"}}
    assert len(said(entry, {"a": "y" * 1_000_000}).reason) < 200


def test_a_waived_rule_passes_and_one_whose_condition_cannot_be_told_fails() -> None:
    entry = {"type": "not_null", "field": "a", "params": {"row_condition": "b > 1"}}
    waived, unknown = said(entry, {"b": 0}), said(entry, {"a": 1})
    assert (waived.passed, waived.status) == (True, Status.SKIPPED)
    assert waived.reason == "waived: row_condition: condition 'b > 1' does not hold"
    assert (unknown.passed, unknown.status) == (False, Status.REJECT)
    assert "b is missing" in unknown.reason


def test_of_repeated_candidates_the_first_keeps_its_place() -> None:
    suite = compile_suite([{"type": "distinct", "field": ["a", "b"], "params": {"decimals": 2}}])
    batch = [{"a": 0.1, "b": 1}, {"a": 0.2, "b": 1}, {"a": 0.1001, "b": 1.0}, {"a": 0.1, "b": True}]
    verdicts = suite.judge_batch(batch)
    assert [verdict.overall_pass for verdict in verdicts] == [True, True, False, True]
    assert verdicts[2].findings[0].reason.startswith("repeats candidate 0 of the batch to 2 dec")


def test_candidates_are_compared_with_the_past() -> None:
    suite = compile_suite([{"type": "distinct_from_history", "field": "a"}])
    history: list[dict[str, object]] = [{"a": 1.0}, {"b": 2}]
    assert suite.judge({"a": 2}, history=history).overall_pass
    again = suite.judge({"a": 1}, history=history)
    assert again.findings[0].reason.startswith("was tried before")


@pytest.mark.parametrize("others", [0, 100])
def test_a_candidate_that_is_too_close_to_one_that_kept_its_place_is_at_fault(others: int) -> None:
    entry = {"type": "min_separation", "field": ["a", "b"], "params": {"distance": 0.1}}
    suite = compile_suite([entry], bounds={"a": (0, 10), "b": (0, 1)})
    batch = [{"a": 0, "b": 0}, {"a": 0.8, "b": 0}, {"a": 1.6, "b": 0}, {"a": 1, "b": 0.5}]
    batch += [{"a": 3 + 2 * i, "b": 0} for i in range(others)]
    failed = [i for i, one in enumerate(suite.judge_batch(batch)) if not one.overall_pass]
    assert failed == [1]  # the third is far enough from the first


def test_rules_of_scope_batch_read_the_proposal() -> None:
    rules: list[Entry] = [
        {"type": "item_count", "field": "candidates", "scope": "batch", "params": {"equals": 2}},
        {"type": "not_null", "field": "a"},
    ]
    suite = compile_suite(rules, fields=["a"], proposal_fields=["rationale", "candidates"])
    assert len(suite.judge({"a": 1}).findings) == 1
    assert suite.judge_proposal({"candidates": [1, 2]}).overall_pass
    assert not suite.judge_proposal({"candidates": [1]}).overall_pass
    assert not suite.judge_proposal("text").overall_pass
    assert "unknown field 'a'" in refusals({**rules[1], "scope": "batch"}, proposal_fields=["b"])[0]


def test_severity_decides_what_a_failure_does() -> None:
    rules = [{"type": "not_null", "field": "a", "severity": level} for level in ("warn", "info")]
    rules[1]["field"] = "b"
    verdict = compile_suite(rules).judge({})
    assert verdict.overall_pass
    assert [finding.severity for finding in verdict.findings] == [Severity.WARN, Severity.INFO]
    assert not any(finding.passed for finding in verdict.findings)


def test_candidates_that_passed_everything_share_one_verdict() -> None:
    suite = compile_suite([{"type": "not_null", "field": "a"}])
    for size in (2, 100):
        verdicts = suite.judge_batch([{"a": 1}] * size)
        assert len({id(verdict) for verdict in verdicts}) == 1


def test_a_suite_without_rules_lets_everything_pass() -> None:
    assert compile_suite([]).judge_batch([1, {}])[1].overall_pass


@pytest.mark.parametrize("size", [3, 100], ids=["one by one", "by columns"])
def test_a_pinned_candidate_keeps_its_place_wherever_it_stands(size: int) -> None:
    suite = compile_suite([{"id": "new", "type": "distinct", "field": "x"}])
    batch = [{"x": float(i)} for i in range(size - 2)] + [{"x": 0.0}, {"x": 0.0}]
    verdicts = suite.judge_batch(batch, pinned=[size - 2])
    failed = {place: one.findings[0].reason for place, one in enumerate(verdicts) if one.failed}
    said = f"repeats candidate {size - 2} of the batch to 10 decimals; expected another one"
    assert failed == {0: said, size - 1: said}


@pytest.mark.parametrize("others", [0, 100], ids=["one by one", "by columns"])
def test_pinned_candidates_that_are_alike_both_keep_their_places(others: int) -> None:
    entry = {"type": "min_separation", "field": "x", "params": {"distance": 0.1}}
    suite = compile_suite([entry], bounds={"x": (0, 1)})
    batch = [{"x": 0.31}, {"x": 0.1}, {"x": 0.17}, {"x": 0.25}]  # each near the next by size
    batch += [{"x": 2.0 + place} for place in range(others)]
    verdicts = suite.judge_batch(batch, pinned=[1, 2])
    failed = {place: one.findings[0].reason for place, one in enumerate(verdicts) if one.failed}
    said = "closer than 0.1 to candidate 2 of the batch, in the unit cube; expected more distance"
    assert failed == {3: said}  # not the first, which is near the fourth alone


@pytest.mark.parametrize("others", [0, 100], ids=["one by one", "by columns"])
def test_a_pinned_candidate_may_be_one_of_the_past(others: int) -> None:
    suite = compile_suite([{"type": "distinct_from_history", "field": "x"}])
    batch = [{"x": 1.0}, {"x": 2.0}, *({"x": 10.0 + place} for place in range(others))]
    verdicts = suite.judge_batch(batch, history=[{"x": 1.0}, {"x": 2.0}], pinned=[1])
    assert [place for place, one in enumerate(verdicts) if one.failed] == [0]
