"""The surrogate as an agent: a surrogate-only run, and the fallback of any other."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

from campaign.model import Answer, Ask, Rejection
from campaign.space import Point, Space
from campaign.trial import Goal, Trial
from checks.finding import Layer, Status


@dataclass(frozen=True, slots=True)
class SurrogateAgent:
    """Proposes what the surrogate would try next; for a repair, the next best.

    What a verifier rejected counts as a failed simulation, so that the surrogate keeps away
    from more of the kind.
    """

    space: Space
    goal: Goal
    seed: int

    async def propose(self, ask: Ask) -> Answer:
        """A point for each slot, none of them tried; computed off the event loop.

        Raises ``SpaceExhaustedError`` when the space holds too few points that are not yet tried.
        """
        from campaign.surrogate import suggest  # SciPy: half a second that readers need not pay

        refused = [one for one in ask.rejections if _of_the_space(one)]
        failed = [Trial(_point(one), None) for one in refused if _rejecting(one)]
        points = await asyncio.to_thread(
            suggest,
            self.space,
            self.goal,
            (*ask.trials, *failed),
            pending=ask.pinned,
            exclude=[_point(one) for one in refused],
            count=len(ask.slots),
            seed=self.seed,
        )
        return Answer(tuple(points))


def _rejecting(rejection: Rejection) -> set[Layer]:
    """The layers that rejected; none when a verifier could not tell, which teaches nothing."""
    return {one.layer for one in rejection.findings if one.status is Status.REJECT}


def _of_the_space(rejection: Rejection) -> bool:
    """Whether the candidate was let through by all checks that follow from the space."""
    return isinstance(rejection.candidate, dict) and _rejecting(rejection) <= {Layer.VERIFIER}


def _point(rejection: Rejection) -> Point:
    return cast("Point", rejection.candidate)
