"""The values that pass between the loop, its agents and its gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from campaign.space import Point
from campaign.trial import Trial
from checks.finding import Finding

SIMULATION = "simulation"
NOT_SIMULATED = "not simulated: dry run"
ONCE = "a dry run is not gone on with; start another one"


class Mode(StrEnum):
    """What a run is, from its first event to its last."""

    CAMPAIGN = "campaign"
    SURROGATE_ONLY = "surrogate_only"
    DRY_RUN = "dry_run"


class Disposition(StrEnum):
    """How a slot ended."""

    ACCEPTED = "accepted"  # a proposal of generation 1 passed
    REPAIRED = "repaired"  # a proposal of a later generation passed
    FALLBACK = "fallback"  # no proposal passed; the surrogate's candidate did
    RETURNED = "returned"  # no proposal passed; the last one is run all the same
    TOMBSTONE = "tombstone"  # nothing is run


class JobOutcome(StrEnum):
    """How a job, and with its last job a run, ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # resumable


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that did not pass, and everything that was said of it."""

    slot: int
    candidate: object  # as proposed: untrusted
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Correction:
    """What a repair adds to the ordinary request: the answer that fell short, and why it did.

    ``response`` is that answer byte for byte; it and ``text`` live no longer than the ask.
    """

    response: str = field(repr=False)
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """What an agent is asked for; a repair is an ask with rejections and fewer slots.

    ``trials`` are the finished simulations of all earlier rounds, ``accepted`` the candidates of
    this round that passed, ``rejections`` what this round rejected, in order, ``suggestions``
    what the surrogate would try. With a ``correction`` the agent is sent the ordinary request
    for the whole batch of ``batch`` candidates and then the two messages of the correction;
    without one, the ordinary request for the open slots. ``cut_off`` counts the answers of this
    round that ended at the limit of their length.
    """

    round: int
    generation: int
    slots: tuple[int, ...]
    trials: tuple[Trial, ...] = ()
    accepted: Mapping[int, Point] = field(default_factory=dict)  # by slot
    rejections: tuple[Rejection, ...] = ()
    suggestions: tuple[Point, ...] = ()
    batch: int = 0
    correction: Correction | None = None
    cut_off: int = 0

    @property
    def pinned(self) -> tuple[Point, ...]:
        """The candidates of this round that are carried and never changed."""
        return tuple(self.accepted.values())


@dataclass(frozen=True, slots=True)
class Spent:
    """The tokens one call used, as the server counted them."""

    input_tokens: int
    output_tokens: int

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to one ask: a candidate for each slot asked, in order. Untrusted.

    An answer that holds no candidates names the ``stage`` it was rejected at and the ``reason``.
    ``response`` is the single response it was read from, byte for byte, ``None`` where the agent
    has none; ``request`` is the SHA-256 of what was sent.
    """

    candidates: tuple[object, ...] = ()
    rationale: str = field(default="", repr=False)
    stage: str = ""
    reason: str = ""
    response: str | None = field(default=None, repr=False)
    spent: Spent | None = None
    response_id: str = ""
    finish_reason: str = ""
    request: str = ""


class CampaignFailedError(Exception):
    """The campaign cannot go on; its message says why, in one line."""
