"""The tasks of the small campaign."""

from __future__ import annotations


def verify(candidate: dict[str, float]) -> dict[str, object]:
    if candidate["x"] > 0.7:
        return {"verdict": "reject", "reason": f"x: {candidate['x']}; at most 0.7 is stable"}
    return {"verdict": "pass"}


def simulate(candidate: dict[str, float]) -> dict[str, float]:
    return {"loss": (candidate["x"] - 0.3) ** 2 + (candidate["y"] - 0.6) ** 2}
