"""Pydantic's errors in our words: what was found, what is right, what the nearest name is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from campaign.config import CampaignConfig
from campaign.fields import WORDING
from campaign.problems import Loc, choose_from, observed
from campaign.yamlfile import plain_scalar

Schema: TypeAlias = Mapping[str, Any]

_MOST = 200  # errors put into words; a file with more has one cause, not 200

# Pydantic puts the kind it chose into the path, at this place of the paths that begin so.
_KIND_AT = {"agent": 1, "simulation": 1, "verifiers": 2, "executors": 2, "parameters": 2}

_BOUNDS = ("gt", "ge", "lt", "le")
_TAGS = ("kind", "type")
_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list, [first, second]",
    "list_type": "a list, [first, second]",
    "dict_type": "a mapping, {{key: value}}",
    "mapping_type": "a mapping, {{key: value}}",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "a text that is not empty",
    "string_unicode": "text whose characters are whole",
}


def describe(error: ValidationError, data: object) -> Iterator[tuple[Loc, str]]:
    """The place and the message of every error that validating ``data`` gave."""
    schema = _schema()
    details = error.errors(include_url=False)
    for detail in details[:_MOST]:
        if _is_echo(detail):
            continue
        if detail["type"] == "crossing":
            yield detail["loc"], detail["msg"]
            continue
        loc = _place(detail)
        yield loc, _message(detail, loc, schema, data)
    if len(details) > _MOST:
        yield (), f"+{len(details) - _MOST} more problems; these first"


@cache
def _schema() -> Schema:
    return CampaignConfig.model_json_schema()


def _is_echo(detail: ErrorDetails) -> bool:
    """A list that is too short only because its items were refused, each by an error before."""
    found = detail["input"]
    short = detail["type"] == "too_short" and isinstance(found, list | Mapping)
    return short and len(found) >= detail["ctx"]["min_length"]


def _place(detail: ErrorDetails) -> Loc:
    """The path as the file has it."""
    loc = list(detail["loc"])
    if loc and loc[-1] == "[key]":
        loc.pop()
    if loc and _KIND_AT.get(str(loc[0]), len(loc)) < len(loc):
        del loc[_KIND_AT[str(loc[0])]]
    if loc[:2] == ["simulation", "dry_run"]:
        del loc[2:3]
    if detail["type"].startswith("union_tag"):
        loc.append(detail["ctx"]["discriminator"].strip("'"))
    return tuple(loc)


def _message(detail: ErrorDetails, loc: Loc, schema: Schema, data: object) -> str:
    kind, found, context = detail["type"], detail["input"], detail.get("ctx", {})
    if (special := _SPECIAL.get(kind)) is not None:
        return special(detail, loc, _Known(schema, data))
    if kind in _WANTED:
        numbers = {key: f"{bound:.12g}" for key, bound in context.items() if key in _BOUNDS}
        wanted = _WANTED[kind].format(**numbers)
        return f"found {observed(found)}; give {wanted}{_hint(kind, found)}"
    return f"found {observed(found)}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"


def _hint(kind: str, found: object) -> str:
    """The one thing to do, where it is plain."""
    if kind == "string_type" and isinstance(found, int | float):
        shown = str(found).lower() if isinstance(found, bool) else found
        return f", in quotes: '{shown}'"
    if kind == "int_type" and isinstance(found, float) and found.is_integer():
        return f": {found:.0f}" if abs(found) < 1e15 else ""
    if isinstance(found, str) and kind in ("int_type", "float_type"):
        if isinstance(plain_scalar(found), int | float) and plain_scalar(found) is not True:
            return ": remove the quotes"
        if re.fullmatch(r"[-+]?0+\d+", found):
            return " without leading zeros"
    return ""


class _Known:
    """What the schema knows of a place in the data."""

    def __init__(self, schema: Schema, data: object) -> None:
        self._schema, self._data = schema, data

    def keys(self, loc: Loc) -> tuple[str, ...]:
        """The keys that a mapping at this place may have."""
        return tuple(self._at(loc).get("properties", ()))

    def meaning(self, loc: Loc) -> str:
        """The description of a key."""
        field = self._at(loc[:-1]).get("properties", {}).get(loc[-1], {})
        return str(field.get("description", "a value"))

    def kinds(self, loc: Loc) -> tuple[str, ...]:
        """The kinds among which the value at this place chooses, none if it has no kind."""
        node, _ = self._raw(loc)
        branches = [self._resolve(one, None) for one in _branches(node)]
        consts = [
            branch.get("properties", {}).get(tag, {}).get("const")
            for branch in branches
            for tag in _TAGS
        ]
        return tuple(one for one in consts if one is not None)

    def takes_number(self, loc: Loc) -> bool:
        """Whether a number may stand here in place of a mapping."""
        node, _ = self._raw(loc)
        return any(branch.get("type") in ("number", "integer") for branch in _branches(node))

    def _at(self, loc: Loc) -> Schema:
        return self._resolve(*self._raw(loc))

    def _raw(self, loc: Loc) -> tuple[Schema, object]:
        """The schema of a place, with its references and branches, and the data there."""
        data, node = self._data, self._schema
        for part in loc:
            node, data = self._resolve(node, data), _child(data, part)
            patterns = list(node.get("patternProperties", {}).values())
            others = [node.get("additionalProperties"), node.get("items"), *patterns]
            node = node.get("properties", {}).get(part) or next(
                (other for other in others if isinstance(other, Mapping)), {}
            )
        return node, data

    def _resolve(self, node: Schema, data: object) -> Schema:
        """Follow references and take the branch whose kind the data names."""
        if "$ref" in node:
            return self._resolve(self._schema["$defs"][node["$ref"].rsplit("/", 1)[1]], data)
        branches = [self._resolve(one, data) for one in _branches(node)]
        objects = [branch for branch in branches if "properties" in branch]
        kinds = [branch for branch in objects if _is_kind(branch, data)]
        return next(iter(kinds or objects), node)


def _branches(node: Schema) -> list[Schema]:
    """The branches of a choice, those of a choice within it included."""
    direct = node.get("oneOf", node.get("anyOf", ()))
    return [one for branch in direct for one in (_branches(branch) or [branch])]


def _is_kind(branch: Schema, data: object) -> bool:
    consts = (branch["properties"].get(tag, {}).get("const") for tag in _TAGS)
    values = [data, *(_child(data, tag) for tag in _TAGS)]
    return any(const is not None and const in values for const in consts)


def _child(data: object, part: str | int) -> object:
    if isinstance(data, Mapping):
        return data.get(part)
    if isinstance(data, list | tuple) and isinstance(part, int):
        return data[part] if part < len(data) else None
    return None


def _missing(_detail: ErrorDetails, loc: Loc, known: _Known) -> str:
    return f"missing; add it: {known.meaning(loc)}"


def _no_tag(_detail: ErrorDetails, loc: Loc, known: _Known) -> str:
    return f"missing; choose one: {', '.join(map(repr, known.kinds(loc[:-1])))}"


def _unknown(_detail: ErrorDetails, loc: Loc, known: _Known) -> str:
    return f"no such key; {choose_from(loc[-1], known.keys(loc[:-1]))}"


def _literal(detail: ErrorDetails, _loc: Loc, _known: _Known) -> str:
    expected = detail["ctx"]["expected"]
    names = re.findall(r"'([^']*)'", expected)
    found = detail["input"]
    right = choose_from(found, names) if names else f"write {expected}"
    return f"found {observed(found)}; {right}"


def _tag(detail: ErrorDetails, _loc: Loc, _known: _Known) -> str:
    key = detail["ctx"]["discriminator"].strip("'")
    names = re.findall(r"'([^']*)'", detail["ctx"]["expected_tags"])
    found = detail["input"].get(key) if isinstance(detail["input"], Mapping) else None
    return f"found {observed(found)}; {choose_from(found, names)}"


def _pattern(detail: ErrorDetails, _loc: Loc, _known: _Known) -> str:
    pattern = detail["ctx"]["pattern"]
    return f"found {observed(detail['input'])}; give {WORDING.get(pattern, pattern)}"


def _length(detail: ErrorDetails, _loc: Loc, _known: _Known) -> str:
    context = detail["ctx"]
    bound = (
        f"at least {context['min_length']}"
        if "min_length" in context
        else f"at most {context['max_length']}"
    )
    return f"found {observed(detail['input'])}; give {bound}"


def _own(detail: ErrorDetails, _loc: Loc, _known: _Known) -> str:
    return str(detail["ctx"]["error"])


def _not_a_mapping(detail: ErrorDetails, loc: Loc, known: _Known) -> str:
    kinds = known.kinds(loc)
    what = f"of the kind {' or '.join(kinds)}" if kinds else f"with {', '.join(known.keys(loc))}"
    number = "a number or " if known.takes_number(loc) else ""
    return f"found {observed(detail['input'])}; give {number}a mapping {what}"


_Words: TypeAlias = Callable[[ErrorDetails, Loc, _Known], str]
_SPECIAL: dict[str, _Words] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _literal,
    "union_tag_invalid": _tag,
    "union_tag_not_found": _no_tag,
    "string_pattern_mismatch": _pattern,
    "too_short": _length,
    "too_long": _length,
    "value_error": _own,
    "model_type": _not_a_mapping,
    "model_attributes_type": _not_a_mapping,
}
