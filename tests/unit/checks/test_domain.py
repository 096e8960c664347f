"""The derived checks: what they reject, what they say, and that nothing makes them raise."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import pytest
from hypothesis import example, given, strategies as st

from checks.domain import (
    DERIVED,
    STRUCTURAL,
    Bound,
    derived,
    judge,
    key,
    normalise,
    too_many_or_few,
    whole_steps,
)
from checks.finding import Finding, Layer, Status

PLATE = (
    Bound("thickness", "float", 0.001, 0.05),
    Bound("fins", "int", 1, 20),
    Bound("alloy", "categorical", choices=("Al 6061", "Cu", 7, True)),
)
GOOD: Mapping[str, object] = {"thickness": 0.02, "fins": 5, "alloy": "Cu"}


def rejections(*candidates: object, **context: object) -> list[list[str]]:
    judged = judge(PLATE, candidates, **context)  # type: ignore[arg-type]
    return [
        [f"{f.check} | {f.reason}" for f in findings if f.status is Status.REJECT]
        for findings in judged
    ]


def statuses(candidate: object) -> dict[str, str]:
    (findings,) = judge(PLATE, [candidate])
    return {finding.check: str(finding.status) for finding in findings}


def test_a_good_candidate_passes_every_check_of_both_layers() -> None:
    (findings,) = judge(PLATE, [GOOD])
    assert [finding.check for finding in findings] == [
        "unknown",
        "missing",
        "type",
        "finite",
        "bounds",
        "distinct",
    ]
    assert {finding.status for finding in findings} == {Status.PASS}
    assert {finding.layer for finding in findings[:-1]} == {Layer.SCHEMA}
    assert findings[-1].layer is Layer.DOMAIN  # it looks at more than one candidate


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"thickness": 0.09}, "bounds | thickness: 0.09; at most 0.05"),
        ({"thickness": -1}, "bounds | thickness: -1; at least 0.001"),
        ({"thickness": math.nan}, "finite | thickness: NaN; give a number from 0.001 to 0.05"),
        ({"thickness": math.inf}, "finite | thickness: Infinity; give a number from 0.001 to 0.05"),
        ({"thickness": "0.02"}, 'type | thickness: "0.02"; give a number from 0.001 to 0.05'),
        ({"thickness": True}, "type | thickness: true; give a number from 0.001 to 0.05"),
        ({"thickness": None}, "type | thickness: null; give a number from 0.001 to 0.05"),
        (
            {"thickness": [0.02, 0.03]},
            "type | thickness: a list of 2 items; give a number from 0.001 to 0.05",
        ),
        (
            {"thickness": 10**5000},
            "bounds | thickness: an integer of 16610 bits; at most 0.05",
        ),
        ({"fins": 5.5}, "type | fins: 5.5; give a whole number from 1 to 20"),
        ({"fins": 5.0}, "type | fins: 5.0; give a whole number from 1 to 20"),
        ({"fins": True}, "type | fins: true; give a whole number from 1 to 20"),
        ({"fins": math.nan}, "finite | fins: NaN; give a whole number from 1 to 20"),
        ({"fins": 21}, "bounds | fins: 21; at most 20"),
        ({"fins": 0}, "bounds | fins: 0; at least 1"),
        ({"alloy": "Fe"}, 'bounds | alloy: "Fe"; give one of "Al 6061", "Cu", 7, true'),
        ({"alloy": 1}, 'bounds | alloy: 1; give one of "Al 6061", "Cu", 7, true'),
        ({"alloy": False}, 'bounds | alloy: false; give one of "Al 6061", "Cu", 7, true'),
        (
            {"alloy": {}},
            'type | alloy: an object with 0 keys; give one of "Al 6061", "Cu", 7, true',
        ),
        ({"thicknes": 1}, 'unknown | "thicknes": unknown parameter; did you mean thickness?'),
        (
            {"colour": 1},
            'unknown | "colour": unknown parameter; known are thickness, fins, alloy',
        ),
    ],
)
def test_a_defect_is_named_with_what_would_be_right(change: dict[str, object], says: str) -> None:
    assert rejections({**GOOD, **change}) == [[says]]


@pytest.mark.parametrize("value", [0.001, 0.05, 0.02])
def test_bounds_are_inclusive(value: float) -> None:
    assert rejections({**GOOD, "thickness": value}) == [[]]


def test_an_integer_is_a_number() -> None:
    wide = (Bound("x", "float", 0, 10),)
    assert all(finding.status is Status.PASS for finding in judge(wide, [{"x": 5}])[0])


def test_all_defects_of_a_candidate_are_named_at_once() -> None:
    assert rejections({"thickness": 0.09, "fins": "many", "fin": 3}) == [
        [
            'unknown | "fin": unknown parameter; did you mean fins?',
            'missing | alloy: missing; give one of "Al 6061", "Cu", 7, true',
            'type | fins: "many"; give a whole number from 1 to 20',
            "bounds | thickness: 0.09; at most 0.05",
        ]
    ]


@pytest.mark.parametrize("candidate", [None, 3, "a string", [0.02, 5, "Cu"]])
def test_what_is_no_object_has_one_defect_and_the_rest_is_skipped(candidate: object) -> None:
    (reasons,) = rejections(candidate)
    assert len(reasons) == 1
    assert reasons[0].endswith("; give an object with thickness, fins, alloy")
    assert statuses(candidate) == {
        "unknown": "pass",
        "missing": "reject",
        "type": "skipped",
        "finite": "skipped",
        "bounds": "skipped",
        "distinct": "skipped",
    }


def test_a_check_that_could_not_see_every_value_is_skipped_and_does_not_pass() -> None:
    assert statuses({**GOOD, "fins": math.inf}) == {
        "unknown": "pass",
        "missing": "pass",
        "type": "pass",
        "finite": "reject",
        "bounds": "skipped",
        "distinct": "skipped",
    }


def test_a_flood_of_unknown_parameters_stays_readable() -> None:
    (reasons,) = rejections({**GOOD, **{f"p{i}": i for i in range(1000)}})
    assert len(reasons) == 6
    assert reasons[-1] == (
        "unknown | 995 more unknown parameters; known are thickness, fins, alloy"
    )


def test_a_value_in_a_reason_is_clipped_and_printable() -> None:
    (reasons,) = rejections({**GOOD, "alloy": "Cu\n\x1b[2J\ud800" + "x" * 10**6})
    assert reasons[0].startswith('bounds | alloy: "Cu\\n\\u001b[2J\\ud800xxx')
    assert len(reasons[0]) < 120


# Distinct


def test_a_repeated_candidate_is_rejected_where_it_comes_second() -> None:
    other = {**GOOD, "fins": 6}
    assert rejections(GOOD, other, GOOD) == [
        [],
        [],
        ["distinct | repeats slot 0; propose a different candidate"],
    ]


def test_slots_are_named_as_the_caller_counts_them() -> None:
    assert rejections(GOOD, GOOD, slots=[2, 7])[1] == [
        "distinct | repeats slot 2; propose a different candidate"
    ]


def test_a_candidate_of_the_history_is_rejected() -> None:
    expected = [["distinct | was tried before; propose a different candidate"]]
    own = key(PLATE, GOOD)
    assert rejections(GOOD, seen={own}) == expected
    assert rejections(GOOD, seen=[own]) == expected
    assert rejections(GOOD, seen={own: "with its slot"}) == expected


def test_a_candidate_that_passed_in_this_batch_is_not_proposed_again() -> None:
    assert rejections(GOOD, pinned=[GOOD]) == [
        ["distinct | repeats an accepted candidate of this batch; propose a different one"]
    ]


def test_of_equal_candidates_the_one_without_another_defect_keeps_its_place() -> None:
    first, second = rejections({**GOOD, "colour": "red"}, GOOD)
    assert second == []
    assert first[-1] == "distinct | repeats slot 1; propose a different candidate"


def test_candidates_are_the_same_when_they_agree_to_ten_decimals() -> None:
    near, far = {**GOOD, "thickness": 0.02 + 1e-11}, {**GOOD, "thickness": 0.02 + 1e-9}
    assert key(PLATE, near) == key(PLATE, GOOD)
    assert key(PLATE, far) != key(PLATE, GOOD)
    assert [len(reasons) for reasons in rejections(GOOD, near, far)] == [0, 1, 0]


@pytest.mark.parametrize(
    ("low", "high", "one", "other"),
    [(1e-14, 1e-8, 1e-14, 2e-14), (0.0, 1e-9, 1e-10, 2e-10), (-2e-12, -1e-12, -1.1e-12, -1.2e-12)],
)
def test_small_numbers_are_told_apart_where_the_range_is_small(
    low: float, high: float, one: float, other: float
) -> None:
    tiny = (Bound("diffusivity", "float", low, high),)
    assert key(tiny, {"diffusivity": one}) != key(tiny, {"diffusivity": other})
    assert key(tiny, {"diffusivity": one}) == key(tiny, {"diffusivity": one * (1 + 1e-12)})


def test_rounding_noise_around_zero_makes_no_new_candidate() -> None:
    wide = (Bound("x", "float", -1.0, 1.0),)
    assert len({key(wide, {"x": x}) for x in (0.0, -0.0, 0.1 + 0.2 - 0.3, 0, -1e-12)}) == 1


def test_a_key_does_not_depend_on_order_spelling_or_what_is_unknown() -> None:
    spelled = {"colour": 1, "alloy": "Cu", "fins": 5.0, "thickness": 0.02}
    assert key(PLATE, spelled) == key(PLATE, GOOD)


def test_a_key_tells_a_boolean_choice_from_a_number() -> None:
    flags = (Bound("flag", "categorical", choices=(True, 1)),)
    keys = {key(flags, {"flag": value}) for value in (True, 1, 1.0)}
    assert len(keys) == 2


@pytest.mark.parametrize(
    "change", [{"fins": 5.5}, {"fins": None}, {"thickness": math.nan}, {"alloy": "Fe"}]
)
def test_a_candidate_with_an_unusable_value_is_the_same_as_no_other(
    change: dict[str, object],
) -> None:
    broken = {**GOOD, **change}
    assert key(PLATE, broken) == ()
    assert not any("distinct" in reason for reason in rejections(broken, broken)[1])


# Normalise


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("thickness", 0, 0.0),
        ("thickness", -0.0, 0.0),
        ("thickness", 0.02, 0.02),
        ("thickness", "0.02", "0.02"),
        ("thickness", True, True),
        ("thickness", 10**400, 10**400),
        ("fins", 5.0, 5),
        ("fins", -0.0, 0),
        ("fins", 5.5, 5.5),
        ("fins", math.inf, math.inf),
        ("fins", False, False),
        ("alloy", 7.0, 7),
        ("alloy", 1, 1),
        ("alloy", "Fe", "Fe"),
        ("colour", -0.0, -0.0),
    ],
)
def test_normalising_writes_a_value_as_its_kind_does_and_leaves_the_rest(
    name: str, value: object, written: object
) -> None:
    result = normalise(PLATE, {name: value})
    assert isinstance(result, dict)
    assert type(result[name]) is type(written)
    assert repr(result[name]) == repr(written)


def test_a_whole_float_is_accepted_for_an_integer_once_normalised() -> None:
    assert rejections({**GOOD, "fins": 5.0}) != [[]]
    assert rejections(normalise(PLATE, {**GOOD, "fins": 5.0})) == [[]]


# Count


@pytest.mark.parametrize(("found", "status"), [(3, "reject"), (4, "pass"), (5, "reject")])
def test_an_answer_must_have_exactly_as_many_candidates_as_were_asked_for(
    found: int, status: str
) -> None:
    assert too_many_or_few(4, found).status == status


def test_a_wrong_count_says_how_many_are_right() -> None:
    assert too_many_or_few(4, 3) == Finding(
        "count", Layer.DOMAIN, Status.REJECT, "3 candidates; give exactly 4"
    )


# Whatever an answer holds

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=10**300, max_value=10**320)
    | st.floats()
    | st.text(st.characters(), max_size=60)
)
names = st.sampled_from([bound.name for bound in PLATE]) | st.text(st.characters(), max_size=12)
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=5),
    max_leaves=12,
)
candidates = st.lists(st.dictionaries(names, anything, max_size=6) | anything, max_size=5)


@given(candidates)
@example([{"thickness": 10**400, "fins": 10**400, "alloy": 10**400}])
@example([{"thickness": 1e308, "fins": 1e308, "alloy": 1e308}])
@example([{1: 2, None: 3, (): 4}])
def test_nothing_in_an_answer_makes_a_check_raise(answer: list[object]) -> None:
    judged = judge(PLATE, answer, seen=[key(PLATE, GOOD)], pinned=[GOOD])
    assert len(judged) == len(answer)
    for candidate, findings in zip(answer, judged, strict=True):
        for finding in findings:
            assert len(finding.reason) <= 200
            assert finding.reason.isprintable()
            assert (finding.status is Status.PASS) == (finding.reason == "")
        clean = all(finding.status is Status.PASS for finding in findings)
        assert not clean or set(candidate) == set(GOOD)  # type: ignore[call-overload]


@given(candidates)
def test_normalising_is_idempotent_and_changes_no_identity(answer: list[object]) -> None:
    for candidate in answer:
        once = normalise(PLATE, candidate)
        assert repr(normalise(PLATE, once)) == repr(once)
        assert key(PLATE, once) == key(PLATE, candidate)


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "thickness": st.floats(0.001, 0.05),
                "fins": st.integers(1, 20),
                "alloy": st.sampled_from(["Al 6061", "Cu", 7, True]),
            }
        ),
        max_size=6,
    )
)
def test_valid_candidates_pass_exactly_once_for_each_key(answer: list[dict[str, object]]) -> None:
    accepted = [
        key(PLATE, candidate)
        for candidate, findings in zip(answer, judge(PLATE, answer), strict=True)
        if all(finding.status is Status.PASS for finding in findings)
    ]
    assert len(accepted) == len(set(accepted))
    assert set(accepted) == {key(PLATE, candidate) for candidate in answer}


def test_a_deeply_nested_answer_is_judged_without_recursion() -> None:
    deep: object = json.loads("[" * 500 + "]" * 500)
    for _ in range(100_000):
        deep = [deep]
    assert rejections({**GOOD, "alloy": deep})[0][0].startswith("type | alloy: a list of 1 items")


GRID = (Bound("x", "float", -1.0, 1.0, step=0.001), Bound("n", "int", 1, 9))


def on_grid(value: object) -> list[str]:
    (findings,) = judge(GRID, [{"x": value, "n": 1}])
    return [f"{f.check} | {f.reason}" for f in findings if f.status is Status.REJECT]


@pytest.mark.parametrize("value", [0, 0.5, -0.001, 0.1 + 0.2, 1, 5e-324, 0.003 * (1 + 1e-12), -0.0])
def test_a_multiple_of_the_step_passes_whatever_was_rounded(value: float) -> None:
    assert on_grid(value) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (0.5004, ["step | x: 0.5004; a multiple of 0.001"]),
        (0.00100001, ["step | x: 0.00100001; a multiple of 0.001"]),
        (1.5004, ["bounds | x: 1.5004; at most 1.0"]),
        (10**400, ["bounds | x: an integer of 1329 bits; at most 1.0"]),
        (math.inf, ["finite | x: Infinity; give a multiple of 0.001 from -1.0 to 1.0"]),
        ("0.5", ['type | x: "0.5"; give a multiple of 0.001 from -1.0 to 1.0']),
    ],
)
def test_a_value_off_the_grid_is_told_the_step(value: object, says: list[str]) -> None:
    assert on_grid(value) == says


def test_the_step_is_checked_in_the_schema_layer_and_only_where_there_is_one() -> None:
    (findings,) = judge(GRID, [{"x": 0.5, "n": 1}])
    assert [f.check for f in findings] == [one for one in DERIVED if one != "count"]
    assert {f.layer for f in findings if f.check == "step"} == {Layer.SCHEMA}
    assert "step" not in statuses(GOOD)
    assert derived(False) == tuple(one for one in DERIVED if one != "step")


def test_a_value_off_the_grid_is_the_same_as_no_other() -> None:
    (findings,) = judge(GRID, [{"x": 0.5004, "n": 1}])
    assert {f.check: f.status for f in findings}["distinct"] is Status.SKIPPED


def test_what_is_structural_is_among_the_checks() -> None:
    assert set(DERIVED) > STRUCTURAL
    for structural in ({}, 5, {**GOOD, "fin": 1}, {**GOOD, "fins": "many"}):
        found = {check for check, status in statuses(structural).items() if status == "reject"}
        assert found & STRUCTURAL
    found = {check for check, said in statuses({**GOOD, "fins": 99}).items() if said == "reject"}
    assert not found & STRUCTURAL


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_two_points_of_a_grid_are_the_same_where_their_steps_are(one: int, other: int) -> None:
    keys = [key(GRID, {"x": count / 1000, "n": 1}) for count in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
    assert key(GRID, {"x": one * 0.001, "n": 1}) == keys[0]


def test_points_of_a_grid_finer_than_ten_decimals_are_told_apart() -> None:
    fine = (Bound("x", "float", 0.0, 1.0, step=1e-12),)
    assert key(fine, {"x": 3e-12}) != key(fine, {"x": 4e-12})


@given(st.floats() | st.integers() | st.just(10**400), st.floats(5e-324, 1e308))
def test_counting_steps_raises_for_nothing(value: float, step: float) -> None:
    whole = whole_steps(value, step)
    assert whole is None or isinstance(whole, int)
