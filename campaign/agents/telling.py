"""Parameters, candidates and observations in the words of a prompt, on a line each.

Values are written as the agent has to write them: those of stepped parameters in steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from campaign.config import Objective
from campaign.fence import fenced
from campaign.grid import encode, wired
from campaign.observations import distance
from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space
from campaign.trial import Trial

_Parameter: TypeAlias = FloatParameter | IntParameter | CategoricalParameter

_REASON = 200  # characters of why a candidate failed
_OTHER = 40  # characters of a value that is none of the parameter's
_LARGEST = 2**64  # of a number that is written in full


class Teller:
    """Tells of the candidates of one campaign."""

    def __init__(self, space: Space, objective: Objective) -> None:
        self._space, self._wire, self._objective = space, wired(space), objective

    def parameters(self) -> str:
        """What a candidate is made of."""
        return "\n".join(f"- {_parameter(*one)}" for one in self._wire.items())

    def candidates(self, points: Sequence[Point], most: int) -> str:
        """At most ``most`` of the points one by one."""
        lines = [f"- {self._written(point)}" for point in points[:most]]
        more = [f"- and {len(points) - most} more"] if len(points) > most else []
        return "\n".join([*lines, *more])

    def observations(
        self, trials: Sequence[Trial], which: Literal["none", "best", "recent"], most: int
    ) -> str:
        """At most ``most`` of the trials: values, and what failed, with the reasons."""
        some, lost = shown(trials, self._objective, which, most)
        valued = sum(one.value is not None for one in trials)
        order = "best first" if which == "best" else "the latest last"
        simulated = _head("simulated", len(some), valued, order)
        rejected = _head("that failed", len(lost), len(trials) - valued, "the latest last")
        return "\n".join(
            [*self._lines(simulated, some, self._value), *self._lines(rejected, lost, _why)]
        )

    def _lines(self, head: str, trials: Sequence[Trial], said: Callable[[Trial], str]) -> list[str]:
        each = [f"- {self._written(one.point)}: {said(one)}" for one in trials]
        return [head, *each] if each else []

    def _value(self, trial: Trial) -> str:
        return f"{self._objective.name} = {number(trial.value)}"

    def _written(self, point: Point) -> str:
        values = encode(self._space, point)
        return ", ".join(
            f"{name} = {_value(parameter, values[name])}"
            for name, parameter in self._wire.items()
            if name in values
        )


def shown(
    trials: Sequence[Trial],
    objective: Objective,
    which: Literal["none", "best", "recent"],
    most: int,
) -> tuple[Sequence[Trial], Sequence[Trial]]:
    """At most ``most`` of the trials, as an agent is told of them: with a value, and without.

    A fifth of them is kept for failures: where not to go is worth knowing, too.
    """
    if which == "none":
        return (), ()
    valued = [one for one in trials if one.value is not None]
    failed = [one for one in trials if one.value is None]
    failing = min(len(failed), max(most // 5, most - len(valued)))
    if which == "best":
        valued.sort(key=lambda one: distance(objective, one.value or 0.0))
        return valued[: most - failing], _last(failed, failing)
    return _last(valued, most - failing), _last(failed, failing)


def number(value: object) -> str:
    """A number, or a choice, as JSON: the shortest that reads back as the same."""
    return json.dumps(value, ensure_ascii=False)


def kind(parameter: _Parameter) -> str:
    """What a value of the parameter is, without a value that could be copied."""
    if isinstance(parameter, CategoricalParameter):
        return "one of its choices"
    return "a number" if isinstance(parameter, FloatParameter) else "a whole number"


def _parameter(name: str, parameter: _Parameter) -> str:
    unit = f", in {parameter.unit}" if parameter.unit else ""
    about = " ".join(parameter.description.split())
    about = f". {about}" if about else ""
    if isinstance(parameter, CategoricalParameter):
        return f"{name}: one of {', '.join(map(number, parameter.choices))}{unit}{about}"
    ends = f"from {number(parameter.min)} to {number(parameter.max)}"
    log = ", best varied by factors" if parameter.scale == "log" else ""
    return f"{name}: {kind(parameter)} {ends}{unit}{log}{about}"


def _last(trials: Sequence[Trial], count: int) -> Sequence[Trial]:
    return trials[max(len(trials) - count, 0) :]


def _head(what: str, some: int, of: int, order: str) -> str:
    count = f"{some} of {of}, " if some < of else ""
    return f"Candidates {what} ({count}{order}):"


def _why(trial: Trial) -> str:
    return fenced(trial.reason, _REASON) if trial.reason else "no reason given"


def _value(parameter: _Parameter, value: object) -> str:
    if isinstance(parameter, CategoricalParameter) and value in parameter.choices:
        return number(value)
    if isinstance(value, bool | int | float) and abs(value) < _LARGEST:
        return number(value)
    return fenced(str(value), _OTHER)
