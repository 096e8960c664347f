"""A large batch, judged by columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from checks.columns import Columns, usable
from checks.evaluate import Record
from checks.expression import Condition
from checks.finding import Finding, Status, Verdict
from checks.rule import Mark, Rule
from checks.selector import One
from checks.values import MISSING, is_record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from checks.ruletype import Flags
    from checks.suite import Suite

# Of which records something holds, and of which that is certain; None: of every one.
_Answer: TypeAlias = "tuple[Flags, Flags | None]"

_PASS, _REJECT, _SKIPPED, _SPOKEN = 0, 1, 2, 3  # codes; what is spoken has its finding in full
_CODES: Mapping[Mark, int] = {None: _PASS, Status.REJECT: _REJECT, Status.SKIPPED: _SKIPPED}


class Batch:
    """One batch under one suite. ``candidates`` are what was given, records or not."""

    def __init__(self, suite: Suite, columns: Columns, candidates: Sequence[object]) -> None:
        self._suite = suite
        self._rules = suite.candidate_rules
        self._columns = columns
        self._candidates = candidates
        self._codes = np.zeros((len(self._rules), len(columns)), dtype=np.uint8)
        self._spoken: list[dict[int, Mark]] = [{} for _ in self._rules]

    def judge(
        self, history: Iterable[Mapping[str, object]], pinned: Collection[int] = ()
    ) -> list[Verdict]:
        """Judge by every rule; one verdict a candidate."""
        past = tuple(history)
        for place, rule in enumerate(self._rules):
            if rule.across is not None:
                self._compare(place, rule, past, pinned)
            elif not self._by_column(place, rule):
                self._one_by_one(place, rule, range(len(self._columns)))
        verdicts = [self._suite._passing] * len(self._columns)
        for index in np.flatnonzero(self._codes.any(axis=0)).tolist():
            verdicts[index] = Verdict(partial(self._findings, index))
        return verdicts

    def _findings(self, index: int) -> tuple[Finding, ...]:
        candidate = self._candidates[index]
        marks: list[Mark] = []
        for place, code in enumerate(self._codes[:, index].tolist()):
            spoken = self._spoken[place].get(index)
            marks.append(spoken or (None, Status.REJECT, Status.SKIPPED)[code])
        return self._suite._findings(candidate, marks)

    def _one_by_one(self, place: int, rule: Rule, indices: Iterable[int]) -> None:
        codes, records, run = self._codes[place], self._columns.records, rule.run
        for index in indices:
            mark = run(records[index]) if is_record(self._candidates[index]) else Status.REJECT
            if isinstance(mark, Finding):
                self._spoken[place][index] = mark
                codes[index] = _SPOKEN
            else:
                codes[index] = _CODES[mark]

    def _by_column(self, place: int, rule: Rule) -> bool:
        """Judge by columns where that is possible; whether it was."""
        passes = _passes(rule, self._columns)
        gate: _Answer | None = None
        if rule.gate is not None:
            gate = _held(rule.gate, self._columns)
        if passes is None or (rule.gate is not None and gate is None):
            return False
        fine, sure = passes
        codes = (~fine).astype(np.uint8)
        if gate is not None:
            codes[~gate[0]] = _SKIPPED
            sure = gate[1] if sure is None else sure if gate[1] is None else sure & gate[1]
        self._codes[place] = codes
        if sure is not None:
            unsure = np.flatnonzero(~sure)
            self._codes[place, unsure] = _PASS
            self._one_by_one(place, rule, unsure.tolist())
        return True

    def _compare(
        self, place: int, rule: Rule, past: Sequence[Record], pinned: Collection[int]
    ) -> None:
        """Mark the candidates that are too alike."""
        if self._all_differ(rule):
            return
        codes, keyed = self._codes[place], rule.keyed
        keys = [
            keyed(record) if is_record(candidate) else Status.REJECT
            for record, candidate in zip(self._columns.records, self._candidates, strict=True)
        ]
        for index, key in enumerate(keys):
            if isinstance(key, Status):
                codes[index] = _CODES[key]
        found = rule.repeats(keys, past, pinned)
        codes[list(found)] = _SPOKEN
        self._spoken[place].update((index, (earlier,)) for index, earlier in found.items())

    def _all_differ(self, rule: Rule) -> bool:
        """Whether columns alone show that no candidate repeats another."""
        assert rule.across is not None
        assert rule.selector is not None
        names = rule.selector.names
        if rule.across.column is None or rule.gate or usable(self._columns, names) is not None:
            return False
        return rule.across.column([self._columns.numbers(name)[0] for name in names])


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
    judge = condition.columns
    if judge is None:
        return None
    names = [field.name for field in condition.reads]
    held = judge(lambda name: columns.numbers(name)[0])
    return np.broadcast_to(held, len(columns)), usable(columns, names)


def _flags(values: list[bool]) -> NDArray[np.bool_]:
    return np.array(values, dtype=np.bool_)
