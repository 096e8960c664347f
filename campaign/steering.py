"""How an agent is asked again: which slots are told what was wrong, and in whose words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.agentconfig import OpenAIAgent
from campaign.agents.base import Agent
from campaign.agents.prompt import Brief, brief, messages, whole
from campaign.config import CampaignConfig
from campaign.feedback import Advice, Told, Wording, correction, structural
from campaign.gateconfig import merged
from campaign.model import Ask, Correction
from campaign.ruleplaces import prompt_text
from campaign.slots import Slot
from campaign.space import Space
from checks.finding import Severity, Status

if TYPE_CHECKING:
    from checks.suite import Suite

RETRY, AUTO, PROMPT = "retry", "auto", "prompt"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask again: plainly, or saying what was wrong, in ``template``'s words if any."""

    name: str = RETRY
    template: str | None = None


@dataclass(frozen=True, slots=True)
class Steering:
    """What is said in a repair; nothing, where the agent takes no correction.

    ``repair`` is for candidates that were rejected, ``structural`` for answers and slots that
    held no well-formed one.
    """

    space: Space
    repair: Way = Way()
    structural: Way = Way()
    advice: Advice = field(default_factory=lambda: Advice({}, {}))
    brief: Brief | None = None  # for templates that repeat the ordinary request

    def correction(
        self, ask: Ask, slots: Sequence[Slot], places: Mapping[int, int], response: str | None
    ) -> tuple[str, Correction | None]:
        """The name of the way, and what it adds to the ordinary request for open ``slots``.

        ``places`` has the place of each slot in the answer that fell short, ``response``.
        """
        steered = [way for slot in slots if (way := self._way(slot)).name != RETRY]
        if response is None or not steered:
            return RETRY, None
        way = steered[0]
        if not places and way.template is None:
            said = self._structural(slots)
        else:
            said = correction(
                self.space,
                [self._told(slot, places) for slot in slots],
                ask.accepted,
                self.advice,
                self._wording(ask, way, response),
            )
        return way.name, Correction(response, said)

    def _structural(self, slots: Sequence[Slot]) -> str:
        """What is said of an answer that held no candidates at all."""
        (finding,) = slots[0].findings
        shape = "" if self.brief is None else self.brief.shape
        return structural(finding.check, finding.reason, len(slots), shape)

    def _wording(self, ask: Ask, way: Way, response: str) -> Wording | None:
        """The user's own words, with the ordinary request for a template that repeats it."""
        if way.template is None:
            return None
        original = "" if self.brief is None else messages(self.brief, whole(ask))[-1]["content"]
        return Wording(way.template, original, response)

    def _way(self, slot: Slot) -> Way:
        return self.structural if slot.structural else self.repair

    def _told(self, slot: Slot, places: Mapping[int, int]) -> Told:
        findings = slot.verdict.findings
        return Told(
            slot.number,
            places.get(slot.number),
            slot.candidate,
            tuple(
                one
                for one in findings
                if one.status is Status.REJECT and one.severity is not Severity.INFO
            ),
            tuple(one.check for one in findings if one.kind and one.status is Status.PASS),
            steer=self._way(slot).name != RETRY,
        )


def advice(suite: Suite | None) -> Advice:
    """The fields and hints of rules, by their ids."""
    rules = () if suite is None else suite.rules
    return Advice(
        {rule.id: ", ".join(rule.selector.names) for rule in rules if rule.selector is not None},
        {rule.id: rule.hint for rule in rules if rule.hint},
    )


def steering(config: CampaignConfig, folder: Path, suite: Suite | None, agent: Agent) -> Steering:
    """How the agent of a campaign is asked again; plainly, where it takes no correction."""
    if not agent.capabilities.single_response_v1:
        return Steering(config.parameters)
    block = merged(config)
    return Steering(
        config.parameters,
        _way(block.get("repair", AUTO), folder),
        _way(block.get("structural", RETRY), folder),
        advice(suite),
        brief(config, suite, _template(config, folder)),
    )


def _way(value: object, folder: Path) -> Way:
    if isinstance(value, Mapping):
        reference = str(value["prompt"])
        return Way(PROMPT, prompt_text(folder, reference) or reference)
    return Way(AUTO) if value == AUTO else Way()


def _template(config: CampaignConfig, folder: Path) -> str | None:
    """The user's own words for the ordinary request, if the agent has some."""
    name = config.agent.prompt if isinstance(config.agent, OpenAIAgent) else None
    return None if name is None else prompt_text(folder, name)
