"""What the values of a record are to the rules: equal, ordered, text, shown.

Records are untrusted: whatever JSON can hold may be in them, nested as deep and as large as its
author liked. Nothing here raises, and nothing takes more time or space than its result is worth.

* A boolean is no number: ``true`` equals ``true`` only, and has no order.
* ``null`` equals ``null`` only and has no order; nor has a mapping.
* Two numbers compare by value, integers exactly; NaN equals nothing, itself included.
* Two texts compare by code points, two lists item by item. Different kinds are never equal.
* What is nested more than 64 levels deep equals nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Final, TypeGuard

_DEEPEST = 64  # levels that equality and order look into
_LEAVES = 100_000  # parts of one value that are searched for text
_SHOWN = 80  # characters of one value in a detail
_SHORT_INT = 4096  # bits of an integer that has a text; Python itself refuses from 14,000 on
_SHORT_INT_SHOWN = 128


class Missing(Enum):
    """The one value that stands for a field the record does not have."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_record(value: object) -> TypeGuard[Mapping[str, object]]:
    return type(value) is dict or isinstance(value, Mapping)  # the first is ten times faster


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def same(left: object, right: object, depth: int = _DEEPEST) -> bool:
    """Whether two values are equal."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_number(left):
        return is_number(right) and left == right
    if isinstance(left, str):
        return isinstance(right, str) and left == right
    if depth == 0:
        return False
    if is_list(left):
        if not is_list(right) or len(left) != len(right):
            return False
        return all(same(a, b, depth - 1) for a, b in zip(left, right, strict=True))
    if isinstance(left, Mapping):
        if not isinstance(right, Mapping) or len(left) != len(right):
            return False
        return all(same(v, right.get(k, MISSING), depth - 1) for k, v in left.items())
    return left is right


def order(left: object, right: object, depth: int = _DEEPEST) -> int | None:
    """-1, 0 or 1 as ``left`` is below, equal to or above ``right``; ``None``: no order."""
    if is_number(left):
        if not is_number(right) or isinstance(left, bool):
            return None
        return -1 if left < right else 1 if left > right else 0 if left == right else None
    if isinstance(left, str):
        if not isinstance(right, str):
            return None
        return (left > right) - (left < right)
    if not is_list(left) or not is_list(right) or depth == 0:
        return None
    for a, b in zip(left, right, strict=False):
        if not same(a, b, depth - 1):
            return order(a, b, depth - 1)
    return (len(left) > len(right)) - (len(left) < len(right))


def text_of(value: object) -> str | None:
    """The text that patterns see: text as it is, numbers and booleans as Python writes them.

    Lists and mappings are their JSON. ``null`` has no text, nor has an integer beyond 4,096 bits
    or what nests too deep for JSON.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return None
    if isinstance(value, bool | float):
        return str(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _SHORT_INT else None
    try:
        return json.dumps(value, ensure_ascii=False, default=_unknown)
    except (ValueError, TypeError, RecursionError):  # a cycle, a key of another kind, too deep
        return None


def texts_in(value: object) -> Iterator[str]:
    """Every text in a value: of a list its items', of a mapping its keys' and values'."""
    left = [value]
    for _ in range(_LEAVES):
        if not left:
            return
        part = left.pop()
        if is_list(part):
            left.extend(reversed(part))
        elif isinstance(part, Mapping):
            left.extend(part.values())
            left.extend(part.keys())
        elif (text := text_of(part)) is not None:
            yield text


def kind_of(value: object) -> str:
    """A value's kind in words, as in "a list"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if is_number(value):
        return "a number"
    if isinstance(value, str):
        return "text"
    if is_list(value):
        return "a list"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def shown(value: object, limit: int = _SHOWN) -> str:
    """A value for a detail, of at most ``limit`` characters or so."""
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= limit else f"{value[: limit - 1]!r}…"
    if isinstance(value, int) and value.bit_length() > _SHORT_INT_SHOWN:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float):
        return repr(value)
    if is_list(value):
        return _joined((shown(v, limit // 2) for v in value), "[]", len(value), limit)
    if isinstance(value, Mapping):
        parts = (f"{shown(k, limit // 2)}: {shown(v, limit // 2)}" for k, v in value.items())
        return _joined(parts, "{}", len(value), limit)
    return f"a {type(value).__name__}"


def clipped(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _joined(parts: Iterator[str], ends: str, count: int, limit: int) -> str:
    if limit < 10:  # deep inside: its size says enough
        return f"{ends[0]}{count} items{ends[1]}" if count else ends
    written: list[str] = []
    length = 0
    for part in parts:
        written.append(part)
        length += len(part) + 2
        if length > limit:
            break
    left = count - len(written)
    return f"{ends[0]}{', '.join(written)}{f', … {left} more' if left else ''}{ends[1]}"


def _unknown(value: object) -> str:
    return f"a {type(value).__name__}"
