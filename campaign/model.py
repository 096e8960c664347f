"""The values that pass between the loop, its agents and its gate."""

from __future__ import annotations

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
class Ask:
    """What an agent is asked for; a repair is an ask with rejections and fewer slots.

    ``trials`` are the finished simulations of all earlier rounds, ``pinned`` the candidates of
    this round that passed, ``rejections`` what this round rejected, in order.
    """

    round: int
    generation: int
    slots: tuple[int, ...]
    trials: tuple[Trial, ...] = ()
    pinned: tuple[Point, ...] = ()
    rejections: tuple[Rejection, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to one ask: a candidate for each slot asked, in order. Untrusted."""

    candidates: tuple[object, ...]
    rationale: str = field(default="", repr=False)


class CampaignFailedError(Exception):
    """The campaign cannot go on; its message says why, in one line."""
