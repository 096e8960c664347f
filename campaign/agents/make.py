"""The agent a campaign names, put together; each kind imports its library only here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from campaign.agentconfig import CommandAgent, OpenAIAgent, PythonAgent, ReplayAgent
from campaign.agents.base import Agent
from campaign.config import CampaignConfig
from campaign.render import Place
from checks.suite import Suite

if TYPE_CHECKING:
    from campaign.agents.serving import ModelServer


def agent_of(
    config: CampaignConfig, place: Place, suite: Suite | None, server: ModelServer | None = None
) -> Agent | None:
    """The configured agent, ``None`` where that is the surrogate.

    Raises ``ConfigError`` when the file of a recording cannot be used any more.
    """
    match config.agent:
        case ReplayAgent(file=file):
            from campaign.agents.replay import load_recording

            return load_recording(place.folder / file)
        case OpenAIAgent():
            from campaign.agents import openai

            return openai.agent(config.agent, config, place, suite, server)
        case CommandAgent():
            from campaign.agents import command

            return command.agent(config.agent, config, place, suite)
        case PythonAgent():
            from campaign.agents import python

            return python.agent(config.agent, config, place, suite)
        case _:
            return None
