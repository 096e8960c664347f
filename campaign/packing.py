"""Untrusted values as a ledger can hold them, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_MOST_BITS = 1024  # of an integer kept as a number: beyond any float
_MOST_DEPTH = 100


def pack(value: object, depth: int = 0) -> Any:
    """Make untrusted JSON-like data safe for a ledger: NaN and infinities as ``{"$float": …}``.

    A mapping that looks like one of these marks is wrapped as ``{"$plain": …}``. What JSON cannot
    hold, or not without a reader that sets no bounds, becomes text that says what it was.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MOST_BITS else f"(an integer of {bits} bits)"
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > _MOST_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, (list, tuple)):
        return [pack(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        plain = {text(str(key)): pack(item, depth + 1) for key, item in value.items()}
        return {"$plain": plain} if _is_mark(plain) else plain
    return text(repr(value))


def unpack(value: Any) -> Any:
    """The inverse of :func:`pack`."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if isinstance(value, dict):
        if _is_mark(value):
            return float(value["$float"]) if "$float" in value else _items(value["$plain"])
        return _items(value)
    return value


def text(value: str) -> str:
    """Text as UTF-8 can hold it: half surrogates, which JSON smuggles in, as their escapes."""
    return value.encode("utf-8", "backslashreplace").decode()


def _items(value: dict[str, Any]) -> dict[str, Any]:
    return {key: unpack(item) for key, item in value.items()}


def _is_mark(value: dict[str, Any]) -> bool:
    return len(value) == 1 and ("$float" in value or "$plain" in value)
