"""An agent that speaks: its answers are texts, it takes corrections, and it may give no answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from campaign.agents.base import AgentError, Capabilities, Plain
from campaign.agents.reading import read
from campaign.model import Answer, Ask, Spent
from checks import Rejected

Line: TypeAlias = str | AgentError | Answer | Callable[[Ask], str]

WORST = 100
"""Tokens that each of its answers may use; each uses ten times fewer."""


def answer(*candidates: object, rationale: str = "") -> str:
    """The text of an answer."""
    return json.dumps({"rationale": rationale, "candidates": list(candidates)})


@dataclass
class SpeakingAgent(Plain):
    """Says ``lines`` in turn: a text to be read, an answer as it is, or why there is none.

    After the last line the last is repeated. ``asks`` are those it was put, as they were put.
    """

    lines: Sequence[Line]
    asks: list[Ask] = field(default_factory=list)
    counted: bool = True

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(single_response_v1=True, usage=self.counted)

    def worst(self, ask: Ask) -> int:
        return WORST if ask.slots else 0

    async def propose(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        line = self.lines[min(len(self.asks), len(self.lines)) - 1]
        if isinstance(line, AgentError):
            raise line
        if isinstance(line, Answer):
            return line
        said = line if isinstance(line, str) else line(ask)
        facts: dict[str, Any] = {"response": said, "response_id": f"r{len(self.asks)}"}
        if self.counted:
            facts["spent"] = Spent(WORST // 20, WORST // 20)
        try:
            found = read(said)
        except Rejected as refusal:
            return Answer(stage=refusal.check or "", reason=refusal.reason, **facts)
        return Answer(found.candidates, found.rationale, **facts)


def speaking(*lines: Line, counted: bool = True) -> SpeakingAgent:
    return SpeakingAgent(lines, counted=counted)
