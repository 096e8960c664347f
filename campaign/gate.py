"""The gate of one round, in the parts that ``checks.accept`` calls.

Producer: ask for the open slots. Checks: the layers, cheapest first. Fallback: fill what is
still open. A slot that passes is pinned and its simulation starts at once, while its siblings
are still being verified or asked for again.

Everything that cost something is in the ledger, and is read from there when a job goes on with
a round another job began: the same calls in the same order come to the same end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from campaign.asking import Asking, NoCandidateError
from campaign.events import Judged, SlotEnded
from campaign.gateconfig import most_generations, observes, policies
from campaign.guard import filtered
from campaign.judging import UNSTATED, Batch, Judgement, Rationale
from campaign.limits import DRAWS
from campaign.model import Ask, CampaignFailedError, Disposition, Rejection
from campaign.observations import trials
from campaign.packing import unpack
from campaign.slots import Proposal, Slot, judgement, recalled, said
from campaign.space import Point, content_hash
from campaign.steering import Steering
from campaign.stop import StoppedError
from campaign.talk import Talk
from campaign.verify import Verifiers
from checks import Attempt, Rejected
from checks.domain import key


class Gate:
    """One round's gate. ``passes`` is called once for every slot that gets a candidate to run."""

    def __init__(
        self,
        asking: Asking,
        verifiers: Verifiers,
        steering: Steering,
        number: int,
        passes: Callable[[SlotEnded], None],
    ) -> None:
        self._asking = asking
        self._verifiers = verifiers
        self._number = number
        self._passes = passes
        self._slots = [Slot(i) for i in range(asking.config.batch_size)]
        self._rejections: list[Rejection] = []
        self._state = asking.recorder.state
        self._round = self._state.round(number)
        self._trials = trials(self._state, asking.config)
        self._policy = policies(asking.config)
        self._observing = observes(asking.config)
        self._talk = Talk(asking, steering)
        self._history = [
            slot.parameters
            for earlier, rounds in sorted(self._state.rounds.items())
            if earlier < number
            for slot in rounds.slots.values()
            if slot.candidate
        ]
        self._seen = {key(asking.layers.bounds, point) for point in self._history}

    @property
    def answers(self) -> int:
        """The generations of this round so far."""
        return len(self._round.answers)

    @property
    def used(self) -> str:
        """How many generations that is, of how many."""
        return f"{self.answers} of {most_generations(self._asking.config)} generations are used"

    async def propose(self, previous: tuple[Attempt[Proposal], ...]) -> Proposal:
        """Ask for the open slots. What holds no candidates is rejected at its stage."""
        self._asking.stop.check()
        slots = [slot for slot in self._slots if slot.open]
        if not slots:
            raise Rejected("no slot is left that another proposal could fill", check="no_progress")
        return await self._talk.ask(self._ask(len(previous) + 1, slots), slots)

    async def domain(self, proposal: Proposal) -> None:
        """Schema and domain: what the parameter space and the rules say of each candidate."""
        slots = [self._slots[number] for number in proposal.slots]
        new = dict(zip(proposal.slots, proposal.candidates, strict=True))
        await self._judge(new, proposal.rationale, generation=proposal.generation)
        if not any(slot.point for slot in slots):
            self._talk.close(slots)
            raise Rejected(said(slots), check=slots[0].rejected_by())

    async def verifiers(self, proposal: Proposal) -> None:
        """Verifiers, on the workers; a slot that passes is pinned and runs at once."""
        slots = [self._slots[number] for number in proposal.slots]
        first = proposal.generation == 1
        disposition = Disposition.ACCEPTED if first else Disposition.REPAIRED
        await self._verify([slot for slot in slots if slot.point], disposition, proposal.generation)
        self._talk.close(slots)

    def settled(self, _: Proposal) -> None:
        """The batch as a whole: every slot has a candidate that passed, of whatever generation."""
        left = [slot for slot in self._slots if not slot.ended]
        if left:
            raise Rejected(said(left), check=left[0].rejected_by())

    async def fill(self) -> Proposal:
        """Do with the slots no proposal could fill what the policy says."""
        policy = self._policy
        left: dict[str, list[Slot]] = {}
        for slot in self._slots:
            if not slot.ended:
                wanted = policy.structural_failure if slot.structural else policy.semantic_rejection
                left.setdefault(wanted, []).append(slot)
        if doomed := left.get("fail_run"):
            why = f"round {self._number}: {self.used}; {said(doomed)} (policy: fail_run)"
            raise CampaignFailedError(why)
        for slot in left.get("tombstone", ()):
            await self._end(slot, Disposition.TOMBSTONE, None)
        for slot in left.get("return_last", ()):
            last = self._runnable(slot.candidate)
            ending = Disposition.TOMBSTONE if last is None else Disposition.RETURNED
            await self._end(slot, ending, last)
        await self._fall_back(left.get("fallback", []))
        return Proposal(0, (), ())

    async def _fall_back(self, slots: list[Slot]) -> None:
        """Draw from the surrogate until every slot has a candidate that passes the same layers."""
        for draw in range(1, DRAWS + 1):
            if not slots:
                return
            filled = await self._asking.draw(self._ask(0, slots), draw)
            new = dict(zip(filled.slots, unpack(filled.candidates), strict=True))
            await self._judge(new, UNSTATED, draw=draw)
            await self._verify([slot for slot in slots if slot.point], Disposition.FALLBACK, 0)
            slots = [slot for slot in slots if not slot.ended]
        if slots:
            raise NoCandidateError(
                f"round {self._number}: none of {DRAWS} fallback candidates passed; {said(slots)}"
            )

    def _ask(self, generation: int, slots: Sequence[Slot]) -> Ask:
        return Ask(
            round=self._number,
            generation=generation,
            slots=tuple(slot.number for slot in slots),
            trials=self._trials,
            accepted=self._pinned(),
            rejections=tuple(self._rejections),
            batch=len(self._slots),
        )

    def _runnable(self, candidate: object) -> Point | None:
        """A candidate of the parameters, each with a value of its type, in bounds or not."""
        bounds = self._asking.layers.bounds
        known = isinstance(candidate, dict) and candidate.keys() == {one.name for one in bounds}
        return cast("Point", candidate) if known and key(bounds, candidate) else None

    def _pinned(self) -> dict[int, Point]:
        return {
            slot.number: slot.point for slot in self._slots if slot.ended and slot.point is not None
        }

    async def _judge(
        self, new: Mapping[int, object], rationale: Rationale, *, generation: int = 0, draw: int = 0
    ) -> None:
        """Put new candidates, by slot, to the layers that run in process."""
        judged = self._round.judged.get((generation, draw))
        shown = () if draw else self._talk.shown
        batch = Batch(new, self._pinned(), rationale, self._seen, self._history, shown)
        found = await self._asking.judge(batch) if judged is None else self._again(batch, judged)
        slots = [self._slots[number] for number in new]
        for slot in slots:
            slot.judged(new[slot.number], found[slot.number], observing=self._observing)
        if judged is None:
            await self._asking.recorder.record(
                judgement(self._number, generation, draw, slots, observed=self._observing)
            )
        for slot in slots:
            self._decide(slot)

    def _again(self, batch: Batch, judged: Judged) -> dict[int, Judgement]:
        """What an earlier job said: a check of the user's own need not say it again."""
        by_space = replace(self._asking.layers, suite=None).judge(batch)
        return {
            one.slot: Judgement(by_space[one.slot].findings, recalled(one) if one.expect else None)
            for one in judged.verdicts
        }

    def _decide(self, slot: Slot) -> None:
        """What becomes of a candidate that did not pass, or of which a rule could not tell."""
        doubted = slot.doubted
        if not slot.standing:
            return
        if doubted and self._policy.check_error == "warn_continue":
            slot.let_pass(doubted)
            return
        if doubted and self._policy.check_error == "fail_run":
            raise CampaignFailedError(f"round {self._number}: {slot} (check_error: fail_run)")
        slot.findings = (*slot.findings, *self._verifiers.unreached())
        slot.closed = slot.closed or bool(doubted)  # not at fault: nothing to repair
        self._rejections.append(Rejection(slot.number, slot.candidate, slot.rejecting))

    async def _verify(
        self, slots: Sequence[Slot], disposition: Disposition, generation: int
    ) -> None:
        async with asyncio.TaskGroup() as group:
            for slot in slots:
                group.create_task(self._verify_one(slot, disposition, generation))
        # In the order of the slots, not of the answers: what is said next must not depend on luck.
        self._rejections += [
            Rejection(slot.number, slot.candidate, slot.rejecting)
            for slot in slots
            if not slot.ended
        ]
        self._asking.stop.check()

    async def _verify_one(self, slot: Slot, disposition: Disposition, generation: int) -> None:
        assert slot.point is not None
        ended = self._round.slots.get(slot.number)
        if ended is not None and ended.candidate == content_hash(slot.point):
            # Let through by an earlier job; what was said since then does not take that back.
            await self._end(slot, disposition, slot.point)
            return
        try:
            found = await self._verifiers.verify(slot.point, self._number, slot.number)
        except StoppedError:
            return  # the round sees it once the slot's siblings are done
        slot.findings = (*slot.findings, *found.findings)
        if found.passed:
            await self._end(slot, disposition, slot.point, generation, found.unanswered)
        elif not found.rejected:
            slot.closed = True  # the candidate is not at fault: nothing to repair

    async def _end(
        self,
        slot: Slot,
        disposition: Disposition,
        point: Point | None,
        generation: int = 0,
        unanswered: Sequence[str] = (),
    ) -> None:
        slot.ended, slot.point = True, point
        ended = self._round.slots.get(slot.number)
        if ended is None:
            guard = self._asking.config.simulation.guard
            filter_ = "" if point is None else filtered(guard, point, slot.verdict)
            let_through = disposition not in (Disposition.RETURNED, Disposition.TOMBSTONE)
            ended = SlotEnded(
                round=self._number,
                slot=slot.number,
                disposition=(Disposition.TOMBSTONE if filter_ else disposition).value,
                generation=generation,
                candidate="" if point is None else content_hash(point),
                parameters={} if point is None else dict(point),
                reason=filter_ or ("" if let_through else str(slot)),
                unanswered=list(unanswered),
                unchecked=list(slot.unchecked),
            )
            await self._asking.recorder.record(ended)
        if ended.disposition == Disposition.TOMBSTONE:
            slot.point = None
            return
        later = self._round.reverified.get(slot.number)
        if later is None or not later.rejected_by:
            self._passes(ended)
