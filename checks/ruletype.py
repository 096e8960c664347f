"""What a type of rule is: its parameters, what it may be pointed at, and the test it makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from checks.values import is_list, is_number, kind_of, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Doubles: TypeAlias = NDArray[np.float64]
    Flags: TypeAlias = NDArray[np.bool_]

Params: TypeAlias = Mapping[str, Any]  # as read: every parameter of the type, defaults included
# Raises ValueError with what would be right; its docstring is what it takes, in the manual.
Reader: TypeAlias = Callable[[object], object]


class Scope(StrEnum):
    """What the record is that a rule reads."""

    RECORD = "record"  # one candidate
    BATCH = "batch"  # the proposal as a whole


class Raised(Exception):
    """A check of the user's own raised or answered nonsense: it could not tell."""


@dataclass(frozen=True, slots=True)
class Test:
    """One rule's question, with its parameters bound.

    ``passes`` answers for one value (of a record-scoped type: for the record); it may answer a
    text, the detail of a failure. ``detail`` says what is wrong with a value that did not pass.
    ``column`` answers for a column of doubles at once, ``texts`` for one of texts, exactly as
    ``passes`` would one by one; the doubles that pass are those ``between``, ends included.
    """

    __test__ = False  # no test class, whatever pytest thinks of its name

    passes: Callable[[Any], bool | str]
    detail: Callable[[Any], str]
    column: Callable[[Doubles], Flags] | None = None
    texts: Callable[[Sequence[str]], Flags] | None = None
    between: tuple[float, float] | None = None
    own: bool = False  # the user's own code, which may raise and is called once


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a type. ``read`` checks and converts; ``null`` means the default."""

    read: Reader
    required: bool = False
    default: object = None
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class RuleType:
    """One type of rule. ``build`` raises ``ValueError`` for parameters that contradict."""

    name: str
    build: Callable[[Params], Any]  # a Test, or what reads several records at once
    params: Mapping[str, Param] = field(default_factory=dict)
    whole_record: bool = False  # takes no field
    own: bool = False  # the user's own
    together: bool = False  # a list selector makes sense
    each: bool = True  # a wildcard makes sense
    of_lists: bool = False  # the value must be a list


def number(value: object) -> object:
    """number"""
    if not is_number(value):
        quoted = "; write it without quotes" if isinstance(value, str) else ""
        raise ValueError(f"{shown(value)}; it must be a number{quoted}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{shown(value)}; it must be a finite number")
    return value


def at_least(low: float, *, above: bool = False) -> Reader:
    def read(value: object) -> object:
        found = number(value)
        assert is_number(found)
        if found < low or (above and found == low):
            raise ValueError(f"{shown(value)}; it must be {'above' if above else 'at least'} {low}")
        return found

    read.__doc__ = f"number, {'>' if above else '≥'} {low}"
    return read


def whole(low: int, high: int) -> Reader:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{shown(value)}; it must be a whole number, {low} to {high}")
        if not low <= value <= high:
            raise ValueError(f"{shown(value)}; it must be from {low} to {high}")
        return value

    read.__doc__ = f"whole number, {low:,} to {high:,}"
    return read


def flag(value: object) -> object:
    """boolean"""
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)}; it must be true or false, without quotes")
    return value


def text(value: object) -> object:
    """text"""
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)}; it must be a string, not {kind_of(value)}")
    return value


def spoken(value: object) -> object:
    """text, not empty"""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{shown(value)}; it must be a non-empty string")
    return value


def items(value: object) -> object:
    """list, not empty"""
    if not is_list(value):
        raise ValueError(f"{shown(value)}; it must be a list, as in [{shown(value)}]")
    if not value:
        raise ValueError("[]; the list must not be empty")
    return tuple(value)


def names(value: object) -> object:
    """list of text"""
    if not is_list(value):
        raise ValueError(f"{shown(value)}; it must be a list, as in [{shown(value)}]")
    for item in value:
        text(item)
    return tuple(value)


def phrases(value: object) -> object:
    """list of text, not empty"""
    for item in (found := items(value)):  # type: ignore[attr-defined]  # a tuple
        if not isinstance(item, str):
            raise ValueError(f"{shown(item)} in the list; it must be a list of strings")
        if not item:
            raise ValueError("an empty string in the list; every text contains it")
    return found
