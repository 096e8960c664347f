"""The page on local models says what loads, and what the campaign beside it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import folders
from campaign.agentconfig import OpenAIAgent
from campaign.configfile import load_config

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "local-model.md").read_text(encoding="utf-8")
LOCAL_MODEL = ROOT / "configs" / "local-model"
PARTS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", PARTS)
def test_a_part_of_the_page_is_accepted_as_it_stands(tmp_path: Path, text: str) -> None:
    part: dict[str, Any] = yaml.safe_load(text)
    found = load_config(folders.folder(tmp_path, **part)).config.model_dump(exclude_unset=True)
    for key, said in part.items():
        assert set(said) <= set(found[key])


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


@pytest.mark.parametrize(
    "page",
    [
        "docs/how-to/agents.md",
        "docs/how-to/local-model.md",
        "docs/explanation/repair.md",
        "docs/explanation/gate.md",
        "configs/local-model/README.md",
        "configs/README.md",
        "README.md",
    ],
)
def test_what_a_page_links_to_is_there(page: str) -> None:
    path = ROOT / page
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", path.read_text()):
        linked = path if not target else (path.parent / target).resolve()
        assert linked.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            named = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in named, (target, anchor)
