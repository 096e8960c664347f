"""The events of a ledger: what happened, as a tagged union of frozen structs.

Format version 1. A line of the ledger is an :class:`Entry`: its number ``n`` (from 1, without
gaps), the wall clock ``t`` in seconds since the epoch, and one event, told apart by ``kind``.
Node-hours are nodes times hours of wall clock. Text an agent wrote is never in an event; the
candidates it named and the reasons they were rejected for always are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from campaign.allocationevents import (
    AllocationBegan,
    AllocationEnded,
    AllocationQueued,
    AllocationReserved,
)
from campaign.eventbase import LedgerEvent as _Event

VERSION = 1
_MOST_BITS = 1024  # of an integer kept as a number: beyond any float
_MOST_DEPTH = 100
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


class Asked(_Event, frozen=True, tag="asked"):
    """The agent is asked for the open slots: one generation is reserved."""

    round: int
    generation: int
    slots: list[int]
    repair: str = ""  # "" for a first ask, else how it is told: retry | auto | prompt


class Called(_Event, frozen=True, tag="called"):
    """One call of the agent is about to be made: its tokens are reserved."""

    round: int
    generation: int
    attempt: int  # of the same ask, from 1
    tokens: int


class CallFailed(_Event, frozen=True, tag="call_failed"):
    """A call brought no answer; ``tokens`` are charged all the same where they may be spent."""

    round: int
    generation: int
    attempt: int
    reason: str
    tokens: int
    status: int = 0  # of HTTP
    request_id: str = ""
    free: bool = False  # no retry is used: not up yet, asked otherwise next, or the run stops


class Unanswered(_Event, frozen=True, tag="unanswered"):
    """No call brought an answer: the generation is given back, and the round asks no more."""

    round: int
    generation: int
    reason: str


class Answered(_Event, frozen=True, tag="answered"):
    """What the agent proposed for the slots asked, or the stage its answer was rejected at.

    ``tokens`` is what the call is charged: what the server counted, else all that was reserved.
    """

    round: int
    generation: int
    candidates: list[Any] = msgspec.field(default_factory=list)  # packed, see pack()
    stage: str = ""
    reason: str = ""
    tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str = ""
    response_id: str = ""
    request: str = ""  # SHA-256 of what was sent
    response: str = ""  # SHA-256 of what came
    seconds: float = 0.0


class VoteAsked(_Event, frozen=True, tag="vote_asked"):
    """The judge is about to be asked for one vote: a call and its tokens are reserved."""

    key: str  # of the question, a hash
    vote: int  # from 1
    tokens: int


class Voted(_Event, frozen=True, tag="voted"):
    """What came of it; ``passed`` is None where there was no vote, with the reason why."""

    key: str
    vote: int
    tokens: int
    passed: bool | None = None
    error: str = ""


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


def pack(value: object, depth: int = 0) -> Any:
    """Make untrusted JSON-like data safe for a ledger: NaN and infinities as ``{"$float": …}``.

    A mapping that looks like one of these marks is wrapped as ``{"$plain": …}``. What JSON cannot
    hold, or not without a reader that sets no bounds, becomes text that says what it was.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        bits = value.bit_length()
        return value if bits <= _MOST_BITS else f"(an integer of {bits} bits)"
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if depth > _MOST_DEPTH:
        return "(nested too deeply)"
    if isinstance(value, (list, tuple)):
        return [pack(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        plain = {text(str(key)): pack(item, depth + 1) for key, item in value.items()}
        return {"$plain": plain} if _is_mark(plain) else plain
    return text(repr(value))


def unpack(value: Any) -> Any:
    """The inverse of :func:`pack`."""
    if isinstance(value, list):
        return [unpack(item) for item in value]
    if isinstance(value, dict):
        if _is_mark(value):
            return float(value["$float"]) if "$float" in value else _items(value["$plain"])
        return _items(value)
    return value


def text(value: str) -> str:
    """Text as UTF-8 can hold it: half surrogates, which JSON smuggles in, as their escapes."""
    return value.encode("utf-8", "backslashreplace").decode()


def _items(value: dict[str, Any]) -> dict[str, Any]:
    return {key: unpack(item) for key, item in value.items()}


def _is_mark(value: dict[str, Any]) -> bool:
    return len(value) == 1 and ("$float" in value or "$plain" in value)
