"""Rules in the words in which an agent is told of them before it proposes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from checks.finding import Severity
from checks.rule import Rule
from checks.world import BUILT_IN, EXPRESSION, GATE, JUDGE


def worded(rules: Sequence[Rule], *, observed: bool = False) -> str:
    """What candidates must meet, and what they should; ``""`` without rules.

    With ``observed`` nothing is rejected for a rule.
    """
    must = [rule for rule in rules if rule.severity is Severity.ERROR and not observed]
    should = [rule for rule in rules if rule not in must]
    groups = (
        ("Rules; a candidate that breaks one is rejected:", must),
        ("Recommendations:", should),
    )
    return "\n".join(
        "\n".join([head, *(f"- {_rule(rule)}" for rule in group)])
        for head, group in groups
        if group
    )


def _rule(rule: Rule) -> str:
    when = "" if rule.gate is None else f", when {rule.gate.text}"
    hint = f"; hint: {_line(rule.hint)}" if rule.hint else ""
    return f"{rule.id}: {_line(_asked(rule))}{when}{hint}"


def _asked(rule: Rule) -> str:
    if rule.type == JUDGE:
        return str(rule.params["rule"])
    if rule.type == EXPRESSION and rule.condition is not None:
        return rule.condition.text
    reads = f" of {rule.selector}" if rule.selector is not None else ""
    return ", ".join([f"{rule.type}{reads}", *_given(rule)])


def _given(rule: Rule) -> Iterator[str]:
    """The parameters that were set to something of their own."""
    known = BUILT_IN[rule.type].params if rule.type in BUILT_IN else {}
    for name, value in rule.params.items():
        usual = known[name].default if name in known else None
        if name != GATE and value is not None and value != usual:
            yield f"{name} {json.dumps(value, ensure_ascii=False, default=str)}"


def _line(text: str) -> str:
    return " ".join(text.split())
