"""A judge's reply -> its vote. Anything but exactly one verdict is no vote."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field

_LONGEST = 20_000  # characters of a reply that is read
_REASON = 300
_FENCED = re.compile(r"```[a-zA-Z]*\s*\n(.*?)\n?\s*```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Vote:
    passed: bool
    reason: str = field(default="", repr=False)


def read(reply: object) -> Vote | str:
    """The vote of a reply that is one object with a boolean ``passed``, else what it is instead.

    The object may stand in a code fence, and may be written as Python writes it.
    """
    if not isinstance(reply, str):
        return f"the reply is a {type(reply).__name__}, not text"
    text = reply.strip()
    if fenced := _FENCED.match(text):
        text = fenced[1].strip()
    found = _object(text) if len(text) <= _LONGEST else None
    if isinstance(found, dict) and isinstance(found.get("passed"), bool):
        reason = found.get("reason")
        said = " ".join(reason.split()) if isinstance(reason, str) else ""
        return Vote(found["passed"], said[:_REASON])
    cut = reply if len(reply) <= 80 else f"{reply[:79]}…"
    return f"the reply is no verdict: {cut!r}"


def _object(text: str) -> object:
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)  # literals only, nothing is run
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None
