"""The slots of a batch while they are filled, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from campaign.events import FindingRecord, JsonObject, Judged, VerdictRecord
from campaign.judging import UNSTATED, Judgement, Rationale
from campaign.packing import pack, text
from campaign.space import Point
from checks import Finding
from checks.domain import STRUCTURAL
from checks.finding import Layer, Severity, Status, Verdict

JUDGE = "llm_judge"


@dataclass(frozen=True, slots=True)
class Proposal:
    """One generation: a candidate for each slot asked for, in order; untrusted."""

    generation: int
    slots: tuple[int, ...]
    candidates: tuple[object, ...]
    rationale: Rationale = UNSTATED


@dataclass(slots=True)
class Slot:
    """One place of the batch."""

    number: int
    candidate: object = None  # last proposed
    point: Point | None = None  # the candidate, once the domain checks let it pass
    findings: tuple[Finding, ...] = ()  # what may stand between it and acceptance
    expect: Verdict | None = None  # what the rules said, whether it blocks or not
    unchecked: tuple[str, ...] = ()  # rules that could not tell, which the policy lets pass
    structural: bool = False  # the last answer held no well-formed candidate for it
    ended: bool = False  # it has its disposition
    closed: bool = False  # not asked for again
    why: str = ""  # it is asked for no more, where no finding says it
    proposed: set[str] = field(default_factory=set)

    @property
    def open(self) -> bool:
        return not self.ended and not self.closed

    def judged(self, candidate: object, judgement: Judgement, *, observing: bool = False) -> None:
        """Take a new candidate and what the in-process checks said of it.

        With ``observing`` the rules block nothing.
        """
        self.candidate, self.unchecked, self.why = candidate, (), ""
        self.expect = judgement.expect
        rules = () if judgement.expect is None or observing else judgement.expect.findings
        self.findings = (*judgement.findings, *rules)
        self.structural = any(
            one.check in STRUCTURAL and one.status is Status.REJECT for one in judgement.findings
        )
        self.point = candidate if not self.standing and isinstance(candidate, dict) else None

    @property
    def standing(self) -> tuple[Finding, ...]:
        """What stands between the candidate and acceptance."""
        return tuple(one for one in self.findings if _stands(one))

    @property
    def rejecting(self) -> tuple[Finding, ...]:
        """What an agent could put right: a check that could not tell is no fault of its own."""
        return tuple(one for one in self.findings if one.status is not Status.ERROR)

    @property
    def doubted(self) -> tuple[str, ...]:
        """The rules that could not tell, where nothing else stands against the candidate.

        One that was left open, as when a budget was spent, is among them.
        """
        standing = self.standing
        untold = (Status.ERROR, Status.SKIPPED)
        only = all(one.status in untold and one.kind for one in standing)
        return tuple(one.check for one in standing) if only else ()

    def let_pass(self, unchecked: tuple[str, ...]) -> None:
        """Let the candidate on although some rules could not tell."""
        assert isinstance(self.candidate, dict)
        self.point, self.unchecked = self.candidate, unchecked

    @property
    def verdict(self) -> Verdict:
        """Everything that was said of the candidate, what blocks nothing included."""
        said = {one.check for one in self.findings if one.kind}
        watched = () if self.expect is None else self.expect.findings
        return Verdict((*self.findings, *(one for one in watched if one.check not in said)))

    def unanswered(self, stage: str, reason: str) -> None:
        """The answer as a whole was rejected: there is no candidate."""
        self.structural, self.candidate, self.point, self.expect = True, None, None, None
        self.findings = (Finding(stage, Layer.SHAPE, Status.REJECT, reason),)

    def close_if_repeated(self) -> None:
        """What was proposed again for the slot it was rejected for is no progress: stop asking."""
        text = json.dumps(pack(self.candidate), sort_keys=True)
        if not self.ended and text in self.proposed:
            self.close("no_progress: the same candidate was proposed again")
        self.proposed.add(text)

    def close(self, why: str) -> None:
        """Ask no more for a candidate."""
        self.closed, self.why = True, self.why or why

    def rejected_by(self) -> str:
        return next((one.check for one in self.standing), "producer")

    def __str__(self) -> str:
        telling = (
            one
            for one in self.findings
            if _stands(one) or (one.layer is Layer.VERIFIER and one.status is not Status.SKIPPED)
        )
        said = [f"{one.check}: {one.reason}" for one in telling if one.reason]
        said += [self.why] if self.why else []
        return f"slot {self.number}: " + ("; ".join(said) or "no candidate")


def _stands(finding: Finding) -> bool:
    """Whether a finding keeps its candidate out; a verifier's skip is no word on it."""
    return finding.gates and not finding.passed


def said(slots: Sequence[Slot]) -> str:
    """What stands against each slot, in one line."""
    return " | ".join(map(str, slots))


def judgement(
    number: int, generation: int, draw: int, slots: Sequence[Slot], *, observed: bool
) -> Judged:
    """What the in-process checks said of a generation or a draw, for the ledger."""
    return Judged(
        round=number,
        generation=generation,
        draw=draw,
        verdicts=[_verdict(slot) for slot in slots],
        observed=observed,
    )


def _verdict(slot: Slot) -> VerdictRecord:
    by_space = [_record(one) for one in slot.findings if not one.kind]
    if slot.expect is None:
        return VerdictRecord(slot.number, by_space)
    errors = [one.check for one in slot.expect.findings if one.status is Status.ERROR]
    expect: JsonObject = pack(slot.expect.as_record())
    return VerdictRecord(slot.number, by_space, expect, errors)


def recalled(record: VerdictRecord) -> Verdict:
    """The verdict of the rules as a ledger has it."""
    return Verdict(tuple(_finding(one, record.errors) for one in record.expect["outcomes"]))


def _finding(outcome: JsonObject, errors: Sequence[str]) -> Finding:
    if outcome["skipped"]:
        status = Status.SKIPPED
    elif outcome["passed"]:
        status = Status.PASS
    else:
        status = Status.ERROR if outcome["id"] in errors else Status.REJECT
    severity = Severity(outcome["severity"])
    soft = outcome["type"] == JUDGE and severity is not Severity.ERROR
    return Finding(
        outcome["id"],
        Layer.SOFT if soft else Layer.DOMAIN,
        status,
        outcome["detail"],
        kind=outcome["type"],
        severity=severity,
        open=outcome["skipped"] and not outcome["passed"],
    )


def _record(finding: Finding) -> FindingRecord:
    return FindingRecord(
        finding.check, finding.layer.value, finding.status.value, text(finding.reason)
    )
