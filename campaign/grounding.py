"""What a rule reads of a record, and what a judged one may be grounded on.

A reference is ``name.field``: the campaign's description, the agent's reasons for a proposal, and
the values of the candidate that is judged. A rule about the whole batch has no one candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checks.judge import Context
    from checks.rule import Rule

RATIONALE = "rationale"
"""The field of a record that has the agent's reasons."""

CAMPAIGN, PROPOSAL, CANDIDATE = "campaign", "proposal", "candidate"
_DESCRIPTION = "description"


def references(parameters: Iterable[str], *, described: bool) -> tuple[frozenset[str], ...]:
    """Those that rules about a candidate may name, and those that rules about a batch may."""
    whole = {f"{PROPOSAL}.{RATIONALE}"}
    if described:
        whole.add(f"{CAMPAIGN}.{_DESCRIPTION}")
    return frozenset({*whole, *(f"{CANDIDATE}.{name}" for name in parameters)}), frozenset(whole)


def grounded(rule: Rule) -> frozenset[str]:
    """The fields of a record that a judged rule is grounded on."""
    listed = rule.params.get("context") if rule.judged else ()
    parts = (str(one).partition(".") for one in (listed if isinstance(listed, tuple) else ()))
    return frozenset(field for name, _, field in parts if name in (PROPOSAL, CANDIDATE))


def reads(rule: Rule) -> frozenset[str]:
    """The fields a rule names; one that reads the whole record names none."""
    named = {*grounded(rule), *(rule.selector.names if rule.selector is not None else ())}
    for condition in (rule.condition, rule.gate):
        if condition is not None:
            named |= {read.name for read in condition.reads}
    return frozenset(named)


def texts(description: str, record: Mapping[str, object]) -> Context:
    """What references stand for where ``record``, with the rationale if there is one, is judged."""
    reasons = {RATIONALE: record[RATIONALE]} if RATIONALE in record else {}
    return {CAMPAIGN: {_DESCRIPTION: description}, PROPOSAL: reasons, CANDIDATE: record}
