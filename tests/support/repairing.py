"""What the tests of the repair requirements share: one round, its candidates, its events."""

from __future__ import annotations

from typing import Any, TypeVar

import running
from campaign.config import CampaignConfig

E = TypeVar("E")

GOOD = [{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}, {"x": 0.3, "y": 0.6}]
UNSTABLE = {"x": 0.9, "y": 0.05}
"""What the verifier rejects."""
OUTSIDE = {"x": 0.1, "y": 1.5}
STEEP = {"x": 0.4, "y": 0.95}
"""What the rule LEVEL rejects."""
LEVEL = {
    "id": "level",
    "type": "expression",
    "params": {"condition": "x + y <= 1"},
    "hint": "lower y",
}
EMPTY: dict[str, Any] = {}
"""What is no candidate, though it stands in the place of one."""


def config(*rules: object, agent: dict[str, Any] | None = None, **changes: Any) -> CampaignConfig:
    """One round of three candidates, a verifier, an agent that is called; these ``rules``."""
    asked = {"kind": "python", "function": "tests:any", "backoff": "0.001s", "suggest": False}
    expect = ({"expectations": list(rules)} if rules else {}) | changes.pop("expect", {})
    return running.config(
        **{"rounds": 1, "agent": asked | (agent or {}), "expect": expect} | changes
    )


def of(ran: running.Ran, kind: type[E]) -> list[E]:
    """The events of a kind, in their order."""
    return [entry.event for entry in ran.entries if isinstance(entry.event, kind)]
