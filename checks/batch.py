"""A large batch, judged by columns.

It is judged block by block: what one block takes stays small, and near the processor. Only a digest
of each candidate is kept of what a rule compares; those that share one are compared in full.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from checks.columns import Columns, usable
from checks.evaluate import Record
from checks.expression import Condition
from checks.finding import Finding, Status, Verdict
from checks.rule import Mark, Rule, pinned_first
from checks.selector import One
from checks.values import MISSING, is_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from checks.across import Digests
    from checks.ruletype import Doubles, Flags
    from checks.suite import Suite

# Of which records something holds, and of which that is certain; None: of every one.
_Answer: TypeAlias = "tuple[Flags, Flags | None]"

Repeats: TypeAlias = Mapping[int, int]  # who is too like whom: the place of the earlier one

_PASS, _REJECT, _SKIPPED, _SPOKEN = 0, 1, 2, 3  # codes; what is spoken is kept beside them
_CODES: Mapping[Mark, int] = {None: _PASS, Status.REJECT: _REJECT, Status.SKIPPED: _SKIPPED}
_BLOCK = 8192  # candidates


class Batch:
    """One batch under one suite. ``candidates`` are what was given, records or not."""

    def __init__(self, suite: Suite, columns: Columns, candidates: Sequence[object]) -> None:
        self._suite = suite
        self._rules = suite.candidate_rules
        self._columns = columns
        self._candidates = candidates
        self._codes = np.zeros((len(self._rules), len(columns)), dtype=np.uint8)
        self._spoken: list[dict[int, Finding]] = [{} for _ in self._rules]
        self._earlier: dict[int, Repeats] = {}  # by rule

    def judge(
        self,
        history: Iterable[Mapping[str, object]],
        pinned: Collection[int] = (),
        names: Sequence[int] = (),
    ) -> list[Verdict]:
        """Judge by every rule; one verdict a candidate."""
        past = tuple(history)
        digests = self._by_blocks()
        for place, rule in enumerate(self._rules):
            if rule.across is not None:
                suspects = _suspects(digests[place])
                if suspects is None:
                    found = self._by_keys(place, rule, past, pinned)
                else:
                    found = self._alike(rule, suspects, pinned)
                self._codes[place, list(found)] = _SPOKEN
                self._earlier[place] = {
                    at: names[earlier] if names and earlier >= 0 else earlier
                    for at, earlier in found.items()
                }
        verdicts = [self._suite._passing] * len(self._columns)
        findings = self._findings
        for index in np.flatnonzero(self._codes.any(axis=0)).tolist():
            verdicts[index] = Verdict(findings, index)
        return verdicts

    def _findings(self, index: int) -> tuple[Finding, ...]:
        codes = self._codes[:, index].tolist()
        marks = [self._mark(place, index, code) for place, code in enumerate(codes)]
        return self._suite._findings((self._candidates[index], marks))

    def _mark(self, place: int, index: int, code: int) -> Mark:
        if code != _SPOKEN:
            return (None, Status.REJECT, Status.SKIPPED)[code]
        if place in self._earlier:
            return (self._earlier[place][index],)
        return self._spoken[place][index]

    def _by_blocks(self) -> list[list[Digests | None]]:
        """Judge by the rules that read one candidate; for the others, by rule, the digests."""
        digests: list[list[Digests | None]] = [[] for _ in self._rules]
        for start in range(0, len(self._columns), _BLOCK):
            block = self._columns.part(start, start + _BLOCK)
            for place, rule in enumerate(self._rules):
                if rule.across is not None:
                    digests[place].append(_digests(rule, block))
                elif not self._by_column(place, rule, block, start):
                    self._one_by_one(place, rule, range(start, start + len(block)))
        return digests

    def _one_by_one(self, place: int, rule: Rule, indices: Iterable[int]) -> None:
        codes, records, run = self._codes[place], self._columns.records, rule.run
        for index in indices:
            mark = run(records[index]) if is_record(self._candidates[index]) else Status.REJECT
            if isinstance(mark, Finding):
                self._spoken[place][index] = mark
                codes[index] = _SPOKEN
            else:
                codes[index] = _CODES[mark]

    def _by_column(self, place: int, rule: Rule, block: Columns, start: int) -> bool:
        """Judge a block by columns where that is possible; whether it was."""
        passes = _passes(rule, block)
        gate: _Answer | None = None
        if rule.gate is not None:
            gate = _held(rule.gate, block)
        if passes is None or (rule.gate is not None and gate is None):
            return False
        fine, sure = passes
        codes = self._codes[place, start : start + len(block)]
        codes[:] = ~fine
        if gate is not None:
            codes[~gate[0]] = _SKIPPED
            sure = gate[1] if sure is None else sure if gate[1] is None else sure & gate[1]
        if sure is not None:
            self._one_by_one(place, rule, (np.flatnonzero(~sure) + start).tolist())
        return True

    def _alike(self, rule: Rule, suspects: Sequence[int], pinned: Collection[int]) -> Repeats:
        """Which of the suspects are alike, by columns."""
        if not suspects:
            return {}
        assert rule.across is not None
        assert rule.across.rounded is not None
        order, kept = pinned_first(suspects, pinned)
        columns = Columns([self._columns.records[place] for place in order])
        firsts = rule.across.rounded.firsts(_values(rule, columns))
        return {
            order[at]: order[first] for at, first in enumerate(firsts) if first < at and at >= kept
        }

    def _by_keys(
        self, place: int, rule: Rule, past: Sequence[Record], pinned: Collection[int]
    ) -> Repeats:
        """Which candidates are too alike; marks those that have nothing to compare."""
        pairs = zip(self._columns.records, self._candidates, strict=True)
        keys = [rule.keyed(one) if is_record(given) else Status.REJECT for one, given in pairs]
        for index, key in enumerate(keys):
            if isinstance(key, Status):
                self._codes[place, index] = _CODES[key]
        return rule.repeats(keys, past, pinned)


def _values(rule: Rule, columns: Columns) -> list[Doubles]:
    assert rule.selector is not None
    return [columns.numbers(name)[0] for name in rule.selector.names]


def _digests(rule: Rule, block: Columns) -> Digests | None:
    """A number for each record, the same for those that are alike; ``None``: cannot be told."""
    assert rule.across is not None
    assert rule.selector is not None
    rounded = rule.across.rounded
    if rounded is None or rule.gate or usable(block, rule.selector.names) is not None:
        return None
    return rounded.digests(_values(rule, block))


def _suspects(digests: Sequence[Digests | None]) -> list[int] | None:
    """The candidates that share a digest with another; ``None``: any may be like another."""
    known = [part for part in digests if part is not None]
    if len(known) < len(digests) or not known:
        return None
    joined = np.concatenate(known)
    ordered = np.sort(joined)
    shared = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(joined, shared)).tolist() if len(shared) else []


def _passes(rule: Rule, columns: Columns) -> _Answer | None:
    """Which records pass, and of which that is certain; ``None``: only the walker can tell."""
    if rule.condition is not None:
        return _held(rule.condition, columns)
    if rule.test is None or rule.test.own or not isinstance(rule.selector, One):
        return None
    name = rule.selector.name
    if rule.test.column is not None:
        values, mark = columns.numbers(name)
        return rule.test.column(values), mark
    raw = columns.raw(name)
    if rule.test.texts is not None and set(map(type, raw)) == {str}:
        return rule.test.texts(cast("list[str]", raw)), None
    test = rule.test.passes
    return _flags([v is not MISSING and bool(test(v)) for v in raw]), None


def _held(condition: Condition, columns: Columns) -> _Answer | None:
    """Of which records a condition holds."""
    judge = condition.columns()
    if judge is None:
        return None
    names = [field.name for field in condition.reads]
    held = judge(lambda name: columns.numbers(name)[0])
    return np.broadcast_to(held, len(columns)), usable(columns, names)


def _flags(values: list[bool]) -> NDArray[np.bool_]:
    return np.array(values, dtype=np.bool_)
