from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel, ValidationError

from executors.units import Duration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("0.5s", 0.5),
        ("1.5H", 5400),
        ("00:05:00", 300),
        ("100:00:01", 360001),
        ("1-00:00:00", 86400),
    ],
)
def test_a_duration_with_its_unit_is_read_as_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("given_value", "message"),
    [
        ("30", "'30': a bare number; write the unit, for instance 30s, 5m or 00:05:00"),
        (30, "'30': a bare number; write the unit, for instance 30s, 5m or 00:05:00"),
        (1.5, "'1.5': a bare number; write the unit, for instance 30s, 5m or 00:05:00"),
        ("1e3", "'1e3': a bare number; write the unit, for instance 30s, 5m or 00:05:00"),
        ("-5", "'-5': a bare number; write the unit, for instance 30s, 5m or 00:05:00"),
        ("-5s", "'-5s': not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        ("0s", "'0s': no time at all; a duration is more than zero"),
        ("00:00:00", "'00:00:00': no time at all; a duration is more than zero"),
        ("00:75:00", "'00:75:00': minutes and seconds go up to 59; write the unit, "
                     "for instance 30s, 5m or 00:05:00"),
        ("05:00", "'05:00': not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        ("", "'': not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        ("5 minutes", "'5 minutes': not a duration; write the unit, for instance 30s, "
                      "5m or 00:05:00"),
        ("30m1h", "'30m1h': not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        (True, "True: not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        (None, "None: not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
        ("99999999d", "'99999999d': more than a century; write a shorter duration"),
        ("٣s", "'٣s': not a duration; write the unit, for instance 30s, 5m or 00:05:00"),
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_would_be_right(
    given_value: object, message: str
) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole text is compared below
        parse_duration(given_value)
    assert str(refused.value) == message


@given(st.integers(min_value=1, max_value=10**9))
def test_a_formatted_duration_reads_back_to_the_millisecond(milliseconds: int) -> None:
    assert parse_duration(format_duration(milliseconds / 1000)) == pytest.approx(
        milliseconds / 1000, abs=5e-4
    )


def test_a_model_field_holds_seconds_and_refuses_a_bare_number() -> None:
    class Holder(BaseModel):
        wait: Duration = 2.0

    assert Holder().wait == 2.0
    assert Holder.model_validate({"wait": "1h30m"}).wait == 5400.0
    with pytest.raises(ValidationError, match="'30': a bare number"):
        Holder.model_validate({"wait": 30})
    assert Holder.model_json_schema()["properties"]["wait"]["type"] == "string"
