"""What the tests' campaigns over two parameters share: the space, and candidates for it."""

from __future__ import annotations

from typing import Any

GOOD = [{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}, {"x": 0.3, "y": 0.6}]
"""A batch that every check and verifier lets pass."""
STEEP = {"x": 0.4, "y": 0.95}
"""What the rule LEVEL rejects."""
LEVEL = {"id": "level", "type": "expression", "params": {"condition": "x + y <= 1"}}


def square() -> dict[str, dict[str, Any]]:
    """The parameters x and y, each from 0 to 1; a copy, which a test may change."""
    return {name: {"type": "float", "min": 0.0, "max": 1.0} for name in ("x", "y")}
