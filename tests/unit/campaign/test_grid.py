"""Parameters on a grid: what is wired stands for the same candidates, and nothing breaks it."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st
from pydantic import ValidationError

from campaign.grid import decode, encode, is_stepped, wired
from campaign.judging import bounds
from campaign.space import FloatParameter, IntParameter, Point, Space, grid_ends, grid_size
from checks.domain import judge
from checks.finding import Status

X = FloatParameter(type="float", min=-2, max=2.5, step=0.001, unit="mm", description="How far.")
RATE = FloatParameter(type="float", min=0.15, max=1, step=0.1, scale="log")
PLAIN = FloatParameter(type="float", min=0, max=1)
FINS = IntParameter(type="int", min=1, max=20)
SPACE: Space = {"x": X, "rate": RATE, "plain": PLAIN, "fins": FINS}


@st.composite
def stepped(draw: st.DrawFn) -> tuple[Space, Point]:
    """A space of one parameter on a grid, and a point of that grid."""
    step = draw(st.sampled_from([1e-6, 0.001, 0.1, 0.25, 1 / 3, 2.5, 1e5, 3e-9]))
    first = draw(st.integers(-(10**8), 10**8))
    count = draw(st.integers(1, 10**8))
    low, high = (float(Fraction(repr(step)) * k) for k in (first, first + count))
    at = draw(st.integers(first, first + count))
    parameter = FloatParameter(type="float", min=low, max=high, step=step)
    return {"p": parameter}, {"p": float(Fraction(repr(step)) * at)}


def test_a_stepped_parameter_is_wired_as_its_number_of_steps() -> None:
    assert wired(SPACE) == {
        "x": IntParameter(
            type="int", min=-2000, max=2500, unit="steps of 0.001 mm", description="How far."
        ),
        "rate": IntParameter(type="int", min=2, max=10, scale="log", unit="steps of 0.1"),
        "plain": PLAIN,
        "fins": FINS,
    }
    assert list(wired(SPACE)) == list(SPACE)


def test_wiring_twice_is_wiring_once() -> None:
    assert wired(wired(SPACE)) == wired(SPACE)
    assert is_stepped(SPACE)
    assert not is_stepped(wired(SPACE))


def test_values_are_those_that_are_written() -> None:
    found = decode(SPACE, {"x": 2050, "rate": 3, "plain": 0.1, "fins": 7})
    assert found == {
        "x": 2.05,
        "rate": 0.3,
        "plain": 0.1,
        "fins": 7,
    }  # 3 * 0.1 is 0.30000000000000004
    assert encode(SPACE, {"x": 2.05, "rate": 0.1 + 0.2, "plain": 0.5, "fins": 7}) == {
        "x": 2050,
        "rate": 3,
        "plain": 0.5,
        "fins": 7,
    }
    assert isinstance(encode(SPACE, {"x": 2.0})["x"], int)


def test_a_number_that_is_not_whole_is_a_value_off_the_grid() -> None:
    assert decode(SPACE, {"x": 2050.5}) == {"x": 2.0505}
    assert encode(SPACE, {"x": 2.0505}) == {"x": 2050.5}
    candidate = decode(SPACE, {"x": 2050.5, "rate": 3.0, "plain": 1, "fins": 2})
    (findings,) = judge(bounds(SPACE), [candidate])
    rejected = [(f.check, f.reason) for f in findings if f.status is Status.REJECT]
    assert rejected == [("step", "x: 2.0505; a multiple of 0.001")]


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (True, True),
        (None, None),
        ("2050", "2050"),
        ([1], [1]),
        (math.inf, math.inf),
        (10**400, math.inf),
        (-(10**400), -math.inf),
    ],
)
def test_what_is_no_finite_number_stays_what_it_is(wire: object, value: object) -> None:
    assert decode(SPACE, {"x": wire, "other": wire}) == {"x": value, "other": wire}
    assert math.isnan(decode(SPACE, {"x": math.nan})["x"])  # type: ignore[index]


@pytest.mark.parametrize("candidate", [None, 5, "x", [{"x": 1}]])
def test_what_is_no_candidate_stays_what_it_is(candidate: object) -> None:
    assert decode(SPACE, candidate) is candidate


@given(stepped())
def test_decoding_undoes_encoding(given_: tuple[Space, Point]) -> None:
    space, point = given_
    wire = encode(space, point)
    assert type(wire["p"]) is int
    assert decode(space, wire) == point


@given(stepped(), st.floats(-1, 1))
def test_all_of_the_wired_range_decodes_into_the_space(
    given_: tuple[Space, Point], where: float
) -> None:
    space, _ = given_
    parameter = wired(space)["p"]
    assert isinstance(parameter, IntParameter)
    for count in (parameter.min, parameter.max):
        (findings,) = judge(bounds(space), [decode(space, {"p": count})])
        assert all(f.status is Status.PASS for f in findings)
        (findings,) = judge(bounds(space), [decode(space, {"p": count + where})])
        assert all(f.status is not Status.ERROR for f in findings)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(list(SPACE)) | st.text(), ANYTHING))
@example({"x": 10**400})
@example({"x": 5e-324})
def test_nothing_is_raised_for_an_untrusted_candidate(candidate: dict[str, object]) -> None:
    decoded = decode(SPACE, candidate)
    assert isinstance(decoded, dict)
    assert decoded.keys() == candidate.keys()
    again = encode(SPACE, decoded)
    assert again.keys() == candidate.keys()


def test_the_ends_of_a_grid_are_exact() -> None:
    assert grid_ends(0.1, 0.7, 0.1) == (1, 7)  # 0.7 / 0.1 is 6.999999999999999
    assert grid_ends(-0.35, 0.35, 0.1) == (-3, 3)
    assert grid_size(0.1, 0.7, 0.1) == 7
    third = 1 / 3
    assert grid_ends(4 * third, 5 * third, third) == (4, 5)  # 4 times the written step is less
    assert grid_ends(-1e308, 0.0, 1e308) == (-1, 0)


@pytest.mark.parametrize(
    "ends", [("a", 1, 1), (0, math.inf, 1), (0, 1, 0), (0, 10**400, 1), (0, 1, 2), (None, 1, 1)]
)
def test_what_is_no_grid_has_no_size(ends: tuple[object, object, object]) -> None:
    assert grid_size(*ends) == math.inf


def test_a_step_survives_the_configuration_as_json() -> None:
    assert FloatParameter.model_validate_json(X.model_dump_json()) == X
    assert json.loads(PLAIN.model_dump_json())["step"] is None
    with pytest.raises(ValidationError, match="finite"):
        FloatParameter(type="float", min=0, max=1, step=math.inf)
