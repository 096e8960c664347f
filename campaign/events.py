"""The events of a ledger: what happened, as a tagged union of frozen structs.

Format version 1. A line of the ledger is an :class:`Entry`: its number ``n`` (from 1, without
gaps), the wall clock ``t`` in seconds since the epoch, and one event, told apart by ``kind``.
Node-hours are nodes times hours of wall clock. Text an agent wrote is never in an event; the
candidates it named and the reasons they were rejected for always are.

``campaign.read(directory)`` gives the entries in order, also of a run that is going on. A ledger of
a later format version is refused by its number; within a version, fields with a default may join.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from campaign.agentevents import (
    Answered as Answered,
    Asked as Asked,
    Called as Called,
    CallFailed as CallFailed,
    Unanswered as Unanswered,
    VoteAsked as VoteAsked,
    Voted as Voted,
)
from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.eventbase import LedgerEvent as _Event

VERSION = 1
JsonObject: TypeAlias = dict[str, Any]


class RuleRecord(msgspec.Struct, frozen=True):
    """One rule of the run, as it was written, and where."""

    entry: JsonObject
    source: str


class RunCreated(_Event, frozen=True, tag="run_created"):
    """The first event: everything a later job needs to go on, the config included."""

    version: int
    simgate: str
    name: str
    mode: str  # campaign | surrogate_only | dry_run
    folder: str  # the campaign folder, absolute
    config: JsonObject
    rules: list[RuleRecord] = msgspec.field(default_factory=list)  # in the order they run


class JobStarted(_Event, frozen=True, tag="job_started"):
    """A driver opened the run; jobs count from 1."""

    job: int
    host: str
    pid: int
    python: str
    numpy: str
    slurm: str = ""  # the id of the Slurm job it runs in
    traceparent: str = ""  # its span, where it has telemetry, as the W3C writes it


class Submitting(_Event, frozen=True, tag="slurm_submitting"):
    """A job is about to be given to Slurm; without an end below, its queue may hold ``name``."""

    name: str
    link: int  # its place in a chain of jobs, from 1
    chain: bool = False  # whether it submits its successor
    dependency: str = ""


class Submitted(_Event, frozen=True, tag="slurm_submitted"):
    """How that ended: with a job's id, or with Slurm's words of refusal."""

    job: str = ""
    refused: str = ""


class Withdrawn(_Event, frozen=True, tag="slurm_withdrawn"):
    """Jobs that were taken back from Slurm, and why."""

    jobs: list[str]
    reason: str


class Signalled(_Event, frozen=True, tag="signalled"):
    """A signal asked the driver to stop; running tasks have ``grace`` seconds to end."""

    signal: str
    grace: float


class JobEnded(_Event, frozen=True, tag="job_ended"):
    """The driver left on its own terms. A job without this was killed."""

    job: int
    outcome: str  # done | failed | stopped
    reason: str


class RoundStarted(_Event, frozen=True, tag="round_started"):
    round: int


class Filled(_Event, frozen=True, tag="filled"):
    """What the surrogate drew to fill slots no proposal of the agent could."""

    round: int
    draw: int
    slots: list[int]
    candidates: list[Any]


class FindingRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding, as a check or verifier stated it."""

    check: str
    layer: str
    status: str
    reason: str = ""
    metrics: JsonObject = msgspec.field(default_factory=dict)


class VerdictRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the in-process checks said of one slot's candidate.

    ``findings`` are those of the checks that follow from the parameter space. ``expect`` is the
    verdict of the rules, empty where there are none: ``overall_pass``, ``failed`` and ``skipped``
    (ids of rules of severity error), and ``outcomes``, one for each rule, with its ``id``,
    ``type``, ``severity``, ``passed``, ``detail`` and ``skipped``. ``errors`` names the rules that
    could not tell.
    """

    slot: int
    findings: list[FindingRecord]
    expect: JsonObject = msgspec.field(default_factory=dict)
    errors: list[str] = msgspec.field(default_factory=list)


class Judged(_Event, frozen=True, tag="judged"):
    """The in-process checks spoke about a generation (or a fallback draw, ``draw`` > 0)."""

    round: int
    generation: int
    verdicts: list[VerdictRecord]
    draw: int = 0
    observed: bool = False  # the rules only watch: what they say blocks nothing


class TaskStarted(_Event, frozen=True, tag="task_started"):
    """A try is about to run: its worst case is reserved."""

    task: str  # a verifier's name, or "simulation"
    candidate: str  # content hash
    attempt: int  # the try's number, from 1
    round: int
    slot: int
    nodes: int
    reserved: float  # node-hours
    share: float = 0.0  # nodes of an allocation it keeps busy; 0 where it runs in none


class TaskEnded(_Event, frozen=True, tag="task_ended"):
    """A try ended; its reservation is replaced by what was spent."""

    task: str
    candidate: str
    attempt: int
    status: str  # executors.base.TaskStatus
    spent: float  # node-hours
    seconds: float
    value: Any = None
    reason: str = ""
    exit_code: int | None = None
    host: str = ""
    adopted: bool = False


class SlotEnded(_Event, frozen=True, tag="slot_ended"):
    """A slot got its disposition; what was let through is on its way to the simulation."""

    round: int
    slot: int
    disposition: str
    generation: int
    candidate: str = ""
    parameters: JsonObject = msgspec.field(default_factory=dict)
    reason: str = ""
    unanswered: list[str] = msgspec.field(default_factory=list)  # verifiers
    unchecked: list[str] = msgspec.field(default_factory=list)  # rules that could not tell


class Reverified(_Event, frozen=True, tag="reverified"):
    """A later job put the verifiers that had not answered to a slot's candidate again."""

    round: int
    slot: int
    unanswered: list[str] = msgspec.field(default_factory=list)
    rejected_by: str = ""
    reason: str = ""


class RoundEnded(_Event, frozen=True, tag="round_ended"):
    round: int


Event: TypeAlias = (
    RunCreated
    | JobStarted
    | Submitting
    | Submitted
    | Withdrawn
    | Signalled
    | JobEnded
    | RoundStarted
    | Asked
    | Called
    | CallFailed
    | Unanswered
    | Answered
    | VoteAsked
    | Voted
    | Filled
    | Judged
    | TaskStarted
    | TaskEnded
    | SlotEnded
    | Reverified
    | RoundEnded
    | AllocationReserved
    | AllocationQueued
    | AllocationBegan
    | AllocationEnded
)


class Entry(msgspec.Struct, frozen=True):
    """One line of the ledger."""

    n: int
    t: float
    event: Event
