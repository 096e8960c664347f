"""The ask and the answer of a program or function that is asked. Pure.

The document is described field by field in ``docs/reference/agents.md``. Values stand in it as
the agent has to write them: those of stepped parameters in steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from campaign.agents.prompt import Brief, messages
from campaign.agents.reading import Reading, check_ending, read
from campaign.agents.telling import shown
from campaign.grid import decode, encode, wired
from campaign.model import Answer, Ask, Rejection, Spent
from campaign.packing import pack, text
from campaign.space import FloatParameter, Point, Space
from checks import Rejected
from checks.finding import Severity, Status
from executors.values import jsonable

VERSION = 1
BESIDE = ("usage", "id", "finish_reason")
"""Keys an answer may have beside its candidates and its rationale."""

_LONGEST = 200  # characters of an id, or of why the answer ended
_MOST_TOKENS = 2**53


def document(brief: Brief, ask: Ask) -> dict[str, Any]:
    """All that an agent is told with an ask, as JSON holds it."""
    space = brief.space
    correction = ask.correction
    return {
        "version": VERSION,
        "round": ask.round,
        "generation": ask.generation,
        "slots": list(ask.slots),
        "count": len(ask.slots),
        "parameters": _parameters(space),
        "objective": brief.objective.model_dump(mode="json", exclude_none=True),
        "observations": list(_observations(brief, ask)),
        "pinned": [
            {"slot": slot, "candidate": encode(space, point)}
            for slot, point in ask.accepted.items()
        ],
        "rejections": [_rejection(space, one) for one in ask.rejections],
        "suggestions": [encode(space, point) for point in ask.suggestions],
        "messages": [dict(message) for message in messages(brief, ask)],
        "correction": None
        if correction is None
        else {"response": correction.response, "text": correction.text},
    }


def as_line(document: Mapping[str, Any]) -> bytes:
    """The document as one line of ASCII, with its end."""
    return json.dumps(document, allow_nan=False).encode() + b"\n"


def read_text(space: Space, response: str) -> Answer:
    """The answer that a text is; one that holds no candidates names its stage."""
    answer = Answer(response=response)
    try:
        found = read(response, beside=BESIDE)
    except Rejected as refusal:
        return _rejected(answer, refusal)
    return _taken(space, answer, found)


def read_value(space: Space, value: object) -> Answer:
    """The answer that a function returned: text, or a mapping, whose JSON is the response."""
    if value is None or isinstance(value, str):
        return read_text(space, value or "")
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        give = "return text, or a mapping with rationale and candidates"
        return _rejected(
            Answer(), Rejected(f"the function returned {kind}; {give}", check="schema")
        )
    try:
        said = {key: one for key, one in value.items() if key not in BESIDE}
        response = json.dumps(said, sort_keys=True, allow_nan=False, default=jsonable)
        beside = {key: value[key] for key in BESIDE if key in value}
    except (TypeError, ValueError, RecursionError):
        why = "the mapping is no JSON; return finite numbers, text, lists and mappings of them"
        return _rejected(Answer(), Rejected(why, check="schema"))
    answer = Answer(response=response)
    try:
        found = read(response)
    except Rejected as refusal:
        return _rejected(answer, refusal)
    return _taken(space, answer, replace(found, beside=beside))


@dataclass(frozen=True, slots=True)
class _Beside:
    """What an answer says of itself."""

    spent: Spent | None
    response_id: str
    finish_reason: str


def _parameters(space: Space) -> dict[str, dict[str, Any]]:
    found = {
        name: parameter.model_dump(mode="json", exclude={"expectations"}, exclude_none=True)
        for name, parameter in wired(space).items()
    }
    for name, parameter in space.items():
        if isinstance(parameter, FloatParameter) and parameter.step is not None:
            found[name]["step"] = parameter.step
    return found


def _observations(brief: Brief, ask: Ask) -> Iterator[dict[str, Any]]:
    for some in shown(ask.trials, brief.objective, brief.history, brief.shown):
        for one in some:
            told: dict[str, Any] = {"candidate": encode(brief.space, one.point), "value": one.value}
            yield told if one.value is not None else told | {"reason": text(one.reason)}


def _rejection(space: Space, rejection: Rejection) -> dict[str, Any]:
    return {
        "slot": rejection.slot,
        "candidate": pack(_wired(space, rejection.candidate)),
        "findings": [
            {"check": one.check, "severity": one.severity.value, "reason": text(one.words)}
            for one in rejection.findings
            if one.status is Status.REJECT and one.severity is not Severity.INFO
        ],
    }


def _wired(space: Space, candidate: object) -> object:
    """A candidate as it was proposed; untrusted."""
    if not isinstance(candidate, Mapping):
        return candidate
    plain: Point = {k: v for k, v in candidate.items() if isinstance(v, bool | int | float | str)}
    return {**candidate, **encode(space, plain)}


def _taken(space: Space, answer: Answer, found: Reading) -> Answer:
    """The answer with what was read in it, unless what stands beside says it is none."""
    try:
        beside = _beside(found.beside)
    except Rejected as refusal:
        return _rejected(answer, refusal)
    answer = replace(
        answer,
        spent=beside.spent,
        response_id=beside.response_id,
        finish_reason=beside.finish_reason,
    )
    try:
        check_ending(beside.finish_reason)
    except Rejected as refusal:
        return _rejected(answer, refusal)
    candidates = tuple(decode(space, one) for one in found.candidates)
    return replace(answer, candidates=candidates, rationale=found.rationale)


def _rejected(answer: Answer, refusal: Rejected) -> Answer:
    return replace(answer, stage=refusal.check or "schema", reason=refusal.reason)


def _beside(found: Mapping[str, object]) -> _Beside:
    return _Beside(_spent(found.get("usage")), _word(found, "id"), _word(found, "finish_reason"))


def _spent(usage: object) -> Spent | None:
    if usage is None:
        return None
    if isinstance(usage, Mapping) and usage.keys() == {"input_tokens", "output_tokens"}:
        counts = [usage["input_tokens"], usage["output_tokens"]]
        if all(type(one) is int and 0 <= one <= _MOST_TOKENS for one in counts):
            return Spent(*counts)
    give = "give {input_tokens: …, output_tokens: …}, two whole numbers from 0"
    raise Rejected(f"usage: not what was used; {give}", check="schema")


def _word(found: Mapping[str, object], key: str) -> str:
    word = found.get(key)
    if word is None:
        return ""
    if not isinstance(word, str) or len(word) > _LONGEST:
        raise Rejected(f"{key}: give text of at most {_LONGEST} characters", check="schema")
    return word
