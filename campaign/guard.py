"""The guard of the simulation: a last condition on a candidate and on what was said of it."""

from __future__ import annotations

from campaign.space import Point
from campaign.taskconfig import Guard
from checks.finding import Verdict

VERDICT = "expect"
"""What a guard's condition calls the verdict."""


def filtered(guard: Guard | None, point: Point, verdict: Verdict) -> str:
    """Why a candidate is not simulated, ``""`` when it is.

    The verdict has every finding of the candidate's last generation: of the checks that follow
    from the parameter space, of the rules, and of the verifiers.
    """
    if guard is None:
        return ""
    from checks.expression import Condition

    condition = Condition.of(guard.condition, None)
    record = {**point, VERDICT: verdict.as_record()}
    held = condition.holds(record)
    if held:
        return ""
    if held is None:
        return f"filtered by the guard: {condition.said()}: {condition.unknown(record)}"
    return f"filtered by the guard: {condition.said()} is false ({condition.seen(record)})"
