"""Where a block's rules come from: inline, from a file by name, or from the agent's own file.

A file has rules on its fields, in its own ``expectations:``, or both; they run in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from checks.declared import nearest
from checks.values import clipped, kind_of, shown

Document: TypeAlias = Mapping[str, object]  # a file of rules
Place: TypeAlias = tuple[str | int, ...]
OWN = "own file"


@dataclass(frozen=True, slots=True)
class Source:
    """Where an entry comes from: ``name`` in words, its ``place`` in the block or in ``file``.

    ``file`` is the name of a suite, :data:`OWN`, or ``""`` for what stands in the block itself.
    """

    name: str
    file: str = ""
    place: Place = ()


Entries: TypeAlias = list[tuple[object, Source]]


class Placed(str):
    """A problem that knows where it stands."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, text: str, source: Source) -> Placed:
        problem = super().__new__(cls, text)
        problem.source = source
        return problem

    def __getnewargs__(self) -> tuple[str, Source]:  # type: ignore[override]  # str's has one
        return str(self), self.source


_FILE_KEYS = ("name", "version", "description", "fields", "expectations")
_DEEPEST = 20  # levels of a field's description that are searched


def entries_of(
    merged: Mapping[str, object],
    own: Document | None,
    suites: Mapping[str, Document],
    problems: list[str],
) -> Entries:
    """The rules a block runs, each with where it comes from; what is wrong goes to ``problems``."""
    if "suite" in merged and "expectations" in merged:
        problems.append("suite and expectations are both given; give one of them")
        return []
    if "expectations" in merged:
        return _listed(
            merged["expectations"], Source("inline", place=("expectations",)), "", problems
        )
    if "suite" not in merged:
        return [] if own is None else _of_file(own, OWN, OWN, problems)
    name = merged["suite"]
    if not isinstance(name, str) or not name.strip():
        problems.append(f"suite: {shown(name)}; it must be the name of a file of rules")
        return []
    if name not in suites:
        known = ", ".join(suites) or "none"
        problems.append(
            f"suite: {shown(name)} is not found; {nearest(name, suites)}there are {known}"
        )
        return []
    before = len(problems)
    found = _of_file(suites[name], f"suite {name}", name, problems)
    if not found and len(problems) == before:
        problems.append(f"suite {name}: has no rules; give its fields or itself expectations:")
    return found


def entries_of_file(file: Document, name: str, problems: list[str]) -> Entries:
    """The rules of a file that stands by itself."""
    return _of_file(file, name, name, problems)


def _listed(value: object, source: Source, where: str, problems: list[str]) -> Entries:
    """The entries of a list; ``where`` names the list in a message, by default its key."""
    said = f"{where}: expectations" if where else "expectations"
    if not isinstance(value, list | tuple):
        text = f"{said}: {shown(value)}; it must be a list, not {kind_of(value)}"
        problems.append(Placed(text, source))
        return []
    if not value:
        problems.append(Placed(f"{said}: []; fill the list, or leave the key out", source))
    return [
        (entry, Source(source.name, source.file, (*source.place, at)))
        for at, entry in enumerate(value)
    ]


def _of_file(file: Document, name: str, called: str, problems: list[str]) -> Entries:
    """The rules of a file: those on its fields, then its own."""
    problems += [
        Placed(
            f"{name}: unknown key {shown(key)}; a file of rules has {', '.join(_FILE_KEYS)}",
            Source(name, called, (str(key),)),
        )
        for key in file
        if key not in _FILE_KEYS
    ]
    found: Entries = []
    fields = file.get("fields") or ()
    at_fields = Source(name, called, ("fields",))
    if not isinstance(fields, list | tuple):
        problems.append(Placed(f"{name}: fields: {shown(fields)}; it must be a list", at_fields))
        fields = ()
    for at, item in enumerate(fields):
        source = Source(name, called, ("fields", at))
        if isinstance(item, Mapping):
            found += _of_field(item, source, problems)
        else:
            text = f"{name}: fields: {shown(item)}; each is a mapping with an id"
            problems.append(Placed(text, source))
    if "expectations" in file:
        source = Source(name, called, ("expectations",))
        found += _listed(file["expectations"], source, name, problems)
    return found


def _of_field(item: Document, source: Source, problems: list[str]) -> Entries:
    """The rules on one field, each pointed at it."""
    name, called = source.name, str(item.get("id"))
    for path in _nested(item, ""):
        text = (
            f"{name}: rules on {called}{path}, inside the field {called}; rules stand on the "
            "field itself"
        )
        problems.append(Placed(text, source))
    if "expectations" not in item:
        return []
    where = f"{name}: field {called}"
    listed = Source(f"{name}, field {called}", source.file, (*source.place, "expectations"))
    pointed: Entries = []
    for entry, at in _listed(item["expectations"], listed, where, problems):
        if isinstance(entry, Mapping) and "field" in entry:
            text = (
                f"{where}: expectations: field: {shown(entry['field'])}; its place names the "
                "field, leave field: out"
            )
            problems.append(Placed(text, at))
            entry = {key: value for key, value in entry.items() if key != "field"}
        pointed.append(({**entry, "field": called} if isinstance(entry, Mapping) else entry, at))
    return pointed


def _nested(item: object, path: str) -> Iterator[str]:
    """Where below a field rules stand that no selector reaches."""
    left = [(item, path, 0)]
    while left:
        part, place, depth = left.pop()
        if depth and isinstance(part, Mapping) and "expectations" in part:
            yield clipped(place, 80)
        if depth < _DEEPEST and isinstance(part, Mapping):
            left += [
                (value, f"{place}.{key}", depth + 1)
                for key, value in part.items()
                if key != "expectations" and isinstance(value, Mapping | list)
            ]
        elif depth < _DEEPEST and isinstance(part, list):
            left += [(value, f"{place}[{at}]", depth + 1) for at, value in enumerate(part)]
