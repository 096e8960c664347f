"""What an agent is sent: the words of its task, and the schema of its answer. Pure.

The words hold no candidate but those that were tried, accepted or suggested: small models copy
what they see. Values stand as the agent has to write them, those of stepped parameters in steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from string import Formatter
from typing import Literal, TypeAlias, cast

from campaign.agents.rulewords import worded
from campaign.agents.telling import Teller, kind, number
from campaign.config import CampaignConfig, CommandAgent, Objective, OpenAIAgent, PythonAgent
from campaign.gateconfig import observes
from campaign.grid import decode, is_stepped, wired
from campaign.grounding import RATIONALE
from campaign.judging import CANDIDATES, bounds
from campaign.model import Ask
from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space
from checks import template
from checks.domain import judge, normalise
from checks.finding import Status
from checks.suite import Suite

Message: TypeAlias = Mapping[str, str]

PLACEHOLDERS = (
    "description", "objective", "parameters", "rules", "observations", "suggestions", "pinned",
    "count", "shape",
)  # fmt: skip
"""What a template may hold, in braces."""

LONGEST_ASKED = 500
"""Characters of a rationale that are asked for; far fewer than :mod:`reading` takes."""

_LISTED = 100  # accepted candidates and suggestions that are told one by one
_ROLE = (
    "You propose candidates for simulations, batch after batch. Each is checked before it is "
    "simulated: one that breaks a bound or a rule, or was tried before, is rejected."
)


@dataclass(frozen=True, slots=True)
class Brief:
    """What stays the same over a campaign: what is searched, under which rules, what is shown.

    ``space`` is the campaign's own, ``template`` the user's words in place of ours.
    """

    space: Space
    objective: Objective
    description: str = ""
    rules: str = ""
    history: Literal["none", "best", "recent"] = "best"
    shown: int = 10
    template: str | None = None

    @property
    def shape(self) -> str:
        """The words in which the answer's shape is asked for."""
        return _shape(wired(self.space))


def brief(config: CampaignConfig, suite: Suite | None, text: str | None = None) -> Brief:
    """The brief of a campaign; ``text`` is a template without faults, see `check_template`."""
    found = Brief(
        config.parameters,
        config.objective,
        config.description,
        worded(() if suite is None else suite.rules, observed=observes(config)),
        template=text,
    )
    if isinstance(config.agent, OpenAIAgent | CommandAgent | PythonAgent):
        return replace(found, history=config.agent.history, shown=config.agent.shown)
    return found


def messages(brief: Brief, ask: Ask) -> tuple[Message, ...]:
    """The messages of an ask, each with ``role`` and ``content``: the same ask, the same bytes.

    A system and a user message; with a correction, those of the whole batch as it was first asked
    for, then the answer that fell short and the correction. The size is bounded whatever the
    round: 2,000 bytes, 200 for each parameter, the user's own words, and a line for each of
    ``shown`` observations, 100 accepted candidates and 100 suggestions, which has at most 1,000
    bytes and 200 for each parameter besides names and choices.
    """
    asked = ask if ask.correction is None else whole(ask)
    filling = _filling(brief, asked)
    words = _task(filling) if brief.template is None else _filled(brief.template, filling)
    found = (
        _message("system", f"{_ROLE}\n{filling['shape']}"),
        _message("user", words),
    )
    if ask.correction is None:
        return found
    return (
        *found,
        _message("assistant", ask.correction.response),
        _message("user", ask.correction.text),
    )


def whole(ask: Ask) -> Ask:
    """The ask of the same round as it was first put: for the whole batch, and nothing accepted."""
    size = ask.batch or len(ask.slots) + len(ask.pinned)
    return replace(ask, slots=tuple(range(size)), accepted={}, correction=None)


def schema(space: Space, count: int) -> dict[str, object]:
    """The JSON Schema of an answer with ``count`` candidates, its keys in the order to write them.

    ``space`` may be the campaign's or the wired one. No server enforces all of it.
    """
    fields = {name: _field(parameter) for name, parameter in wired(space).items()}
    candidates = {"type": "array", "minItems": count, "maxItems": count, "items": _object(fields)}
    rationale = {"type": "string", "maxLength": LONGEST_ASKED}
    return _object({RATIONALE: rationale, CANDIDATES: candidates})


