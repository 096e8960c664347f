"""Recorded answers, keyed by round and generation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from campaign.agents.base import Plain
from campaign.model import Answer, Ask
from campaign.problems import ConfigError, Problem, dotted
from campaign.wording import describe
from campaign.yamlfile import read_bytes
from checks import Rejected


class RecordedAnswer(BaseModel):
    """What the agent once answered to the ask of a round and generation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    round: int = Field(ge=1, description="Round of the ask, from 1.")
    generation: int = Field(1, ge=1, description="Generation of the ask within its round, from 1.")
    rationale: str = Field("", description="Why these candidates.")
    candidates: tuple[Any, ...] = Field(description="One for each slot asked for, in slot order.")


class Recording(BaseModel):
    """The file a replay agent reads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = Field(description="Version of this format.")
    answers: tuple[RecordedAnswer, ...] = Field(description="The answers, in any order.")


@dataclass(frozen=True, slots=True)
class ReplayAgent(Plain):
    """Answers from a recording; an ask that was never answered is a rejection, stage ``empty``."""

    answers: dict[tuple[int, int], RecordedAnswer]

    async def propose(self, ask: Ask) -> Answer:
        recorded = self.answers.get((ask.round, ask.generation))
        if recorded is None:
            raise Rejected(
                f"no answer recorded for round {ask.round}, generation {ask.generation}",
                check="empty",
            )
        return Answer(recorded.candidates, recorded.rationale)


def load_recording(path: Path) -> ReplayAgent:
    """Read a recording; raises :class:`campaign.problems.ConfigError` with every problem in it."""
    try:
        document = read_bytes(path.read_bytes())
        recording = Recording.model_validate(document.data)
    except OSError as error:
        raise ConfigError([Problem("", f"cannot be read: {error.strerror}")], str(path)) from error
    except ValidationError as error:
        found = [Problem(dotted(loc), text) for loc, text in describe(error, document.data)]
        raise ConfigError(found, str(path)) from error
    if problems := (*document.problems, *_answered_twice(recording)):
        raise ConfigError(problems, str(path))
    return ReplayAgent({(one.round, one.generation): one for one in recording.answers})


def _answered_twice(recording: Recording) -> Iterator[Problem]:
    first: dict[tuple[int, int], int] = {}
    for index, one in enumerate(recording.answers):
        earlier = first.setdefault((one.round, one.generation), index)
        if earlier != index:
            yield Problem(
                f"answers[{index}]",
                f"round {one.round}, generation {one.generation} is answered by answers[{earlier}] "
                "already; keep one",
            )
