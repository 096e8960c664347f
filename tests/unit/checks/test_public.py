"""What the package offers, and what offering it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import checks

PUBLIC = [
    "Attempt", "CheckError", "Finding", "Layer", "NotAccepted", "Outcome", "Rejected", "Severity",
    "Status", "Suite", "SuiteError", "Verdict", "accept", "check", "compile_suite",
]  # fmt: skip


def test_the_public_names_are_these_and_can_be_imported() -> None:
    assert checks.__all__ == PUBLIC
    assert all(getattr(checks, name) is not None for name in PUBLIC)


def test_a_name_that_is_not_there_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        checks.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import checks", {"lark", "re2", "numpy", "scipy"}),
        (
            "from checks import compile_suite as c; "
            "c([{'type': 'value_between', 'field': 'a', 'params': {'min': 1}}]).judge({'a': 2})",
            {"lark", "re2", "numpy", "scipy"},
        ),
    ],
    ids=["import", "a numeric rule"],
)
def test_the_parser_the_matcher_and_numpy_are_loaded_when_they_are_needed(
    code: str, unwanted: set[str]
) -> None:
    script = f"{code}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert not set(done.stdout.split()) & unwanted
