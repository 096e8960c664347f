"""What the surrogate learns from and what it looks for; values only, so that readers stay light."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from campaign.space import Point

Fits: TypeAlias = Callable[[Sequence[Point]], Sequence[bool]]
"""Which of some points may be proposed at all."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One finished simulation; ``value`` is None where it failed or a verifier rejected it.

    ``reason`` says why; it is for whoever is told of the trial, and no part of what it is.
    """

    point: Point
    value: float | None
    reason: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Room:
    """What further points have to keep clear of, beside the trials.

    ``pending`` points are expected to end near their prediction; ``exclude`` teaches nothing.
    With ``fits`` only points that it lets pass are proposed.
    """

    pending: Sequence[Point] = ()
    exclude: Sequence[Point] = ()
    fits: Fits | None = None


ANYWHERE = Room()


class SpaceExhaustedError(ValueError):
    """The space holds fewer further candidates than were asked for."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is searched: the least value, the greatest, or the value nearest to ``target``."""

    kind: Literal["minimize", "maximize", "target"]
    target: float = 0.0
