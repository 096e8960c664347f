"""Entries as in YAML -> a compiled suite, which judges one candidate or a batch of them.

Everything that can be known before a candidate is seen is worked out once: ids, patterns,
conditions, the closures that judge. A small batch is judged record by record, a large one by
columns; both say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from checks.across import Bounds
from checks.declared import Fields
from checks.entry import Refused, compiled, label
from checks.finding import Finding, Status, Verdict
from checks.rule import Mark, Rule, comparer
from checks.ruletype import RuleType, Scope
from checks.sources import Entries, Placed, Source
from checks.values import is_record
from checks.world import World

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SMALL = 64  # candidates that are judged faster one by one


class SuiteError(ValueError):
    """Every reason why rules cannot be compiled, one a line; ``problems`` has them in order."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type[SuiteError], tuple[tuple[str, ...]]]:
        return SuiteError, (self.problems,)


class Suite:
    """Compiled rules, in the order they were given. Make one with :func:`compile_suite`."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.candidate_rules = tuple(r for r in self.rules if r.scope is Scope.RECORD)
        self.proposal_rules = tuple(r for r in self.rules if r.scope is Scope.BATCH)
        self._runs = tuple(rule.run for rule in self.candidate_rules)
        self._passing = Verdict(tuple(rule.passing for rule in self.candidate_rules))
        self._across = tuple(
            (place, rule, comparer(rule))
            for place, rule in enumerate(self.candidate_rules)
            if rule.across
        )

    def judge(self, candidate: object, *, history: Iterable[Mapping[str, object]] = ()) -> Verdict:
        """Judge one candidate by itself; ``history`` are earlier ones, all distinct from it."""
        return self.judge_batch((candidate,), history=history)[0]

    def judge_batch(
        self,
        candidates: Sequence[object],
        *,
        history: Iterable[Mapping[str, object]] = (),
        pinned: Collection[int] = (),
        names: Sequence[int] = (),
    ) -> list[Verdict]:
        """Judge candidates, also against each other and ``history``; a verdict for each.

        A candidate may be anything; one that is no mapping fails every rule. Of two that are too
        alike the later is at fault; a ``pinned`` place never is. ``names`` are the numbers by
        which details name the candidates, by default their places.
        """
        if len(candidates) > _SMALL:
            from checks.batch import Batch
            from checks.columns import Columns

            columns = Columns(_records(candidates))
            return Batch(self, columns, candidates).judge(history, pinned, names)
        marks = self._marks(candidates)
        if self._across:
            self._compare(candidates, marks, tuple(history), pinned, names)
        return [
            Verdict(self._findings, found) if any(found[1]) else self._passing
            for found in zip(candidates, marks, strict=True)
        ]

    def judge_columns(
        self,
        columns: Mapping[str, NDArray[np.generic] | Sequence[object]],
        *,
        history: Iterable[Mapping[str, object]] = (),
    ) -> list[Verdict]:
        """Judge a batch given as columns, one sequence or one-dimensional array a field."""
        from checks.batch import Batch
        from checks.columns import Given

        given = Given(columns)
        return Batch(self, given, given.records).judge(history)

    def judge_proposal(self, proposal: object) -> Verdict:
        """Judge a proposal as a whole, by the rules of scope ``batch``."""
        rules = self.proposal_rules
        if is_record(proposal):
            marks: list[Mark] = [rule.run(proposal) for rule in rules]
        else:
            marks = [Status.REJECT] * len(rules)
        return Verdict(_explained(rules, marks, proposal))

    def in_order(self, candidate: Verdict, proposal: Verdict) -> Verdict:
        """What was said of a candidate and of its proposal, in the order of the rules."""
        if not self.proposal_rules:
            return candidate
        by_scope = {
            Scope.RECORD: iter(candidate.findings),
            Scope.BATCH: iter(proposal.findings),
        }
        return Verdict(tuple(next(by_scope[rule.scope]) for rule in self.rules))

    def _marks(self, candidates: Sequence[object]) -> list[list[Mark]]:
        """What each rule says of each candidate by itself."""
        runs = self._runs
        return [
            [run(one) for run in runs] if is_record(one) else [Status.REJECT] * len(runs)
            for one in candidates
        ]

    def _findings(self, judged: tuple[object, Sequence[Mark]]) -> tuple[Finding, ...]:
        """The findings for a candidate and its marks."""
        candidate, marks = judged
        return _explained(self.candidate_rules, marks, candidate)

    def _compare(
        self,
        candidates: Sequence[object],
        marks: Sequence[list[Mark]],
        history: Sequence[Mapping[str, object]],
        pinned: Collection[int] = (),
        names: Sequence[int] = (),
    ) -> None:
        """Mark the candidates that are too alike."""
        for place, rule, apart in self._across:
            if apart(candidates):
                continue
            keyed = rule.keyed
            keys = [keyed(c) if is_record(c) else None for c in candidates]
            for index, key in enumerate(keys):
                if type(key) is Status:
                    marks[index][place] = key
            for index, earlier in rule.repeats(keys, history, pinned).items():
                marks[index][place] = (names[earlier] if names and earlier >= 0 else earlier,)


def _explained(rules: Sequence[Rule], marks: Sequence[Mark], record: object) -> tuple[Finding, ...]:
    return tuple(
        rule.explained(mark, record)  # type: ignore[arg-type]  # it says so of what is no record
        for rule, mark in zip(rules, marks, strict=True)
    )


def _records(candidates: Sequence[object]) -> Sequence[Mapping[str, object]]:
    """The candidates, with an empty record for what is none."""
    if set(map(type, candidates)) == {dict}:  # the usual case, found out fast
        return cast("Sequence[Mapping[str, object]]", candidates)
    return [candidate if is_record(candidate) else {} for candidate in candidates]


def compile_suite(
    entries: Iterable[object],
    *,
    fields: Mapping[str, str] | Collection[str] | None = None,
    proposal_fields: Mapping[str, str] | Collection[str] | None = None,
    bounds: Bounds | None = None,
    types: Mapping[str, RuleType] | None = None,
    judge: Collection[str] | None = None,
) -> Suite:
    """Compile rules, written as in YAML.

    ``fields`` are those of a candidate, ``None`` for any: names, or names with what they hold
    (``number``, ``text``, ``boolean``, ``list``, ``object``, ``any``); ``proposal_fields`` those of
    a proposal, for rules of scope ``batch``. ``bounds`` are the parameters' ranges. ``types`` are
    the user's own, see :mod:`checks.custom`. ``judge`` are the references a judged rule's context
    may name; ``None`` where no judge is configured.

    Raises one :class:`SuiteError` with every refusal.
    """
    world = World(
        fields=None if fields is None else Fields.of(fields),
        proposal=None if proposal_fields is None else Fields.of(proposal_fields),
        bounds=bounds,
        own=types,
        references=None if judge is None else frozenset(judge),
    )
    rules, problems = compile_rules([(entry, Source("")) for entry in entries], world)
    if problems:
        raise SuiteError(problems)
    return Suite(rules)


def compile_rules(entries: Entries, world: World) -> tuple[list[Rule], list[str]]:
    """Compile entries, each with where it comes from; the rules, and every refusal."""
    rules: list[Rule] = []
    problems: list[str] = []
    seen: set[str] = set()
    for place, (entry, source) in enumerate(entries):
        try:
            rule = compiled(entry, world, source.name)
        except Refused as refused:
            at = source.place[-1] if source.place else place
            name = label(entry, int(at))
            problems += [Placed(f"{name}: {problem}", source) for problem in refused.problems]
            continue
        if rule.id in seen:
            text = f"{rule.id}: two rules share this id; give each its own"
            problems.append(Placed(text, source))
        seen.add(rule.id)
        rules.append(rule)
    return rules, problems