def check_template(text: str) -> list[str]:
    """What is wrong with a user's template, each naming what would be right."""
    if not text.strip():
        return ["the file is empty; write what the model is to be asked"]
    faults = template.faults(text, PLACEHOLDERS)
    if not faults and "count" not in {name for _, name, _, _ in Formatter().parse(text)}:
        return ["{count} is missing; the model has to be told how many candidates to propose"]
    return faults


def examples(text: str, space: Space) -> tuple[Point, ...]:
    """The whole candidates that stand as JSON objects in a template, decoded, each once.

    One whose values the parameter space rejects is none.
    """
    plain = "".join(
        before + ("" if name is None else " ") for before, name, _, _ in Formatter().parse(text)
    )
    limits = bounds(space)
    candidates = [
        normalise(limits, decode(space, one))
        for one in _objects(plain)
        if one.keys() == space.keys()
    ]
    judged = judge(limits, candidates)  # which also finds what stands there twice
    return tuple(
        cast("Point", one)
        for one, findings in zip(candidates, judged, strict=True)
        if all(found.status is Status.PASS for found in findings)
    )


def _objects(text: str) -> Iterator[Mapping[str, object]]:
    """Every JSON object in a text, those within others included."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        try:
            found, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end, found = at + 1, None
        at = end
        yield from _within(found)


def _within(found: object) -> Iterator[Mapping[str, object]]:
    if isinstance(found, dict):
        yield found
        found = list(found.values())
    if isinstance(found, list):
        for one in found:
            yield from _within(one)


def _filling(brief: Brief, ask: Ask) -> dict[str, str]:
    """What each placeholder stands for; ``""`` where there is nothing to say."""
    teller = Teller(brief.space, brief.objective)
    return {
        "description": brief.description.strip(),
        "objective": _objective(brief.objective),
        "parameters": teller.parameters(),
        "rules": "\n".join(filter(None, [brief.rules, _units(brief)])),
        "observations": teller.observations(ask.trials, brief.history, brief.shown),
        "suggestions": teller.candidates(ask.suggestions, _LISTED),
        "pinned": teller.candidates(ask.pinned, _LISTED),
        "count": str(len(ask.slots)),
        "shape": brief.shape,
    }


def _task(filling: Mapping[str, str]) -> str:
    count = filling["count"]
    heads = {
        "description": "",
        "objective": "",
        "parameters": "The parameters of a candidate:\n",
        "rules": "",
        "observations": "",
        "pinned": "Accepted already for this batch, not to be proposed again:\n",
        "suggestions": "A statistical model would try these. A mere copy of one is rejected:\n",
    }
    sections = [f"{head}{filling[name]}" for name, head in heads.items() if filling[name]]
    wanted = "1 new candidate." if count == "1" else f"{count} new candidates, no two alike."
    return "\n\n".join([*sections, f"Propose exactly {wanted} Repeat none that is listed above."])


def _filled(text: str, filling: Mapping[str, str]) -> str:
    return "".join(
        before + ("" if name is None else filling[name] or "none")
        for before, name, _, _ in Formatter().parse(text)
    )


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _objective(objective: Objective) -> str:
    name = objective.name
    if objective.target is None:
        low = objective.direction == "minimize"
        return f"The aim: make {name} as {'low' if low else 'high'} as possible."
    near = "" if objective.tolerance is None else f", within {number(objective.tolerance)}"
    return f"The aim: bring {name} to {number(objective.target)}{near}."


def _units(brief: Brief) -> str:
    """How the rules' values follow from what the agent writes, where that is not the same."""
    if not brief.rules or not is_stepped(brief.space):
        return ""
    steps = [
        f"{name} times {number(parameter.step)}"
        for name, parameter in brief.space.items()
        if isinstance(parameter, FloatParameter) and parameter.step is not None
    ]
    return f"The rules speak of plain values: {', '.join(steps)}."


def _shape(wire: Space) -> str:
    keys = ", ".join(f'"{name}" ({kind(parameter)})' for name, parameter in wire.items())
    return (
        "Answer with one JSON object and nothing else. It has two keys: first "
        f'"{RATIONALE}", a text of at most {LONGEST_ASKED} characters that says why; then '
        f'"{CANDIDATES}", a list of objects, each with exactly these keys: {keys}.'
    )


def _field(parameter: FloatParameter | IntParameter | CategoricalParameter) -> dict[str, object]:
    if isinstance(parameter, CategoricalParameter):
        return {"enum": list(parameter.choices)}
    kind = "number" if isinstance(parameter, FloatParameter) else "integer"
    return {"type": kind, "minimum": parameter.min, "maximum": parameter.max}


def _object(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
