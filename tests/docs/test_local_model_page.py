"""The page on local models says what loads, and what the campaign beside it does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaign.agentconfig import OpenAIAgent
from campaign.configfile import load_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "local-model.md").read_text(encoding="utf-8")
LOCAL_MODEL = ROOT / "configs" / "local-model"


def test_the_campaign_is_set_as_the_page_says() -> None:
    (override,) = re.findall(r"--set '(.*)'", PAGE)
    config = load_config(LOCAL_MODEL, [override]).config
    assert config.job is not None
    assert config.job.walltime == 30 * 60
    agent = config.agent
    assert isinstance(agent, OpenAIAgent)
    assert (agent.history, agent.suggest, agent.max_tokens) == ("none", False, 400)
    assert agent.body == {"cache_prompt": False}
    assert all(getattr(one, "step", None) for one in config.parameters.values())


@pytest.mark.parametrize("name", ["in.lj", "lj.py"])
def test_what_the_campaign_simulates_is_that_of_lennard_jones(name: str) -> None:
    theirs = LOCAL_MODEL.parent / "lennard-jones"
    assert (LOCAL_MODEL / name).read_bytes() == (theirs / name).read_bytes()
    assert load_config(LOCAL_MODEL).config.objective == load_config(theirs).config.objective
