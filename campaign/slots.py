"""The slots of a batch while they are filled, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from campaign.events import FindingRecord, Judged, VerdictRecord, pack
from campaign.space import Point
from checks import Finding
from checks.finding import Layer, Status


@dataclass(frozen=True, slots=True)
class Proposal:
    """One generation: a candidate for each slot asked for, in order; untrusted."""

    generation: int
    slots: tuple[int, ...]
    candidates: tuple[object, ...]


@dataclass(slots=True)
class Slot:
    """One place of the batch."""

    number: int
    candidate: object = None  # last proposed
    point: Point | None = None  # the candidate, once the domain checks let it pass
    findings: tuple[Finding, ...] = ()
    structural: bool = False  # the last answer held no candidate for it
    ended: bool = False  # it has its disposition
    closed: bool = False  # not asked for again
    proposed: set[str] = field(default_factory=set)

    @property
    def open(self) -> bool:
        return not self.ended and not self.closed

    def judged(self, candidate: object, findings: tuple[Finding, ...]) -> bool:
        """Take a new candidate and what the domain checks said; whether they let it pass."""
        self.candidate, self.findings, self.structural = candidate, findings, False
        fine = all(one.status is Status.PASS for one in findings)
        self.point = candidate if fine and isinstance(candidate, dict) else None
        return fine

    def unanswered(self, stage: str, reason: str) -> None:
        """The answer as a whole was rejected: there is no candidate."""
        self.structural, self.candidate, self.point = True, None, None
        self.findings = (Finding(stage, Layer.SHAPE, Status.REJECT, reason),)

    def close_if_repeated(self) -> None:
        """What was proposed again for the slot it was rejected for is no progress: stop asking."""
        text = json.dumps(pack(self.candidate), sort_keys=True)
        self.closed = self.closed or (not self.ended and text in self.proposed)
        self.proposed.add(text)

    def rejected_by(self) -> str:
        gating = (Status.REJECT, Status.ERROR)
        return next((one.check for one in self.findings if one.status in gating), "producer")

    def __str__(self) -> str:
        said = [f"{one.check}: {one.reason}" for one in self.findings if one.reason]
        return f"slot {self.number}: " + ("; ".join(said) or "no candidate")


def said(slots: Sequence[Slot]) -> str:
    """What stands against each slot, in one line."""
    return " | ".join(map(str, slots))


def judgement(number: int, generation: int, draw: int, slots: Sequence[Slot]) -> Judged:
    """What the in-process checks said of a generation or a draw, for the ledger."""
    return Judged(
        round=number,
        generation=generation,
        draw=draw,
        verdicts=[
            VerdictRecord(slot.number, [_record(f) for f in slot.findings]) for slot in slots
        ],
    )


def _record(finding: Finding) -> FindingRecord:
    return FindingRecord(finding.check, finding.layer.value, finding.status.value, finding.reason)
