"""Durations as people write them: ``30s``, ``1h30m``, ``00:05:00``, ``1-00:00:00``.

A bare number is refused, because nobody can tell whether it means seconds or minutes.
"""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, WithJsonSchema

_FORMS = "write the unit, for instance 30s, 5m or 00:05:00"
_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_WORDS = re.compile(
    r"(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?"
    r"(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?",
    re.ASCII,
)
_CLOCK = re.compile(r"(?:(?P<d>\d+)-)?(?P<h>\d+):(?P<m>\d{2}):(?P<s>\d{2})", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
# A century: anything above is a slip, and far above it the arithmetic of deadlines loses meaning.
_LONGEST = 100 * 366 * 86400.0


def parse_duration(text: object) -> float:
    """Seconds of a duration such as ``30s``, ``1h30m``, ``00:05:00`` or ``1-00:00:00``.

    Raises ``ValueError`` for a bare number, for zero or less and for anything else.
    """
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        raise ValueError(f"{str(text)!r}: a bare number; {_FORMS}")
    if not isinstance(text, str):
        raise ValueError(f"{text!r}: not a duration; {_FORMS}")
    compact = text.strip()
    if _NUMBER.fullmatch(compact):
        raise ValueError(f"{compact!r}: a bare number; {_FORMS}")
    match = _CLOCK.fullmatch(compact) or _WORDS.fullmatch(compact.lower().replace(" ", ""))
    if match is None or not any(match.groupdict().values()):
        raise ValueError(f"{text!r}: not a duration; {_FORMS}")
    parts = {unit: float(value) for unit, value in match.groupdict().items() if value}
    if match.re is _CLOCK and (parts["m"] > 59 or parts["s"] > 59):
        raise ValueError(f"{text!r}: minutes and seconds go up to 59; {_FORMS}")
    seconds = sum(_SECONDS[unit] * value for unit, value in parts.items())
    if seconds <= 0:
        raise ValueError(f"{text!r}: no time at all; a duration is more than zero")
    if seconds > _LONGEST:
        raise ValueError(f"{text!r}: more than a century; write a shorter duration")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest form :func:`parse_duration` reads back: ``90.0`` is ``1m30s``."""
    whole, fraction = divmod(seconds, 1)
    rest, text = int(whole), ""
    for unit in ("d", "h", "m"):
        count, rest = divmod(rest, _SECONDS[unit])
        text += f"{count}{unit}" if count else ""
    if rest or fraction or not text:
        text += f"{rest + fraction:.3f}".rstrip("0").rstrip(".") + "s"
    return text


Duration: TypeAlias = Annotated[
    float,
    BeforeValidator(parse_duration),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^(\d+(\.\d+)?[dhms] ?)+$|^(\d+-)?\d+:\d{2}:\d{2}$",
            "examples": ["30s", "5m", "1h30m", "00:05:00", "1-00:00:00"],
        }
    ),
]
"""A pydantic field holding seconds (float), written as text with its unit."""
