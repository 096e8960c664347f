"""What passes between a round and its agent: the asks, what came of them, and when to stop.

What the agent wrote stays here, for as long as the round lasts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from campaign.agents.surrogate import SurrogateAgent
from campaign.asking import Asking, Reply
from campaign.calling import BUDGET
from campaign.gateconfig import iterations, structural_budget
from campaign.model import Ask
from campaign.slots import Proposal, Slot
from campaign.steering import Steering
from checks import Rejected
from checks.domain import Key, key, too_many_or_few
from checks.finding import Status

TRUNCATION = "truncation"
"""The stage of an answer that ended at the limit of its length."""

REPEATED = "no_progress: the same response came again"


@dataclass(slots=True)
class Talk:
    """One round's. ``shown`` names what the agent was shown beside the campaign's history."""

    asking: Asking
    steering: Steering
    shown: Collection[Key] = frozenset()
    _reply: Reply = field(default_factory=Reply)
    _places: dict[int, int] = field(default_factory=dict)  # of the slots in the last answer
    _malformed: int = 0  # answers that held no candidates
    _cut_off: int = 0

    async def ask(self, ask: Ask, slots: Sequence[Slot]) -> Proposal:
        """Put the next ask, for ``slots``; as a repair once there was an answer.

        Raises ``Rejected`` when there is no proposal, by the stage it ended at.
        """
        try:
            return await self._asked(ask, slots)
        except Rejected as refusal:
            if refusal.check == BUDGET:
                for slot in slots:
                    slot.why = f"{BUDGET}: {refusal.reason}"
                    slot.structural = slot.structural or slot.candidate is None
            raise

    async def _asked(self, ask: Ask, slots: Sequence[Slot]) -> Proposal:
        self._afford(ask.generation)
        ask = replace(await self._showing(ask), cut_off=self._cut_off)
        way = ""
        if ask.generation > 1:
            response = self._reply.response
            way, said = self.steering.correction(ask, slots, self._places, response)
            ask = replace(ask, correction=said)
        self._reply = reply = await self.asking.answer(ask, way)
        self._places = {slot: at for at, slot in enumerate(ask.slots)}
        if reply.stage:
            self._refuse(slots, reply.stage, reply.reason)
        count = too_many_or_few(len(ask.slots), len(reply.candidates))
        if count.status is Status.REJECT:
            self._refuse(slots, count.check, count.reason)
        return Proposal(ask.generation, ask.slots, reply.candidates, reply.rationale)

    def close(self, slots: Sequence[Slot]) -> None:
        """Ask no more for slots whose repair makes no progress."""
        for slot in slots:
            slot.close_if_repeated()
            if self._reply.last and not slot.ended:
                slot.close(REPEATED)

    def _afford(self, generation: int) -> None:
        """Reject where the answers of this round have used up their generations."""
        most, malformed = iterations(self.asking.config), structural_budget(self.asking.config)
        if malformed is None:
            return  # one counter, which is that of ``accept``
        if self._malformed > malformed:
            raise Rejected(f"{self._malformed} answers held no candidates", check=BUDGET)
        if generation - 1 - self._malformed >= most:
            raise Rejected(f"{most} of {most} generations are used", check=BUDGET)

    async def _showing(self, ask: Ask) -> Ask:
        """The ask with what the surrogate would try; what is shown counts as seen."""
        if isinstance(self.asking.agent, SurrogateAgent):
            return ask
        suggestions = await self.asking.suggestions(ask)
        shown = (*suggestions, *self.asking.agent.examples)
        self.shown = frozenset(key(self.asking.layers.bounds, point) for point in shown)
        return replace(ask, suggestions=suggestions)

    def _refuse(self, slots: Sequence[Slot], stage: str, reason: str) -> None:
        """Take an answer that held no candidates for the slots asked for."""
        self._malformed += 1
        self._cut_off += stage == TRUNCATION
        self._places = {}
        for slot in slots:
            slot.unanswered(stage, reason)
            slot.closed = slot.closed or self._reply.last
        raise Rejected(reason, check=stage)
