"""What is known of a record's fields before there is a record."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from checks.values import is_number

_LISTED = 20  # names in a message


class Kind(StrEnum):
    """What a field holds, where that is declared."""

    ANY = "any"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    LIST = "list"
    TEXTS = "texts"
    OBJECT = "object"

    @property
    def words(self) -> str:
        return {
            "any": "anything", "text": "text", "object": "an object", "texts": "a list of texts",
        }.get(self, f"a {self}")  # fmt: skip

    @property
    def scalar(self) -> bool:
        return self in (Kind.NUMBER, Kind.TEXT, Kind.BOOLEAN)

    def admits(self, value: object) -> bool:
        """Whether a field of this kind can hold ``value``, a scalar."""
        if self is Kind.ANY:
            return True
        if isinstance(value, bool):
            return self is Kind.BOOLEAN
        if is_number(value):
            return self is Kind.NUMBER
        return self is Kind.TEXT and isinstance(value, str)


@dataclass(frozen=True, slots=True)
class Fields:
    """The declared fields of a record, each with its kind."""

    kinds: Mapping[str, Kind]

    @classmethod
    def of(cls, declared: Mapping[str, str] | Collection[str]) -> Fields:
        """Names, or a mapping of names to the words of :class:`Kind`."""
        if isinstance(declared, Mapping):
            return cls({name: Kind(kind) for name, kind in declared.items()})
        return cls(dict.fromkeys(declared, Kind.ANY))

    def kind(self, name: str) -> Kind | None:
        return self.kinds.get(name)

    def refusal(self, name: str) -> str:
        """What to say of a field nobody declares."""
        known = list(self.kinds)
        listed = ", ".join(known[:_LISTED]) + (", …" if len(known) > _LISTED else "")
        return f"unknown field {name!r}; {nearest(name, known)}the fields are {listed or 'none'}"


def nearest(name: object, known: Collection[str]) -> str:
    """``did you mean x? ``, where there is a word like ``name``."""
    if not isinstance(name, str):
        return ""
    found = difflib.get_close_matches(name[:64], known, n=1)
    return f"did you mean {found[0]}? " if found else ""
