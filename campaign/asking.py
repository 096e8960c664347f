"""Asking, once and for all: an ask that was answered is never put again.

Each answer is in the ledger before it is used, so a job that goes on with another job's round
reads what that job was told, and the surrogate's proposals do not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from campaign.agents.base import Agent
from campaign.agents.surrogate import SurrogateAgent
from campaign.budget import blocking
from campaign.config import CampaignConfig
from campaign.events import Answered, Asked, Filled, pack, text
from campaign.judging import LOST, UNSTATED, Layers, Rationale
from campaign.model import Ask, CampaignFailedError, JobOutcome
from campaign.recorder import Recorder
from campaign.state import CampaignState
from campaign.stop import Stop, StoppedError
from campaign.trial import SpaceExhaustedError
from checks import Rejected
from checks.domain import normalise


class NoCandidateError(CampaignFailedError, ValueError):
    """No candidate is left that could fill a slot."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The agent, and the surrogate that stands in for it."""

    config: CampaignConfig
    layers: Layers
    agent: Agent
    surrogate: SurrogateAgent
    recorder: Recorder
    stop: Stop

    async def answer(self, ask: Ask) -> tuple[Answered, Rationale]:
        """The agent's answer to an ask, from the ledger if it is there, and its reasons.

        Raises ``Rejected`` (stage ``budget``) when no generation is left to spend.
        """
        rounds = self._state.round(ask.round)
        if (seen := rounds.answers.get(ask.generation)) is not None:
            return seen, UNSTATED if isinstance(self.agent, SurrogateAgent) else LOST
        if ask.generation not in rounds.asked:
            self._afford(ask)
            await self.recorder.record(
                Asked(round=ask.round, generation=ask.generation, slots=list(ask.slots))
            )
        answered, rationale = await self._put(ask)
        await self.recorder.record(answered)
        return answered, rationale

    async def draw(self, ask: Ask, number: int) -> Filled:
        """The surrogate's candidates for slots nobody could fill, from the ledger if there.

        Raises :class:`NoCandidateError` when the space holds too few further candidates.
        """
        seen = self._state.round(ask.round).fills.get(number)
        if seen is not None:
            return seen
        self.stop.check()
        try:
            answer = await self.surrogate.propose(ask)
        except SpaceExhaustedError as error:
            raise NoCandidateError(f"round {ask.round}: {error}") from error
        candidates = [pack(point) for point in answer.candidates]
        filled = Filled(round=ask.round, draw=number, slots=list(ask.slots), candidates=candidates)
        await self.recorder.record(filled)
        return filled

    @property
    def _state(self) -> CampaignState:
        return self.recorder.state

    async def _put(self, ask: Ask) -> tuple[Answered, Rationale]:
        try:
            answer = await self.agent.propose(ask)
        except Rejected as refusal:
            stage = refusal.check or "producer"
            refused = Answered(
                round=ask.round, generation=ask.generation, stage=stage, reason=text(refusal.reason)
            )
            return refused, Rationale()
        except SpaceExhaustedError as error:
            # A surrogate whose space is used up ends the campaign; that is no failure.
            self.stop.request(str(error), JobOutcome.DONE)
            raise StoppedError(str(error)) from error
        except Exception as error:
            if isinstance(self.agent, SurrogateAgent):
                raise  # our own mistake, to be seen as one
            raise CampaignFailedError(f"agent: {type(error).__name__}: {error}") from error
        found = [pack(normalise(self.layers.bounds, one)) for one in answer.candidates]
        answered = Answered(round=ask.round, generation=ask.generation, candidates=found)
        if isinstance(self.agent, SurrogateAgent):
            return answered, UNSTATED
        return answered, Rationale(answer.rationale)

    def _afford(self, ask: Ask) -> None:
        """Reject the ask when a cap, or a fallback that another job already began, forbids it."""
        blocked = blocking(self._state.usage, self.config.budgets, {"generations": 1})
        if blocked is not None:
            raise Rejected(str(blocked), check="budget")
        if self._state.round(ask.round).fills:
            raise Rejected("the fallback already fills this round", check="budget")
