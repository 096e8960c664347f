"""Checks of the user's own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checks import Finding, Status, check, compile_suite
from checks.custom import CheckError, discover, rule_type
from checks.suite import SuiteError

EVEN = """
from checks import check

@check("even", params=("offset",), required=("offset",))
def even(value, params):
    return (value + params["offset"]) % 2 == 0, f"{value} is odd"
"""


def answered(function: Callable[..., object], value: object, **entry: Any) -> Finding:
    kind = rule_type(check("mine", params=("p",))(function))
    rule = {"type": "mine", "field": "a", **entry}
    return compile_suite([rule], types={"mine": kind}).judge({"a": value}).findings[0]


def test_a_check_found_in_a_folder_is_a_type_of_rule(tmp_path: Path) -> None:
    (tmp_path / "parity.py").write_text(EVEN)
    rule = {"type": "even", "field": "cells", "params": {"offset": 1}}
    suite = compile_suite([rule], types=discover(tmp_path))
    passes, fails = suite.judge_batch([{"cells": 3}, {"cells": 4}])
    assert passes.overall_pass
    assert fails.findings[0].reason == "4 is odd"


def test_its_parameters_are_checked_like_any_types(tmp_path: Path) -> None:
    (tmp_path / "parity.py").write_text(EVEN)
    with pytest.raises(SuiteError) as refused:
        compile_suite(
            [{"type": "even", "field": "a", "params": {"ofset": 1}}], types=discover(tmp_path)
        )
    assert "takes no parameter 'ofset'; did you mean offset?" in str(refused.value)
    assert "requires parameter 'offset'" in str(refused.value)


def test_helpers_tests_and_files_without_a_check_are_left_alone(tmp_path: Path) -> None:
    for name in ("_helper.py", "test_parity.py", "plain.py"):
        text = "raise RuntimeError" if name == "plain.py" else EVEN
        (tmp_path / name).write_text(text)
    assert discover(tmp_path) == {}


def test_a_file_can_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "_neighbour_of_mine.py").write_text("LIMIT = 3\n")
    source = EVEN.replace("from checks", "from _neighbour_of_mine import LIMIT\nfrom checks")
    (tmp_path / "parity.py").write_text(source)
    assert list(discover(tmp_path)) == ["even"]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (EVEN, "check 'even': in .*b.py and in .*a.py; rename one"),
        (EVEN.replace('"even"', '"not_null"'), "b.py: CheckError: check 'not_null': is a built-in"),
        (EVEN + "\n1 / 0\n", "b.py: ZeroDivisionError"),
        ("@check(", "b.py: "),
    ],
    ids=["twice", "built-in", "raises", "no Python"],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, second: str, message: str) -> None:
    (tmp_path / "a.py").write_text(EVEN)
    (tmp_path / "b.py").write_text(second)
    with pytest.raises(CheckError, match=message):
        discover(tmp_path)


def test_finding_the_same_files_again_is_safe(tmp_path: Path) -> None:
    (tmp_path / "parity.py").write_text(EVEN)
    assert list(discover(tmp_path)) == list(discover(tmp_path))


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ({"name": "Two Words"}, "no usable name"),
        ({"name": "llm_judge"}, "is a built-in type"),
        ({"name": "mine", "required": ("limit",)}, "required 'limit' is not among params"),
        ({"name": "mine", "params": ("row_condition",)}, "row_condition is for every type"),
        ({"name": "mine", "scope": "batch"}, "it is 'field' or 'record'"),
    ],
)
def test_a_declaration_that_no_rule_could_use_is_refused(
    declaration: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckError, match=message):
        check(**declaration)


def test_an_async_function_is_no_check() -> None:
    async def later(_: object, __: object) -> tuple[bool, str]:
        return True, ""

    with pytest.raises(CheckError, match="a check is a plain function"):
        check("later")(later)


def test_what_can_never_answer_is_no_check() -> None:
    def alone(_: object) -> tuple[bool, str]:
        return True, ""

    def yields(_: object, __: object) -> Iterator[tuple[bool, str]]:
        yield True, ""

    with pytest.raises(CheckError, match=r"takes .*; define it as function\(value, params"):
        check("alone")(alone)
    with pytest.raises(CheckError, match="'yields': a generator"):
        check("yields")(yields)


def test_a_check_without_a_name_is_refused_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text("from checks import check\n@check\ndef f(v, p): ...\n")
    with pytest.raises(CheckError, match=r"bare\.py: .*write @check\('f'\)"):
        discover(tmp_path)


def test_a_check_that_leaves_the_program_does_not(tmp_path: Path) -> None:
    def leaves(_: object, __: object) -> tuple[bool, str]:
        sys.exit(0)

    finding = answered(leaves, 1)
    assert (finding.status, finding.reason) == (Status.ERROR, "check raised SystemExit: 0")
    (tmp_path / "leaves.py").write_text(f"import sys\nsys.exit(0)\n{EVEN}")
    with pytest.raises(CheckError, match=r"leaves\.py: SystemExit: 0"):
        discover(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    with pytest.raises(CheckError, match=r"gone\.py: cannot be read: No such file"):
        discover(tmp_path)


def test_a_boolean_of_numpy_is_one() -> None:
    assert answered(lambda value, _: (np.float64(value) > 0, ""), 1).passed
    assert not answered(lambda value, _: (np.float64(value) > 1, "small"), 1).passed


def test_a_detail_that_is_no_unicode_is_escaped() -> None:
    assert answered(lambda _, __: (False, "a\ud800"), 1).reason == r"a\ud800"


def test_where_a_check_raised_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    def always(_: object, __: object) -> tuple[bool, str]:
        raise LookupError("each time")

    for value in range(3):
        answered(always, value)
    assert [one.getMessage().splitlines()[0] for one in caplog.records] == [
        "check mine raised LookupError"
    ]


def test_a_check_that_raises_is_an_error_and_the_run_goes_on() -> None:
    def broken(value: Any, _: object) -> tuple[bool, str]:
        return 1 / value > 1, ""

    finding = answered(broken, 0)
    assert finding.status is Status.ERROR
    assert finding.reason == "check raised ZeroDivisionError: division by zero"
    assert not finding.passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (True, "TypeError: answered true; return (passed, detail)"),
        (None, "TypeError: answered null"),
        (("no", "x"), "TypeError: passed is 'no'; return True or False"),
        ((False, None), "TypeError: detail is null; return a string"),
        ((1, ""), "TypeError: passed is 1"),
        ((True, "", 3), "TypeError: answered"),
    ],
)
def test_an_answer_of_another_shape_is_an_error(answer: object, message: str) -> None:
    finding = answered(lambda _, __: answer, 1)
    assert finding.status is Status.ERROR
    assert finding.reason.startswith(f"check raised {message}")


def test_a_failure_without_a_word_says_so() -> None:
    assert answered(lambda _, __: (False, ""), 1).reason == "failed, and did not say why"


def test_a_check_cannot_change_the_candidate_or_its_rule() -> None:
    def spoils(value: Any, params: Any) -> tuple[bool, str]:
        value.append(1)
        params["p"].append(1)
        return len(value) == 1 and len(params["p"]) == 1, "grew"

    candidate: list[int] = []
    entry: dict[str, Any] = {"params": {"p": []}}
    assert answered(spoils, candidate, **entry).passed
    assert answered(spoils, candidate, **entry).passed
    assert candidate == []


def test_what_ends_the_program_is_not_caught() -> None:
    def stops(_: object, __: object) -> tuple[bool, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        answered(stops, 1)


def test_each_item_is_asked_once_and_told_by_its_index() -> None:
    asked: list[int] = []

    def small(value: int, _: object) -> tuple[bool, str]:
        asked.append(value)
        return value < 2, f"{value} is too much"

    finding = answered(small, [1, 2, 3], field="a[*]")
    assert finding.reason == "[1]: 2 is too much; [2]: 3 is too much"
    assert asked == [1, 2, 3]


def test_a_check_of_the_record_takes_no_field() -> None:
    @check("sums", scope="record")
    def sums(record: Any, _: object) -> tuple[bool, str]:
        return record["a"] + record["b"] == 1, "expected a + b to be 1"

    suite = compile_suite([{"type": "sums"}], types={"sums": rule_type(sums)})
    assert [v.overall_pass for v in suite.judge_batch([{"a": 0, "b": 1}, {"a": 1}])] == [
        True,
        False,
    ]
