"""What the tests of the repair requirements share: one round, its candidates, its events."""

from __future__ import annotations

from typing import Any

import running
import square
from campaign.config import CampaignConfig

UNSTABLE = {"x": 0.9, "y": 0.05}
"""What the verifier rejects."""
OUTSIDE = {"x": 0.1, "y": 1.5}
LEVEL = square.LEVEL | {"hint": "lower y"}
EMPTY: dict[str, Any] = {}
"""What is no candidate, though it stands in the place of one."""


def config(*rules: object, agent: dict[str, Any] | None = None, **changes: Any) -> CampaignConfig:
    """One round of three candidates, a verifier, an agent that is called; these ``rules``."""
    asked = {"kind": "python", "function": "tests:any", "backoff": "0.001s", "suggest": False}
    expect = ({"expectations": list(rules)} if rules else {}) | changes.pop("expect", {})
    return running.config(
        **{"rounds": 1, "agent": asked | (agent or {}), "expect": expect} | changes
    )
