"""What the checks and verifiers said about one candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Layer(StrEnum):
    """Where in the gate a check stands; a later layer never sees what an earlier one rejected."""

    SHAPE = "shape"
    SCHEMA = "schema"
    DOMAIN = "domain"
    VERIFIER = "verifier"
    SOFT = "soft"  # judges and scores: recorded, never gating


class Status(StrEnum):
    """What one check said."""

    PASS = "pass"
    REJECT = "reject"
    ERROR = "error"  # it could not tell
    SKIPPED = "skipped"  # it did not run; the reason says why


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check said of one candidate; ``metrics`` are numbers it measured, by name."""

    check: str
    layer: Layer
    status: Status
    reason: str = ""
    metrics: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings on the candidate of one slot in one generation."""

    slot: int
    findings: tuple[Finding, ...]

    @property
    def rejected(self) -> tuple[Finding, ...]:
        """What stands between the candidate and acceptance, and can be repaired."""
        return self._gating(Status.REJECT)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The checks that could not tell: no pass, and nothing the agent could repair."""
        return self._gating(Status.ERROR)

    @property
    def overall_pass(self) -> bool:
        """Whether nothing rejected the candidate and every check that ran could tell."""
        return not self.rejected and not self.errors

    def _gating(self, status: Status) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.status is status and f.layer is not Layer.SOFT)
