"""What of a record a rule reads: ``name``, ``name[*]`` or ``[a, b]``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from checks.declared import Fields, Kind
from checks.values import MISSING, clipped, is_list, kind_of, shown


class Unselected(Exception):
    """A record does not have what a selector names; the message is the detail."""


@dataclass(frozen=True, slots=True)
class One:
    """The whole value of one field; a name with a dot is the name of one key, not a path."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def of(self, record: Mapping[str, object]) -> object:
        value = record.get(self.name, MISSING)
        if value is MISSING:
            raise Unselected(_missing(self.name))
        return value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Each:
    """Each item of a list, one by one; an empty list has nothing to fail."""

    name: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def of(self, record: Mapping[str, object]) -> list[object] | tuple[object, ...]:
        value = record.get(self.name, MISSING)
        if value is MISSING:
            raise Unselected(_missing(self.name))
        if not is_list(value):
            found = f"found {kind_of(value)}, {shown(value)}"
            raise Unselected(f"{self}: needs a list at {self.name!r}, {found}")
        return value

    def __str__(self) -> str:
        return f"{self.name}[*]"


@dataclass(frozen=True, slots=True)
class Together:
    """The values of several fields, as one list."""

    names: tuple[str, ...]

    def of(self, record: Mapping[str, object]) -> list[object]:
        values = [record.get(name, MISSING) for name in self.names]
        if any(value is MISSING for value in values):
            absent = [n for n, v in zip(self.names, values, strict=True) if v is MISSING]
            raise Unselected("; ".join(map(_missing, absent)))
        return values

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"


Selector = One | Each | Together


def selector(text: object, fields: Fields | None) -> Selector:
    """Read the ``field:`` of a rule. Raises ``ValueError`` with what is wrong with it."""
    if isinstance(text, str):
        return _single(text, fields)
    if not isinstance(text, list | tuple):
        raise ValueError(f"field: {shown(text)}; it must be a string or a list of strings")
    if not text:
        raise ValueError("field must not be empty; name the field, or several")
    for member in text:
        if not isinstance(member, str):
            raise ValueError(f"field: {shown(member)} in a list; it must be a list of strings")
        if member.endswith("[*]"):
            raise ValueError(f"field: {member!r} in a list; members are plain names")
        _declared(member, fields)
    twice = next((name for name in text if text.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"field: {twice!r} twice in a list; compare it with another field")
    return Together(tuple(text))


def _single(text: str, fields: Fields | None) -> Selector:
    if not text.strip():
        raise ValueError("field must not be empty; name the field the rule reads")
    if not text.endswith("[*]"):
        _declared(text, fields)
        return One(text)
    name = text[:-3]
    kind = _declared(name, fields, whole=text)
    if kind not in (Kind.ANY, Kind.LIST, Kind.TEXTS):
        raise ValueError(f"field: {text!r}, but {name} is {kind.words}; [*] needs a list")
    return Each(name)


def _declared(name: str, fields: Fields | None, whole: str = "") -> Kind:
    if fields is None:
        return Kind.ANY
    kind = fields.kind(name)
    if kind is None:
        nested = "[" in name or "." in name
        advice = "; a selector is a name, name[*] or [a, b], never a path" if nested else ""
        raise ValueError(f"field: {fields.refusal(whole or name)}{advice}")
    return kind


def _missing(name: str) -> str:
    return f"field {clipped(name, 80)!r} is missing from the record"
