"""One compiled rule: what it says of a record, and why."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, TypeAlias

from checks.across import Across, Key
from checks.evaluate import Record, Value, truth
from checks.expression import Condition
from checks.finding import Finding, Layer, Severity, Status
from checks.ruletype import Raised, Scope, Test
from checks.selector import Each, One, Selector, Together, Unselected
from checks.values import clipped, is_record, kind_of

# What a rule says of a record: None for a pass, else why not. (3,): it is too like the candidate
# in place 3, (-1,): too like one of the past. A whole finding where saying it again would cost.
Mark: TypeAlias = Status | Finding | tuple[int] | None

_DETAIL = 400  # characters
_ITEMS = 10  # failing items of a list told one by one


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a suite. Of ``test``, ``across`` and ``judged`` exactly one says what it asks."""

    id: str
    type: str
    severity: Severity
    hint: str
    scope: Scope
    selector: Selector | None  # None: the whole record
    params: Mapping[str, object]
    source: str
    gate: Condition | None = None
    test: Test | None = None
    across: Across | None = None
    condition: Condition | None = None  # of an expression
    run: Callable[[Record], Mark] = field(default=lambda _: None, compare=False)
    # What an across rule compares of a record; None: nothing; a status: why not.
    keyed: Callable[[Record], Key | Status | None] = field(default=lambda _: None, compare=False)
    passing: Finding = field(
        default_factory=lambda: Finding("", Layer.DOMAIN, Status.PASS), compare=False
    )

    @property
    def judged(self) -> bool:
        """Whether a model has to be asked."""
        return self.test is None and self.across is None

    def finding(
        self, status: Status, reason: str = "", *, unmade: bool = False, told: str = ""
    ) -> Finding:
        soft = self.judged and self.severity is not Severity.ERROR
        return Finding(
            check=self.id,
            layer=Layer.SOFT if soft else Layer.DOMAIN,
            status=status,
            reason=clipped(reason, _DETAIL),
            kind=self.type,
            severity=self.severity,
            open=unmade,
            told=clipped(told, _DETAIL),
        )

    def explained(self, mark: Mark, record: Record) -> Finding:
        """The finding for what :attr:`run` said of ``record``."""
        if mark is None:
            return self.passing
        if isinstance(mark, Finding):
            return mark
        if isinstance(mark, tuple):
            assert self.across is not None
            return self.finding(Status.REJECT, self.across.detail(mark[0]))
        return self.finding(mark, self._reason(record))

    def repeats(
        self,
        keys: Sequence[Key | Status | None],
        history: Iterable[object],
        pinned: Collection[int] = (),
    ) -> Mapping[int, int]:
        """The candidates that are too alike, each with the earlier place; ``keys`` by `keyed`.

        The ``pinned`` places come first, wherever they are, and keep theirs.
        """
        assert self.across is not None
        past: set[Key] = set()
        if self.across.past:
            found = (self.keyed(record) for record in history if isinstance(record, Mapping))
            past = {key for key in found if isinstance(key, tuple)}
        if not pinned:
            return self.across.repeats(keys, past, 0)
        order, kept = pinned_first(range(len(keys)), pinned)
        repeats = self.across.repeats([keys[place] for place in order], past, kept)
        return {
            order[at]: order[earlier] if earlier >= 0 else earlier
            for at, earlier in repeats.items()
        }

    def _reason(self, record: Record) -> str:
        if not is_record(record):
            return f"the candidate is {kind_of(record)}; expected an object"
        if self.gate is not None and (held := self.gate.holds(record)) is not True:
            if held is None:
                why = self.gate.unknown(record)
                return f"row_condition cannot be evaluated: {self.gate.said()}: {why}{self._of()}"
            return f"waived: row_condition: {self.gate.said()} does not hold"
        try:
            value = record if self.selector is None else self.selector.of(record)
        except Unselected as fault:
            return str(fault)
        if self.across is not None:
            values = value if isinstance(self.selector, Together) else [value]
            return self.across.unfit(values) if self.across.unfit else ""  # type: ignore[arg-type]
        assert self.test is not None
        if isinstance(self.selector, Each) and isinstance(value, list | tuple):
            return _of_items(self.test, value)
        return self.test.detail(value)

    def _of(self) -> str:
        return f" (field {self.selector})" if self.selector is not None else ""


def pinned_first(places: Sequence[int], pinned: Collection[int]) -> tuple[Sequence[int], int]:
    """The places in the order in which they keep theirs, and how many of them are pinned."""
    fixed = set(pinned)
    first = [place for place in places if place in fixed]
    return [*first, *(place for place in places if place not in fixed)], len(first)


def runner(rule: Rule) -> Callable[[Record], Mark]:
    """The closure that judges one record; a record must be a mapping."""
    plain = _plain(rule)
    gate = rule.gate
    if gate is None:
        return plain

    def gated(record: Record) -> Mark:
        held = gate.holds(record)
        if held:
            return plain(record)
        return Status.REJECT if held is None else Status.SKIPPED

    return gated


