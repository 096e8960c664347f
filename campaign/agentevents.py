"""The events of asking: the agent, and the judge."""

from __future__ import annotations

from typing import Any

import msgspec

from campaign.eventbase import LedgerEvent as _Event


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
    wait: float = 0.0  # seconds until the next call; 0 when it is made at once, or none is


class Unanswered(_Event, frozen=True, tag="unanswered"):
    """No call brought an answer: the generation is given back, and the round asks no more."""

    round: int
    generation: int
    reason: str
    stage: str = "transport"  # or budget: a cap forbade the next call


class Answered(_Event, frozen=True, tag="answered"):
    """What the agent proposed for the slots asked, or the stage its answer was rejected at.

    ``tokens`` is what the call is charged: what the server counted, else all that was reserved.
    """

    round: int
    generation: int
    candidates: list[Any] = msgspec.field(default_factory=list)  # packed, see campaign.packing
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
