"""The surrogate as an agent: a surrogate-only run, and the fallback of any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from campaign.agents.base import Plain
from campaign.grid import decode, encode, wired
from campaign.model import Answer, Ask, Rejection
from campaign.space import Point, Space
from campaign.trial import Fits, Goal, Room, Trial
from checks.finding import Layer, Status
from checks.world import BUILT_IN


@dataclass(frozen=True, slots=True)
class SurrogateAgent(Plain):
    """Proposes what the surrogate would try next; for a repair, the next best.

    What a verifier, or a check of the user's own, rejected counts as a failed simulation, so that
    the surrogate keeps away from more of the kind.
    """

    space: Space
    goal: Goal
    seed: int
    fits: Fits | None = None  # which points the rules let pass

    async def propose(self, ask: Ask) -> Answer:
        """A point for each slot, none of them tried; computed off the event loop.

        Raises ``SpaceExhaustedError`` when the space holds too few points that are not yet tried.
        """
        return Answer(await asyncio.to_thread(self._suggest, ask))

    def _suggest(self, ask: Ask) -> tuple[object, ...]:
        """The candidates; they are searched for on the grid of a stepped parameter."""
        from campaign.surrogate import suggest  # SciPy: half a second that readers need not pay

        refused = [one for one in ask.rejections if _of_the_space(one)]
        failed = [Trial(_point(one), None) for one in refused if _at_fault(one)]
        points = suggest(
            wired(self.space),
            self.goal,
            [Trial(self._wired(one.point), one.value) for one in (*ask.trials, *failed)],
            Room(
                pending=[self._wired(point) for point in ask.pinned],
                exclude=[self._wired(_point(one)) for one in refused],
                fits=None if self.fits is None else self._fits,
            ),
            count=len(ask.slots),
            seed=self.seed,
        )
        return tuple(decode(self.space, point) for point in points)

    def _wired(self, point: Point) -> Point:
        return encode(self.space, point)

    def _fits(self, points: Sequence[Point]) -> Sequence[bool]:
        assert self.fits is not None
        return self.fits([cast("Point", decode(self.space, point)) for point in points])


def _at_fault(rejection: Rejection) -> bool:
    """Whether the candidate would be rejected wherever it stood, by what `fits` does not know.

    One that repeats another, or of which a verifier could not tell, teaches nothing.
    """
    return any(
        one.status is Status.REJECT
        and (one.layer is Layer.VERIFIER or (one.kind and one.kind not in BUILT_IN))
        for one in rejection.findings
    )


def _of_the_space(rejection: Rejection) -> bool:
    """Whether the candidate was let through by what the parameter space alone says of it."""
    outside = (
        one.layer in (Layer.SHAPE, Layer.SCHEMA) and one.status is Status.REJECT
        for one in rejection.findings
    )
    return isinstance(rejection.candidate, dict) and not any(outside)


def _point(rejection: Rejection) -> Point:
    return cast("Point", rejection.candidate)
