"""The types of rules there are, and what is known where a suite is compiled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from checks import across, numeric, rules
from checks.across import Bounds
from checks.declared import Fields
from checks.ruletype import Param, Params, RuleType, Scope, items, spoken, whole

KEYS = ("id", "type", "field", "params", "severity", "hint", "scope")
GATE = "row_condition"
JUDGE = "llm_judge"
EXPRESSION = "expression"
MOST_VOTES = 25


def _nothing(_: Params) -> None:
    """What the suite builds by itself: an expression reads fields, a judge is asked."""


def _condition(value: object) -> object:
    """condition"""
    return value


BUILT_IN: Mapping[str, RuleType] = {
    **rules.TYPES,
    EXPRESSION: RuleType(
        EXPRESSION, _nothing, {"condition": Param(_condition, required=True)}, whole_record=True
    ),
    **numeric.TYPES,
    **across.TYPES,
    JUDGE: RuleType(
        JUDGE, _nothing,
        {
            "rule": Param(spoken, required=True),
            "votes": Param(whole(1, MOST_VOTES), default=1),
            "model": Param(spoken),
            "context": Param(items, default=()),
        },
        together=True,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class World:
    """What is known where a suite is compiled."""

    fields: Fields | None = None  # of a candidate; None: any
    proposal: Fields | None = None  # of the proposal, for rules of scope batch
    bounds: Bounds | None = None  # of the parameters
    own: Mapping[str, RuleType] | None = None  # the user's own types
    references: frozenset[str] | None = None  # a judge's context may name; None: there is no judge
    proposal_references: frozenset[str] | None = None  # for rules of scope batch; None: the same

    def types(self) -> Mapping[str, RuleType]:
        return {**BUILT_IN, **(self.own or {})}


def derived_id(entry: Mapping[str, object]) -> str:
    """A name that follows from what a rule asks: not from its hint, severity or key order."""
    asked = {key: entry.get(key) for key in ("type", "field", "params", "scope")}
    if asked["scope"] in (None, Scope.RECORD.value):
        del asked["scope"]
    spelt = json.dumps(_canonical(asked), sort_keys=True, ensure_ascii=False, default=str)
    return f"{entry.get('type')}_{hashlib.sha256(spelt.encode(errors='replace')).hexdigest()[:12]}"


def _canonical(value: object) -> object:
    """1 for 1.0, and nothing for what is null or empty."""
    if isinstance(value, Mapping):
        parts = {str(key): _canonical(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {})}
    if isinstance(value, list | tuple):
        return [_canonical(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
