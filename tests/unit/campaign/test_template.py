"""Placeholders in arguments and in rendered files."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from campaign.template import (
    TemplateError,
    file_placeholders,
    placeholders,
    render,
    render_file,
    text_of,
    unknown_placeholders,
)

VALUES = {"density": "0.82", "seed": "7"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{density}", "0.82"),
        ("rho={density},seed={seed}", "rho=0.82,seed=7"),
        ("no placeholder", "no placeholder"),
        ("{{density}}", "{density}"),
        ("{{{density}}}", "{0.82}"),
        ('{{"rho": {density}}}', '{"rho": 0.82}'),
        ("", ""),
    ],
)
def test_names_in_braces_are_filled_and_double_braces_are_braces(text: str, expected: str) -> None:
    assert render(text, VALUES) == expected


def test_a_value_is_never_taken_for_a_template() -> None:
    assert render("{a}{b}", {"a": "{b}", "b": "}}"}) == "{b}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{densty}", "unknown placeholder '{densty}'; did you mean 'density'? known: 'density', "),
        ("a {", "'{' at character 3 is no placeholder; write {name}, or {{ and }} for literal"),
        ("a } b", "'}' at character 3 is no placeholder"),
        ("{}", "'{}' at character 1 is no placeholder"),
        ("{0}", "'{0}' at character 1 is no placeholder"),
        ("{density:.3f}", "'{density:.3f}' at character 1 is no placeholder"),
        ("{density!r}", "'{density!r}' at character 1 is no placeholder"),
        ("{a.b}", "'{a.b}' at character 1 is no placeholder"),
    ],
)
def test_a_stray_brace_and_an_unknown_name_are_refused(text: str, expected: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render(text, VALUES)
    assert str(caught.value).startswith(expected)


def test_placeholders_are_listed_in_order() -> None:
    assert placeholders("{b} {{c}} {a} {b}") == ("b", "a", "b")


def test_every_unknown_name_of_a_text_is_told_once() -> None:
    found = list(unknown_placeholders("{a} {seed} {b} {a}", VALUES))
    assert [one.split(";")[0] for one in found] == [
        "unknown placeholder '{a}'",
        "unknown placeholder '{b}'",
    ]
    assert list(unknown_placeholders("{seed}", VALUES)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("variable rho equal @density@\n", "variable rho equal 0.82\n"),
        ("@density@@seed@", "0.827"),
        ("mail me@example.org, a @ b", "mail me@example.org, a @ b"),
        ("@@density@@", "@density@"),
        ("@@@density@@@", "@0.82@"),
        ("{density} ${x} %d", "{density} ${x} %d"),
    ],
)
def test_names_between_at_signs_are_filled_in_files(text: str, expected: str) -> None:
    assert render_file(text, VALUES) == expected


def test_unknown_names_in_a_file_are_refused_with_their_lines() -> None:
    with pytest.raises(TemplateError) as caught:
        render_file("first\n@densty@ @seed@\nC = A@B@C\n", VALUES)
    assert str(caught.value) == (
        "line 2: unknown placeholder '@densty@'; did you mean 'density'? known: 'density', 'seed'; "
        "line 3: unknown placeholder '@B@'; known: 'density', 'seed'; write @@ for a literal @"
    )


def test_placeholders_of_a_file_are_listed_with_their_lines() -> None:
    assert file_placeholders("@a@\n@@b@@\n@c@ @a@") == ((1, "a"), (3, "c"), (3, "a"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, "true"), (False, "false"), (3, "3"), ("a b", "a b"), (0.1, "0.1"), (-0.0, "0.0")],
)
def test_values_are_written_as_commands_read_them(value: float | str, expected: str) -> None:
    assert text_of(value) == expected


def test_a_number_of_numpy_is_written_as_a_plain_one() -> None:
    numpy = pytest.importorskip("numpy")
    assert text_of(numpy.float64(0.82)) == "0.82"


@given(st.floats(allow_nan=False))
def test_a_float_reads_back_exactly(value: float) -> None:
    assert float(text_of(value)) == value


@given(st.text())
def test_any_text_survives_when_its_marks_are_doubled(text: str) -> None:
    assert render(text.replace("{", "{{").replace("}", "}}"), {}) == text
    assert render_file(text.replace("@", "@@"), {}) == text
