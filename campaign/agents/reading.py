"""From an agent's text to its candidates: the one place where an answer is parsed.

The text is untrusted: whatever it is, reading it takes time linear in its length, and nothing but
``Rejected`` is raised for it. Reasons go into the ledger, so they never quote it.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from campaign.grounding import RATIONALE
from campaign.judging import CANDIDATES
from checks import Rejected

LONGEST_RATIONALE = 2000
"""The most characters a rationale may have."""

_BEGINS = re.compile(r'\{[ \t\n\r]*+(?=["}])')  # a brace of prose is followed by neither
_CUT_OFF = ("length", "max_tokens", "max_output_tokens")
_DEEPEST = 20  # containers within one another
_KEY = 40  # characters of a key that is named
_NAMED = 5  # keys that are named one by one
_GIVE = f"give one JSON object with {RATIONALE} and {CANDIDATES}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer says; ``beside`` holds the further keys that were allowed. Untrusted."""

    candidates: tuple[object, ...]
    rationale: str = field(default="", repr=False)
    beside: Mapping[str, object] = field(default_factory=dict, repr=False)


def read(
    text: str | None,
    *,
    finish_reason: str = "",
    refusal: str | None = None,
    beside: Collection[str] = (),
) -> Reading:
    """The candidates and the rationale of an answer.

    The text holds exactly one JSON object; prose or a fence around it does no harm. ``beside``
    names keys that it may have besides the two. Raises ``Rejected``, and nothing else, whose
    ``check`` is the stage that rejected it: ``truncation``, ``filtered``, ``refusal``, ``empty``
    or ``schema``.
    """
    check_ending(finish_reason, refusal)
    if text is None or not text.strip():
        raise Rejected(f"the answer is empty; {_GIVE}", check="empty")
    found = _only_object(text)
    if unknown := [key for key in found if key not in (RATIONALE, CANDIDATES, *beside)]:
        raise _malformed(f"{_names(unknown)}: unknown key; {_GIVE} alone")
    return Reading(
        _candidates(found),
        _rationale(found.get(RATIONALE, "")),
        {key: found[key] for key in beside if key in found},
    )


def check_ending(finish_reason: str = "", refusal: str | None = None) -> None:
    """Raise ``Rejected`` where an answer did not end of its own accord, whatever its text is."""
    ended = finish_reason.casefold()
    if ended in _CUT_OFF:
        why = "the answer was cut off at the limit of its length; answer more briefly"
        raise Rejected(why, check="truncation")
    if ended == "content_filter":
        raise Rejected("the server filtered the answer; answer otherwise", check="filtered")
    if ended == "refusal" or (refusal is not None and refusal.strip()):
        raise Rejected(f"the agent refused to answer; {_GIVE}", check="refusal")


def _only_object(text: str) -> dict[str, object]:
    begin = _BEGINS.search(text)
    if begin is None:
        raise _malformed(f"the answer holds no JSON object; {_GIVE}")
    if text[: begin.start()].rstrip().endswith("["):
        raise _malformed(f"the answer is a list; {_GIVE}")
    try:
        found, end = _DECODER.raw_decode(text, begin.start())
        shallow = _is_shallow(found)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise _malformed(f"the answer is no valid JSON at {where}; {_GIVE}") from None
    except RecursionError:
        shallow = False
    except ValueError:  # what `int` says of thousands of digits
        raise _malformed("a number is too long; give numbers of at most 17 digits") from None
    if not shallow:
        raise _malformed(f"the answer is nested too deeply; {_GIVE}")
    if _BEGINS.search(text, end):
        raise _malformed(f"the answer holds more than one JSON object; {_GIVE}")
    assert isinstance(found, dict)  # it began with a brace
    return found


def _candidates(found: Mapping[str, object]) -> tuple[object, ...]:
    if CANDIDATES not in found:
        raise _malformed(f"{CANDIDATES}: missing; give a list of objects")
    candidates = found[CANDIDATES]
    if not isinstance(candidates, list):
        raise _malformed(f"{CANDIDATES}: {_kind(candidates)}; give a list of objects")
    for index, one in enumerate(candidates):
        if not isinstance(one, dict):
            raise _malformed(f"{CANDIDATES}[{index}]: {_kind(one)}; give an object of parameters")
    return tuple(candidates)


def _rationale(found: object) -> str:
    if not isinstance(found, str):
        raise _malformed(f"{RATIONALE}: {_kind(found)}; give text")
    if len(found) > LONGEST_RATIONALE:
        most = f"give at most {LONGEST_RATIONALE}"
        raise _malformed(f"{RATIONALE}: {len(found)} characters; {most}")
    if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n\r" for c in found):
        raise _malformed(f"{RATIONALE}: control characters; give plain text")
    return found


def _malformed(reason: str) -> Rejected:
    return Rejected(reason, check="schema")


def _names(keys: list[str]) -> str:
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return ", ".join(_name(key) for key in keys[:_NAMED]) + more


def _name(key: str) -> str:
    """A key on one line, in space that does not depend on it."""
    cut = key if len(key) <= _KEY else f"{key[: _KEY - 1]}…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut) or "an empty key"


def _kind(value: object) -> str:
    match value:
        case None:
            return "found null"
        case bool():
            return "found a boolean"
        case str():
            return "found text"
        case list():
            return "found a list"
        case dict():
            return "found an object"
        case _:
            return "found a number"


def _is_shallow(value: object) -> bool:
    """Whether no more containers than ``_DEEPEST`` stand within one another."""
    level: list[Any] = [value]  # of containers alone
    for _ in range(_DEEPEST + 1):
        level = [
            one
            for holder in level
            for one in (holder.values() if type(holder) is dict else holder)
            if one and type(one) in (dict, list)
        ]
        if not level:
            return True
    return False


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise _malformed(f"{_name(twice)}: given twice; give each key once")
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _malformed("a number is beyond any float; give finite numbers")
    return number


def _no_constant(name: str) -> object:
    raise _malformed(f"{name} is no JSON; give finite numbers")  # one of three names of Python's


_DECODER = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant
)
