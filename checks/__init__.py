"""The gate: checks on what an agent proposes, before it becomes work that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checks.accept import Attempt, NotAccepted, Outcome, Rejected, accept
from checks.finding import Finding, Layer, Severity, Status, Verdict

if TYPE_CHECKING:
    from checks.custom import CheckError, check
    from checks.suite import Suite, SuiteError, compile_suite

__all__ = [
    "Attempt",
    "CheckError",
    "Finding",
    "Layer",
    "NotAccepted",
    "Outcome",
    "Rejected",
    "Severity",
    "Status",
    "Suite",
    "SuiteError",
    "Verdict",
    "accept",
    "check",
    "compile_suite",
]

# The rules bring a parser and a matcher; who only accepts does not wait for them.
_LATER = {
    "CheckError": "checks.custom",
    "Suite": "checks.suite",
    "SuiteError": "checks.suite",
    "check": "checks.custom",
    "compile_suite": "checks.suite",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'checks' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)
