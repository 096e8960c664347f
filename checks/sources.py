"""Where a block's rules come from: inline, from a file by name, or from the agent's own file.

A file has rules on its fields, in its own ``expectations:``, or both; they run in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from checks.declared import nearest
from checks.values import clipped, kind_of, shown

Document: TypeAlias = Mapping[str, object]  # a file of rules
Entries: TypeAlias = list[tuple[object, str]]  # each with where it comes from

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
        return _listed(merged["expectations"], "inline", "expectations", problems)
    if "suite" not in merged:
        return [] if own is None else _of_file(own, "own file", problems)
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
    found = _of_file(suites[name], f"suite {name}", problems)
    if not found and len(problems) == before:
        problems.append(f"suite {name}: has no rules; give its fields or itself expectations:")
    return found


def _listed(value: object, source: str, where: str, problems: list[str]) -> Entries:
    if not isinstance(value, list | tuple):
        problems.append(f"{where}: {shown(value)}; it must be a list, not {kind_of(value)}")
        return []
    if not value:
        problems.append(f"{where}: []; fill the list, or leave the key out")
    return [(entry, source) for entry in value]


def _of_file(file: Document, name: str, problems: list[str]) -> Entries:
    """The rules of a file: those on its fields, then its own."""
    problems += [
        f"{name}: unknown key {shown(key)}; a file of rules has {', '.join(_FILE_KEYS)}"
        for key in file
        if key not in _FILE_KEYS
    ]
    found: Entries = []
    fields = file.get("fields") or ()
    if not isinstance(fields, list | tuple):
        problems.append(f"{name}: fields: {shown(fields)}; it must be a list")
        fields = ()
    for item in fields:
        if isinstance(item, Mapping):
            found += _of_field(item, name, problems)
        else:
            problems.append(f"{name}: fields: {shown(item)}; each is a mapping with an id")
    if "expectations" in file:
        found += _listed(file["expectations"], name, f"{name}: expectations", problems)
    return found


def _of_field(item: Document, name: str, problems: list[str]) -> Entries:
    """The rules on one field, each pointed at it."""
    called = str(item.get("id"))
    for path in _nested(item, ""):
        problems.append(
            f"{name}: rules on {called}{path}, inside the field {called}; rules stand on the "
            "field itself"
        )
    if "expectations" not in item:
        return []
    where = f"{name}: field {called}: expectations"
    pointed: Entries = []
    for entry, source in _listed(item["expectations"], f"{name}, field {called}", where, problems):
        if isinstance(entry, Mapping) and "field" in entry:
            problems.append(
                f"{where}: field: {shown(entry['field'])}; its place names the field, "
                "leave field: out"
            )
            entry = {key: value for key, value in entry.items() if key != "field"}
        pointed.append(
            ({**entry, "field": called} if isinstance(entry, Mapping) else entry, source)
        )
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
