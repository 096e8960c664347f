"""What the checks and verifiers said about one candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar, overload

T = TypeVar("T")


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


class Severity(StrEnum):
    """What a finding that did not pass does to the verdict."""

    ERROR = "error"  # the candidate does not pass
    WARN = "warn"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check said of one candidate; ``metrics`` are numbers it measured, by name.

    ``kind`` is the type of a rule, ``""`` for a check that is none. ``open`` marks a skipped
    check that nobody waived, as when a budget ended before it: it counts as not passed. ``told``
    is what an agent is told in the place of a ``reason`` that may be kept and so quotes nothing
    that must not; see :attr:`words`.
    """

    check: str
    layer: Layer
    status: Status
    reason: str = ""
    metrics: Mapping[str, object] = field(default_factory=dict)
    kind: str = ""
    severity: Severity = Severity.ERROR
    open: bool = False
    told: str = field(default="", repr=False)

    @property
    def words(self) -> str:
        """What an agent is told; to be kept nowhere, unlike the reason."""
        return self.told or self.reason

    @property
    def passed(self) -> bool:
        return self.status is Status.PASS or (self.status is Status.SKIPPED and not self.open)

    @property
    def gates(self) -> bool:
        """Whether the candidate fails with this check."""
        return self.severity is Severity.ERROR and self.layer is not Layer.SOFT

    def as_record(self) -> dict[str, object]:
        """One of a verdict's outcomes, as JSON."""
        return {
            "id": self.check,
            "type": self.kind,
            "severity": self.severity.value,
            "passed": self.passed,
            "detail": self.reason,
            "skipped": self.status is Status.SKIPPED,
        }


class Verdict:
    """All findings on one candidate in one generation, in the order of the checks. Immutable.

    Given a function and what to call it with, the findings are made when they are first asked
    for: of a large batch few are ever read. The candidate must not be changed before.
    """

    __slots__ = ("_given", "_made")

    @overload
    def __init__(self, findings: tuple[Finding, ...] = ()) -> None: ...

    @overload
    def __init__(self, findings: Callable[[T], tuple[Finding, ...]], given: T) -> None: ...

    def __init__(
        self, findings: tuple[Finding, ...] | Callable[[T], tuple[Finding, ...]] = (),
        given: T | None = None,
    ) -> None:  # fmt: skip
        self._made = findings
        self._given = given

    @property
    def findings(self) -> tuple[Finding, ...]:
        if not isinstance(self._made, tuple):
            self._made = self._made(self._given)  # type: ignore[arg-type]  # they fit: see above
            self._given = None
        return self._made

    @property
    def rejected(self) -> tuple[Finding, ...]:
        """What stands between the candidate and acceptance, and can be repaired."""
        return self._gating(Status.REJECT)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The checks that could not tell: no pass, and nothing the agent could repair."""
        return self._gating(Status.ERROR)

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the checks that the candidate fails with."""
        return tuple(f.check for f in self.findings if f.gates and not f.passed)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The ids among ``failed`` of the checks that were never made."""
        skips = (f for f in self.findings if f.gates and f.status is Status.SKIPPED)
        return tuple(f.check for f in skips if not f.passed)

    @property
    def overall_pass(self) -> bool:
        """Whether every check that gates passed, or was waived."""
        return not self.failed

    def as_record(self) -> dict[str, object]:
        """The verdict as JSON, as it is attached to a candidate under ``expect``."""
        return {
            "overall_pass": self.overall_pass,
            "failed": list(self.failed),
            "skipped": list(self.skipped),
            "outcomes": [finding.as_record() for finding in self.findings],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Verdict) and self.findings == other.findings

    __hash__ = None  # type: ignore[assignment]  # metrics are mappings

    def __repr__(self) -> str:
        return f"Verdict({self.findings!r})"

    def __reduce__(self) -> tuple[type[Verdict], tuple[tuple[Finding, ...]]]:
        return Verdict, (self.findings,)

    def _gating(self, status: Status) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.status is status and f.gates)
