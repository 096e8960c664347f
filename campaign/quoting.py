"""What a rule says of the agent's own words: told to the agent, and kept nowhere.

A reason stands in the ledger, on the screen and in reports, so it must not hold what an agent
wrote. What a rule says of the rationale may quote it; then the reason says only that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from campaign.grounding import RATIONALE
from checks.finding import Finding, Status, Verdict

if TYPE_CHECKING:
    from checks.rule import Rule
    from checks.suite import Suite

# They say how much there is, or what the rule itself looks for, and nothing of the text.
_COUNTING = frozenset(
    {"not_null", "no_null_fields", "word_count_between", "no_forbidden_phrases",
     "contains_terms_from"}
)  # fmt: skip
_WHY = "what this rule says may quote the rationale, which is kept nowhere"
_WORD = re.compile(r"\w{4,}")


def unquoted(suite: Suite, verdict: Verdict, record: Mapping[str, object]) -> Verdict:
    """The verdict on a record with a rationale, without reasons that may quote it."""
    places = [at for at, rule in enumerate(suite.rules) if _may_quote(rule)]
    if not places:
        return verdict
    findings = list(verdict.findings)
    for at in places:
        if not findings[at].passed:
            findings[at] = _kept(suite.rules[at], findings[at], record)
    return Verdict(tuple(findings))


def _may_quote(rule: Rule) -> bool:
    if rule.judged or rule.type in _COUNTING:
        return False
    return _names(rule) or (rule.test is not None and rule.test.own and rule.selector is None)


def _names(rule: Rule) -> bool:
    """Whether a rule is about the rationale; a ``row_condition`` shows no values."""
    named = rule.selector is not None and RATIONALE in rule.selector.names
    reads = () if rule.condition is None else rule.condition.reads
    return named or any(field.name == RATIONALE for field in reads)


def _kept(rule: Rule, said: Finding, record: Mapping[str, object]) -> Finding:
    if not _names(rule) and not _shares_words(said.reason, record):
        return said
    raised = said.status is Status.ERROR
    head = said.reason.partition(": ")[0] if raised else "not passed"
    return replace(said, reason=f"{head}; {_WHY}", told=said.reason)


def _shares_words(reason: str, record: Mapping[str, object]) -> bool:
    """Whether a word of the reason is one of the rationale, and of nothing else in the record."""
    elsewhere = " ".join(f"{name} {value}" for name, value in record.items() if name != RATIONALE)
    words = {*_words(reason)} - {*_words(elsewhere)}
    return not words.isdisjoint(_words(str(record[RATIONALE])))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
