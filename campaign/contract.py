"""What a task's answer must look like, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from campaign.events import TaskEnded
from checks.values import clipped

Contract: TypeAlias = Callable[[object], str]  # what is wrong with an answer; "" when nothing is

DONE = "done"


def simulation_contract(objective: str) -> Contract:
    """A mapping with a finite number under the objective's name."""

    def check(value: object) -> str:
        if not isinstance(value, Mapping):
            return f"answered {_clip(value)}; a mapping with {objective!r} in it is wanted"
        if objective not in value:
            found = ", ".join(map(repr, value)) or "nothing"
            return f"answered {clipped(found, 120)}; the objective {objective!r} is not among it"
        if not _finite(value[objective]):
            return f"{objective}: {_clip(value[objective])}; a finite number is wanted"
        return ""

    return check


def verifier_contract(value: object) -> str:
    """``{"verdict": "pass"}`` or ``{"verdict": "reject", "reason": …}``, with any ``metrics``."""
    wanted = 'a verifier answers {"verdict": "pass"} or {"verdict": "reject", "reason": "…"}'
    if not isinstance(value, Mapping) or value.get("verdict") not in ("pass", "reject"):
        return f"answered {_clip(value)}; {wanted}"
    if value["verdict"] == "reject" and not (
        isinstance(value.get("reason"), str) and value["reason"].strip()
    ):
        return "rejected without a reason; give one that an agent can act on"
    if not isinstance(value.get("metrics", {}), Mapping):
        return f"metrics: {_clip(value['metrics'])}; a mapping is wanted"
    return ""


def objective_value(ended: TaskEnded | None, objective: str) -> float | None:
    """The observed objective, None when the simulation failed or has not ended."""
    if ended is None or ended.status != DONE or not isinstance(ended.value, dict):
        return None
    value = ended.value.get(objective)
    return float(value) if value is not None and _finite(value) else None


def rejects(ended: TaskEnded | None) -> bool:
    """Whether a verifier's answer is a rejection."""
    return (
        ended is not None
        and ended.status == DONE
        and isinstance(ended.value, dict)
        and ended.value.get("verdict") == "reject"
    )


def refusal(ended: TaskEnded | None) -> str:
    """Why a verifier rejected, ``""`` where it did not."""
    return str(ended.value["reason"]) if ended is not None and rejects(ended) else ""


def _finite(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


def _clip(value: object) -> str:
    return clipped(repr(value), 120)
