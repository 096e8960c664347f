"""A choice that looks like a view's own markup, and answers with much that is wrong."""

from __future__ import annotations

from square import square

ODD = "[/red][bold]:smile:"
SPACE = square() | {"kind": {"type": "categorical", "choices": [ODD, "b"]}}
ANSWERS = [
    [{"x": 0.9, "y": 0.1, "kind": ODD}, {"x": 0.1, "y": 7.0, "kind": ODD}, None],
    [{"x": 0.2, "y": 0.1, "kind": ODD}, {"x": 0.3, "y": 0.5, "kind": "b"}, {"kind": 5}],
]
