"""The checks that follow from the parameter space and the batch size; nobody writes them.

Candidates are untrusted: whatever JSON can hold may be in them, and nothing here raises for it.
Reasons are for the agent: values stand in them as JSON, clipped.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, TypeAlias

from checks.finding import Finding, Layer, Status

Key: TypeAlias = tuple[object, ...]
_Defect: TypeAlias = tuple[str, str]  # the check, the reason

_UNKNOWN, _MISSING, _TYPE, _FINITE, _BOUNDS = "unknown", "missing", "type", "finite", "bounds"
_STEP, _DISTINCT, _COUNT = "step", "distinct", "count"
_CHAIN = (_MISSING, _TYPE, _FINITE, _BOUNDS, _STEP)  # each needs what the ones before found

DERIVED = (_COUNT, _UNKNOWN, *_CHAIN, _DISTINCT)
"""Every check of this module, in its order."""

STRUCTURAL = frozenset({_UNKNOWN, _MISSING, _TYPE})
"""The checks without which there is no candidate, but something that only looks like one."""

_WHOLE = 1e-9  # of a step
_SLACK = 4 * 2.0**-52  # of a number of steps, for the rounding of the value

_PLACES = 10  # decimals that tell two candidates apart
_DIGITS = 6  # significant digits kept where ten decimals would merge a whole range
_CLIP_VALUE = 40  # characters
_CLIP_REASON = 200  # characters
_SHORT_INT = 128  # bits of an integer shown in full
_NAMED = 5  # unknown parameters named one by one


@dataclass(frozen=True, slots=True)
class Bound:
    """What one parameter may be.

    ``low`` and ``high`` are inclusive, finite, and only for ``float`` and ``int``;
    ``choices`` only for ``categorical``; ``step``, only for ``float``, is what values are
    multiples of, 0 for any value.
    """

    name: str
    kind: Literal["float", "int", "categorical"]
    low: float = 0.0
    high: float = 0.0
    choices: tuple[bool | int | float | str, ...] = ()
    step: float = 0.0


def judge(
    bounds: Sequence[Bound],
    candidates: Sequence[object],
    *,
    seen: Collection[Key] = (),
    shown: Collection[Key] = (),
    pinned: Sequence[Mapping[str, object]] = (),
    slots: Sequence[int] = (),
) -> tuple[tuple[Finding, ...], ...]:
    """Run every check on every candidate; one tuple of findings for each, in their order.

    ``seen`` are the keys of the campaign's history, best as a set, ``shown`` those of what the
    agent was shown beside it; ``pinned`` the candidates of the same batch that passed already.
    ``slots`` names the candidates in the reasons, by default their positions. Every defect is a
    finding of its own, a check without one passes, and a check that could not look at all of a
    candidate is skipped. Of equal candidates the first keeps its place, but one without another
    defect goes before one with.
    """
    defects = [tuple(_defects(bounds, candidate)) for candidate in candidates]
    keys = [key(bounds, candidate) for candidate in candidates]
    history = seen if isinstance(seen, Set | Mapping) else frozenset(seen)
    fixed = {key(bounds, candidate) for candidate in pinned}
    checks = [c for c in derived(any(bound.step for bound in bounds)) if c != _COUNT]
    owner: dict[Key, int] = {}
    for index in sorted(range(len(keys)), key=lambda i: bool(defects[i])):
        owner.setdefault(keys[index], index)

    def repeats(index: int) -> Iterator[_Defect]:
        own = keys[index]
        first = owner[own]
        if not own:
            return
        if first != index:
            slot = slots[first] if slots else first
            yield _DISTINCT, f"repeats slot {slot}; propose a different candidate"
        if own in fixed:
            yield _DISTINCT, "repeats an accepted candidate of this batch; propose a different one"
        if own in history:
            yield _DISTINCT, "was tried before; propose a different candidate"
        elif own in shown:
            yield _DISTINCT, "is a copy of one that was shown; propose one of your own"

    return tuple(
        _findings(checks, (*defects[index], *repeats(index)), comparable=bool(keys[index]))
        for index in range(len(candidates))
    )


def derived(stepped: bool) -> tuple[str, ...]:
    """The checks that are made, in their order: ``step`` only where a parameter has one."""
    return tuple(check for check in DERIVED if stepped or check != _STEP)


def too_many_or_few(expected: int, found: int) -> Finding:
    """Judge the size of an answer: ``expected`` candidates were asked for, ``found`` came."""
    if found == expected:
        return Finding(_COUNT, Layer.DOMAIN, Status.PASS)
    reason = f"{found} candidates; give exactly {expected}"
    return Finding(_COUNT, Layer.DOMAIN, Status.REJECT, reason)


def normalise(bounds: Sequence[Bound], candidate: object) -> object:
    """Write each value as its parameter's kind does: 5 as 5.0, 5.0 as 5, -0.0 as 0.0.

    Changes no value, only its spelling; a candidate or value that does not fit stays as it is.
    """
    if not isinstance(candidate, Mapping):
        return candidate
    known = {bound.name: bound for bound in bounds}
    return {
        name: _normal(known[name], value) if name in known else value
        for name, value in candidate.items()
    }


def key(bounds: Sequence[Bound], candidate: object) -> Key:
    """Name what makes a candidate the same as another, whatever its values' spelling.

    Floats count to 10 decimals, or more where the parameter's range is too small for ten to
    tell its values apart. ``()`` when a value is missing, not finite or not of its kind: such
    a candidate is the same as no other.
    """
    if not isinstance(candidate, Mapping):
        return ()
    parts = [_identity(bound, candidate.get(bound.name)) for bound in bounds]
    return () if None in parts else tuple(parts)


def whole_steps(value: float, step: float) -> int | None:
    """How many times ``step`` a value is; ``None`` where that is no whole number."""
    try:
        count = value / step
        whole = round(count)
    except (OverflowError, ValueError):  # an integer beyond any float, or not finite
        return None
    return whole if abs(count - whole) <= _WHOLE + _SLACK * abs(count) else None


def _findings(
    checks: Sequence[str], defects: tuple[_Defect, ...], *, comparable: bool
) -> tuple[Finding, ...]:
    by_check: dict[str, list[str]] = {}
    for check, reason in defects:
        by_check.setdefault(check, []).append(reason)
    found: list[Finding] = []
    blocked = False
    for check in checks:
        reasons = by_check.get(check, [])
        layer = Layer.DOMAIN if check == _DISTINCT else Layer.SCHEMA
        unable = blocked if check in _CHAIN else check == _DISTINCT and not comparable
        if reasons:
            found += [Finding(check, layer, Status.REJECT, _clip(r)) for r in reasons]
        elif unable:
            found.append(Finding(check, layer, Status.SKIPPED, "not every value is usable"))
        else:
            found.append(Finding(check, layer, Status.PASS))
        blocked = blocked or (check in _CHAIN and bool(reasons))
    return tuple(found)


def _defects(bounds: Sequence[Bound], candidate: object) -> Iterator[_Defect]:
    """Everything wrong with a candidate by itself."""
    names = ", ".join(bound.name for bound in bounds)
    if not isinstance(candidate, Mapping):
        yield _MISSING, f"candidate: {_shown(candidate)}; give an object with {names}"
        return
    known = {bound.name: bound for bound in bounds}
    unknown = [name for name in candidate if name not in known]
    for name in unknown[:_NAMED]:
        text = name[:_CLIP_VALUE] if isinstance(name, str) else ""
        nearest = difflib.get_close_matches(text, known, n=1)
        advice = f"did you mean {nearest[0]}?" if nearest else f"known are {names}"
        yield _UNKNOWN, f"{_shown(name)}: unknown parameter; {advice}"
    if len(unknown) > _NAMED:
        yield _UNKNOWN, f"{len(unknown) - _NAMED} more unknown parameters; known are {names}"
    for bound in bounds:
        if bound.name not in candidate:
            yield _MISSING, f"{bound.name}: missing; {_wanted(bound)}"
        elif found := _defect(bound, candidate[bound.name]):
            check, advice = found
            yield check, f"{bound.name}: {_shown(candidate[bound.name])}; {advice}"


def _defect(bound: Bound, value: object) -> _Defect | None:
    """What is wrong with one value, the first of its chain only: the check, what is right."""
    if bound.kind == "categorical":
        if _choice(bound, value) is not None:
            return None
        check = _BOUNDS if isinstance(value, int | float | str) else _TYPE
        return check, _wanted(bound)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _TYPE, _wanted(bound)
    if isinstance(value, float) and not math.isfinite(value):
        return _FINITE, _wanted(bound)
    if bound.kind == "int" and isinstance(value, float):
        return _TYPE, _wanted(bound)
    if value < bound.low:
        return _BOUNDS, f"at least {_shown(bound.low)}"
    if value > bound.high:
        return _BOUNDS, f"at most {_shown(bound.high)}"
    if bound.step and whole_steps(value, bound.step) is None:
        return _STEP, f"a multiple of {_shown(bound.step)}"
    return None


def _normal(bound: Bound, value: object) -> object:
    if bound.kind == "categorical":
        index = _choice(bound, value)
        return value if index is None else bound.choices[index]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if bound.kind == "int":
        return int(value) if isinstance(value, float) and value.is_integer() else value
    try:
        return float(value) + 0.0  # which makes -0.0 positive
    except OverflowError:  # an integer beyond any float
        return value


def _identity(bound: Bound, value: object) -> object:
    """The part of a key for one value; ``None`` when it has none."""
    if bound.kind == "categorical":
        return _choice(bound, value)  # an index, since True == 1 == 1.0 as values
    plain = _normal(bound, value)
    if isinstance(plain, bool):
        return None
    if isinstance(plain, int):
        return plain
    if bound.kind == "int" or not isinstance(plain, float) or not math.isfinite(plain):
        return None
    return whole_steps(plain, bound.step) if bound.step else round(plain, _places(bound)) + 0.0


def _places(bound: Bound) -> int:
    across_zero = bound.low <= 0 <= bound.high
    smallest = bound.high - bound.low if across_zero else min(abs(bound.low), abs(bound.high))
    if not 0 < smallest < 10.0 ** (_DIGITS - 1 - _PLACES):
        return _PLACES
    return _DIGITS - 1 - math.floor(math.log10(smallest))


def _choice(bound: Bound, value: object) -> int | None:
    """The index of the choice that ``value`` is; a boolean is no number, ``5.0`` is ``5``."""
    if not isinstance(value, bool | int | float | str):
        return None
    for index, choice in enumerate(bound.choices):
        if isinstance(choice, bool) == isinstance(value, bool) and choice == value:
            return index
    return None


def _wanted(bound: Bound) -> str:
    if bound.kind == "categorical":
        return f"give one of {', '.join(_shown(choice) for choice in bound.choices)}"
    number = "a number" if bound.kind == "float" else "a whole number"
    number = f"a multiple of {_shown(bound.step)}" if bound.step else number
    return f"give {number} from {_shown(bound.low)} to {_shown(bound.high)}"


def _shown(value: object) -> str:
    """A value as an agent would write it, in bounded space and time."""
    if isinstance(value, str):
        cut = value if len(value) <= _CLIP_VALUE else f"{value[: _CLIP_VALUE - 1]}…"
        return _printable(json.dumps(cut, ensure_ascii=False))
    if isinstance(value, int) and value.bit_length() > _SHORT_INT:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, Sequence):
        return f"a list of {len(value)} items"
    return f"a value of type {type(value).__name__}"


def _clip(text: str) -> str:
    return text if len(text) <= _CLIP_REASON else f"{text[: _CLIP_REASON - 1]}…"


def _printable(text: str) -> str:
    """Control characters, half surrogates and the like as their escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
