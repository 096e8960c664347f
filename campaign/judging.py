"""The in-process layers of the gate: the parameter space's checks, then the rules.

What the parameter space rejects, the rules never see. Used by the gate of a round, and by the
commands that judge candidates without running anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from campaign.grounding import RATIONALE, reads
from campaign.quoting import unquoted
from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space
from campaign.trial import Fits
from checks.domain import Bound, Key, judge as judge_by_space
from checks.finding import Finding, Layer, Severity, Status, Verdict

if TYPE_CHECKING:
    from checks.suite import Suite

CANDIDATES = "candidates"
"""The field of a proposal's record that has its candidates."""


def bounds(space: Space) -> tuple[Bound, ...]:
    """The parameter space as the domain checks take it."""
    return tuple(
        Bound(name, "categorical", choices=parameter.choices)
        if isinstance(parameter, CategoricalParameter)
        else Bound(name, parameter.type, parameter.min, parameter.max, step=_step(parameter))
        for name, parameter in space.items()
    )


def _step(parameter: FloatParameter | IntParameter) -> float:
    return (parameter.step or 0.0) if isinstance(parameter, FloatParameter) else 0.0


@dataclass(frozen=True, slots=True)
class Rationale:
    """Why an agent proposed a batch; where it is ``absent``, what rules that read it answer."""

    text: str = field(default="", repr=False)
    absent: Status | None = None
    why: str = ""

    @property
    def part(self) -> Mapping[str, str]:
        """What it adds to a record."""
        return {} if self.absent else {RATIONALE: self.text}


UNSTATED = Rationale(absent=Status.SKIPPED, why="waived: the surrogate gives no rationale")
LOST = Rationale(
    absent=Status.ERROR, why="the rationale is in no ledger, and the job that was given it is gone"
)


@dataclass(frozen=True, slots=True)
class Batch:
    """New candidates of a batch, by slot, with what they are judged beside."""

    new: Mapping[int, object]
    pinned: Mapping[int, Point] = field(default_factory=dict)
    rationale: Rationale = UNSTATED
    seen: Collection[Key] = ()  # keys of the campaign's history
    history: Sequence[Point] = ()
    shown: Collection[Key] = ()  # keys of what the agent was shown that is not of the history

    def record(self, slot: int) -> dict[str, object] | None:
        """What a rule about a candidate reads, ``None`` where there is no mapping to read."""
        candidate = self.pinned.get(slot, self.new.get(slot))
        return {**candidate, **self.rationale.part} if isinstance(candidate, Mapping) else None

    def proposal(self, slots: Sequence[int]) -> dict[str, object]:
        """What a rule about the batch reads of these slots."""
        candidates = [self.pinned.get(slot, self.new.get(slot)) for slot in slots]
        return {
            **self.rationale.part,
            CANDIDATES: [dict(one) for one in candidates if isinstance(one, Mapping)],
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was said of one candidate; ``expect`` by the rules, ``None`` where there are none."""

    findings: tuple[Finding, ...]
    expect: Verdict | None = None

    @property
    def fits(self) -> bool:
        """Whether the parameter space lets the candidate pass."""
        return all(one.status is Status.PASS for one in self.findings)


@dataclass(frozen=True, slots=True)
class Layers:
    """What candidates are held to in process."""

    bounds: tuple[Bound, ...]
    suite: Suite | None = None

    def judge(self, batch: Batch) -> dict[int, Judgement]:
        """Judge every new candidate, also against its siblings and the past."""
        slots = list(batch.new)
        by_space = judge_by_space(
            self.bounds,
            [batch.new[slot] for slot in slots],
            seen=batch.seen,
            shown=batch.shown,
            pinned=list(batch.pinned.values()),
            slots=slots,
        )
        found = dict(zip(slots, by_space, strict=True))
        if self.suite is None:
            return {slot: Judgement(found[slot]) for slot in slots}
        reached = [slot for slot in slots if not _outside(found[slot])]
        verdicts = self._by_rules(self.suite, batch, reached)
        unreached = _unreached(self.suite)
        return {slot: Judgement(found[slot], verdicts.get(slot, unreached)) for slot in slots}

    def fits(self) -> Fits | None:
        """Whether points meet the rules that any one point can be held to by itself, and cheaply.

        ``None`` where there are none. A rule that only compares, one that reads what a point has
        not, and checks of the user's own, of whose cost nothing is known, are left out.
        """
        rules = () if self.suite is None else self.suite.candidate_rules
        known = {bound.name for bound in self.bounds}
        alone = [
            rule
            for rule in rules
            if rule.severity is Severity.ERROR
            and rule.test is not None
            and not rule.test.own
            and reads(rule) <= known
        ]
        if self.suite is None or not alone:
            return None
        suite = type(self.suite)(alone)
        return lambda points: [one.overall_pass for one in suite.judge_batch(points)]

    def _by_rules(self, suite: Suite, batch: Batch, reached: Sequence[int]) -> dict[int, Verdict]:
        """The verdict of the rules on each slot of ``reached``, in the order of the rules."""
        everyone = (*batch.pinned, *reached)
        records = {slot: one for slot in everyone if (one := batch.record(slot)) is not None}
        places = sorted(records)
        verdicts = suite.judge_batch(
            [records[slot] for slot in places],
            history=batch.history,
            pinned=[at for at, slot in enumerate(places) if slot in batch.pinned],
            names=places,
        )
        found = dict(zip(places, verdicts, strict=True))
        whole = suite.judge_proposal(batch.proposal(places))
        said = {slot: suite.in_order(found[slot], whole) for slot in reached}
        if batch.rationale.absent:
            return {slot: _without(suite, said[slot], batch.rationale) for slot in reached}
        return {slot: unquoted(suite, said[slot], records[slot]) for slot in reached}


def _outside(findings: Sequence[Finding]) -> bool:
    """Whether the schema layer rejected a candidate; repeating another is for the next layer."""
    return any(one.layer is Layer.SCHEMA and one.status is Status.REJECT for one in findings)


def _unreached(suite: Suite) -> Verdict:
    why = "not checked: the parameter space rejected the candidate before"
    return Verdict(tuple(rule.finding(Status.SKIPPED, why, unmade=True) for rule in suite.rules))


def _without(suite: Suite, verdict: Verdict, rationale: Rationale) -> Verdict:
    """The verdict where there is no rationale to read."""
    if rationale.absent is None:
        return verdict
    pairs = zip(suite.rules, verdict.findings, strict=True)
    return Verdict(
        tuple(
            rule.finding(rationale.absent, rationale.why) if RATIONALE in reads(rule) else said
            for rule, said in pairs
        )
    )