def _plain(rule: Rule) -> Callable[[Record], Mark]:
    if rule.judged:
        return _unasked(rule)
    if rule.across is not None:  # asked of all candidates together, by what is keyed
        return lambda _: None
    if rule.condition is not None:
        return _conditional(rule.condition.value)
    assert rule.test is not None
    passes = rule.test.passes
    if rule.test.own:
        return _outspoken(rule, passes)
    selector = rule.selector
    if selector is None:
        return lambda record: None if passes(record) else Status.REJECT
    if isinstance(selector, One):
        return _of_one(selector.name, rule.test)

    def several(record: Record) -> Mark:
        try:
            value = selector.of(record)
        except Unselected:
            return Status.REJECT
        fine = all(map(passes, value)) if isinstance(selector, Each) else passes(value)
        return None if fine else Status.REJECT

    return several


def _conditional(value: Value) -> Callable[[Record], Mark]:
    def run(record: Record) -> Mark:
        held = value(record)
        return None if held is True or truth(held) else Status.REJECT

    return run


def _of_one(name: str, test: Test) -> Callable[[Record], Mark]:
    passes, doubles = test.passes, test.between is not None
    low, high = test.between or (math.nan, math.nan)

    def run(record: Record) -> Mark:
        try:
            value = record[name]
        except KeyError:
            return Status.REJECT
        if doubles and type(value) is float:  # the usual case, without a call
            return None if low <= value <= high else Status.REJECT
        return None if passes(value) else Status.REJECT

    return run


def _unasked(rule: Rule) -> Callable[[Record], Mark]:
    """Whether there is a value to ask about."""
    selector = rule.selector

    def asked(record: Record) -> Mark:
        try:
            if selector is not None:
                selector.of(record)
        except Unselected:
            return rule.finding(Status.REJECT, rule._reason(record))
        return rule.finding(Status.SKIPPED, "the judge was not asked", unmade=True)

    return asked


def keyer(rule: Rule) -> Callable[[Record], Key | Status | None]:
    """The closure for :attr:`Rule.keyed`."""
    across, gate = rule.across, rule.gate
    if across is None or rule.selector is None:
        return lambda _: None
    key, unfit, values = across.key, across.unfit, _reader(rule.selector)

    def keyed(record: Record) -> Key | Status | None:
        if gate is not None and (held := gate.holds(record)) is not True:
            return Status.REJECT if held is None else Status.SKIPPED
        try:
            found = values(record)
        except KeyError:
            return Status.REJECT
        return Status.REJECT if unfit is not None and unfit(found) else key(found)

    return keyed


def comparer(rule: Rule) -> Callable[[Sequence[object]], bool]:
    """The closure that says of candidates whether no two are alike, or no when in doubt."""
    across, selector = rule.across, rule.selector
    if across is None or selector is None or across.rounded is None or rule.gate is not None:
        return lambda _: False
    differ, values = across.rounded.apart, _reader(selector)

    def apart(candidates: Sequence[object]) -> bool:
        if set(map(type, candidates)) != {dict}:
            return False
        try:
            return differ(zip(*map(values, candidates), strict=True))
        except KeyError:
            return False

    return apart


def _reader(selector: Selector) -> Callable[[Any], tuple[object, ...]]:
    """What gives the values of a selector's fields. Raises ``KeyError``."""
    names = selector.names
    return itemgetter(*names) if len(names) > 1 else lambda record: (record[names[0]],)


def _outspoken(rule: Rule, passes: Callable[[object], bool | str]) -> Callable[[Record], Mark]:
    """For a check of the user's own, which is called once and may say anything."""
    selector = rule.selector

    def run(record: Record) -> Mark:
        try:
            value = record if selector is None else selector.of(record)
            said = (
                [(at, passes(item)) for at, item in enumerate(value)]
                if isinstance(selector, Each) and isinstance(value, list | tuple)
                else [(-1, passes(value))]
            )
        except Unselected:
            return rule.finding(Status.REJECT, rule._reason(record))
        except Raised as fault:
            return rule.finding(Status.ERROR, str(fault))
        failed = [(at, str(answer)) for at, answer in said if answer is not True]
        if not failed:
            return None
        return rule.finding(Status.REJECT, _listed(failed))

    return run


def _of_items(test: Test, value: list[object] | tuple[object, ...]) -> str:
    failed = [(at, item) for at, item in enumerate(value) if not test.passes(item)]
    shown = [(at, test.detail(item)) for at, item in failed[:_ITEMS]]
    more = f" and {len(failed) - _ITEMS} more items" if len(failed) > _ITEMS else ""
    return _listed(shown) + more


def _listed(failed: list[tuple[int, str]]) -> str:
    return "; ".join(f"[{at}]: {clipped(d, 200)}" if at >= 0 else d for at, d in failed[:_ITEMS])
