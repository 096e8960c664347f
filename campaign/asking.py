"""Asking, once and for all: an ask that was answered is never put again.

Each answer is in the ledger before it is used, so a job that goes on with another job's round
reads what that job was told, and the surrogate's proposals do not depend on the machine. What an
agent wrote lives no longer than the round: a later job has its candidates and not its words.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from campaign.agentconfig import Asked as AskedAgent
from campaign.agents.base import Agent
from campaign.agents.surrogate import SurrogateAgent
from campaign.calling import BUDGET, Calling, NoAnswerError
from campaign.config import CampaignConfig
from campaign.events import Answered, Asked, Filled
from campaign.judging import LOST, UNSTATED, Batch, Judgement, Layers, Rationale
from campaign.model import Answer, Ask, CampaignFailedError, JobOutcome
from campaign.packing import pack, text, unpack
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.space import Point
from campaign.spans import of_ask
from campaign.state import CampaignState
from campaign.stop import Stop, StoppedError
from campaign.trial import SpaceExhaustedError
from checks import Rejected
from checks.domain import normalise

if TYPE_CHECKING:
    from campaign.voting import Voting


class NoCandidateError(CampaignFailedError, ValueError):
    """No candidate is left that could fill a slot."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of an ask: candidates, or the ``stage`` at which there were none.

    ``response`` is the agent's single response, where this job was given it. After a ``last``
    reply the round asks no more.
    """

    candidates: tuple[object, ...] = ()
    rationale: Rationale = UNSTATED
    stage: str = ""
    reason: str = ""
    response: str | None = field(default=None, repr=False)
    last: bool = False


@dataclass(frozen=True, slots=True)
class Asking:
    """The agent, and the surrogate that stands in for it."""

    config: CampaignConfig
    layers: Layers
    agent: Agent
    surrogate: SurrogateAgent
    recorder: Recorder
    stop: Stop
    purse: Purse
    calling: Calling | None = None  # for an agent that is called and may not answer
    voting: Voting | None = None  # where a rule is judged
    _suggested: dict[int, tuple[Point, ...]] = field(default_factory=dict)  # by round

    async def answer(self, ask: Ask, repair: str = "") -> Reply:
        """The agent's answer to an ask, from the ledger if it is there.

        ``repair`` says for the ledger how a further ask is told. Raises ``Rejected`` (stage
        ``budget``) when no generation is left to spend.
        """
        rounds = self._state.round(ask.round)
        if (seen := rounds.answers.get(ask.generation)) is not None:
            return self._reply(seen, UNSTATED if self._by_surrogate else LOST)
        if (never := rounds.unanswered.get(ask.generation)) is not None:
            return Reply(stage=never.stage, reason=never.reason, last=True)
        if ask.generation not in rounds.asked:
            self._afford(ask)
            await self.recorder.record(
                Asked(
                    round=ask.round,
                    generation=ask.generation,
                    slots=list(ask.slots),
                    repair=repair,
                )
            )
        try:
            with of_ask("surrogate" if self._by_surrogate else self.config.agent.kind):
                answer, tokens, seconds = await self._put(ask)
        except NoAnswerError as error:
            return Reply(stage=error.stage, reason=str(error), last=True)
        answered = self._answered(ask, answer, tokens, seconds)
        await self.recorder.record(answered)
        rationale = UNSTATED if self._by_surrogate else Rationale(answer.rationale)
        return replace(self._reply(answered, rationale), response=answer.response)

    async def judge(self, batch: Batch) -> dict[int, Judgement]:
        """What the layers say of new candidates, and the judge of what they let pass."""
        found = self.layers.judge(batch)
        if self.voting is None or self.layers.suite is None:
            return found
        return await self.voting.complete(self.layers.suite, batch, found)

    async def draw(self, ask: Ask, number: int) -> Filled:
        """The surrogate's candidates for slots nobody could fill, from the ledger if there.

        Raises :class:`NoCandidateError` when the space holds too few further candidates.
        """
        seen = self._state.round(ask.round).fills.get(number)
        if seen is not None:
            return seen
        self.stop.check()
        try:
            with of_ask("surrogate"):
                answer = await self.surrogate.propose(ask)
        except SpaceExhaustedError as error:
            raise NoCandidateError(f"round {ask.round}: {error}") from error
        candidates = [pack(point) for point in answer.candidates]
        filled = Filled(round=ask.round, draw=number, slots=list(ask.slots), candidates=candidates)
        await self.recorder.record(filled)
        return filled

    async def suggestions(self, ask: Ask) -> tuple[Point, ...]:
        """What the surrogate would try in a round, for an agent that is told that."""
        if not (isinstance(self.config.agent, AskedAgent) and self.config.agent.suggest):
            return ()
        if ask.round not in self._suggested:
            whole = Ask(ask.round, 0, tuple(range(self.config.batch_size)), trials=ask.trials)
            try:
                answer = await self.surrogate.propose(whole)
            except SpaceExhaustedError:
                answer = Answer()
            self._suggested.clear()  # of earlier rounds nothing is asked again
            self._suggested[ask.round] = cast("tuple[Point, ...]", answer.candidates)
        return self._suggested[ask.round]

    async def close(self) -> None:
        """End what the agent and the judge keep open."""
        await self.agent.close()
        if self.voting is not None:
            await self.voting.close()

    @property
    def _state(self) -> CampaignState:
        return self.recorder.state

    @property
    def _by_surrogate(self) -> bool:
        return isinstance(self.agent, SurrogateAgent)

    def _reply(self, answered: Answered, rationale: Rationale) -> Reply:
        candidates = tuple(unpack(answered.candidates))
        repeated = self._repeated(answered)
        return Reply(candidates, rationale, answered.stage, answered.reason, last=repeated)

    def _repeated(self, answered: Answered) -> bool:
        """Whether the response is one of before: something on the way answers from a cache."""
        earlier = self._state.round(answered.round).answers.values()
        return answered.response_id != "" and any(
            one.response_id == answered.response_id and one.generation < answered.generation
            for one in earlier
        )

    async def _put(self, ask: Ask) -> tuple[Answer, int, float]:
        try:
            if self.calling is not None:
                return await self.calling.put(ask)
            return await self.agent.propose(ask), 0, 0.0
        except Rejected as refusal:
            stage = refusal.check or "producer"
            return Answer(stage=stage, reason=refusal.reason), 0, 0.0
        except SpaceExhaustedError as error:
            # A surrogate whose space is used up ends the campaign; that is no failure.
            self.stop.request(str(error), JobOutcome.DONE)
            raise StoppedError(str(error)) from error
        except (CampaignFailedError, NoAnswerError, StoppedError):
            raise
        except Exception as error:
            if self._by_surrogate:
                raise  # our own mistake, to be seen as one
            raise CampaignFailedError(f"agent: {type(error).__name__}: {error}") from error

    def _answered(self, ask: Ask, answer: Answer, tokens: int, seconds: float) -> Answered:
        response = answer.response
        return Answered(
            round=ask.round,
            generation=ask.generation,
            candidates=[pack(normalise(self.layers.bounds, one)) for one in answer.candidates],
            stage=answer.stage,
            reason=text(answer.reason),
            tokens=tokens,
            input_tokens=0 if answer.spent is None else answer.spent.input_tokens,
            output_tokens=0 if answer.spent is None else answer.spent.output_tokens,
            finish_reason=text(answer.finish_reason),
            response_id=text(answer.response_id),
            request=answer.request,
            response="" if response is None else _digest(response),
            seconds=round(seconds, 3),
        )

    def _afford(self, ask: Ask) -> None:
        """Reject the ask when a cap, or a fallback that another job already began, forbids it."""
        worst = self.agent.worst(ask)
        blocked = self.purse.blocked({"generations": 1} | ({"tokens": worst} if worst else {}))
        if blocked is not None:
            raise Rejected(str(blocked), check=BUDGET)
        if self._state.round(ask.round).fills:
            raise Rejected("the fallback already fills this round", check=BUDGET)


def _digest(response: str) -> str:
    return hashlib.sha256(text(response).encode()).hexdigest()
