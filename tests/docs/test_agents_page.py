"""The page on agents says what loads, what runs, and what an agent is really told."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import yaml

import folders
import pages
from campaign.agents import prompt
from campaign.configfile import load_config
from campaign.model import Ask
from checks import template
from pages import ROOT, Block

AGENTS = "docs/how-to/agents.md"
PAGE = ROOT / AGENTS
PARTS = pages.blocks(AGENTS, "yaml")
QUICKSTART = ROOT / "configs" / "quickstart"
TOLD = """
import json
from pathlib import Path

def answer(ask):
    if ask["generation"] == 1:
        return Path(__file__).with_name("first.json").read_text()
    Path(__file__).with_name("correction.txt").write_text(ask["correction"]["text"])
    return {"candidates": []}
"""


def block(head: str, kind: str) -> str:
    (found,) = pages.blocks(AGENTS, kind, under=head)
    return found.text


def written(folder: Path, **part: Any) -> Path:
    """A campaign with a part of the page and the files that the page names."""
    folders.folder(folder, **part)
    (folder / "prompt.txt").write_text(block("A prompt of your own", "text"))
    (folder / "repair.txt").write_text(block("When the answer is rejected", "text"))
    (folder / "propose.py").write_text(block("A program or a function", "python"))
    return folder


def plate() -> str:
    """The parameters of the page, as an override."""
    return f"parameters={json.dumps(yaml.safe_load(block('Whole numbers', 'yaml'))['parameters'])}"


def events(run: Path) -> list[dict[str, Any]]:
    lines = (run / "ledger.jsonl").read_text().splitlines()
    return [json.loads(line)["event"] for line in lines if line.strip()]


@pages.each(PARTS)
def test_a_part_of_the_page_is_accepted_as_it_stands(tmp_path: Path, block: Block) -> None:
    part: dict[str, Any] = yaml.safe_load(block.text)
    found = load_config(written(tmp_path, **part)).config.model_dump(exclude_unset=True)
    for key, said in part.items():
        assert set(said) <= set(found[key])


def test_the_page_has_every_kind() -> None:
    named = re.findall(r"^\| `(\w+)` \| a", PAGE.read_text(), re.MULTILINE)
    assert {"openai", "command", "python", "replay"} <= set(named)
    shown = {kind for part in PARTS for kind in re.findall(r"kind: (\w+)", part.text)}
    assert shown == {"openai", "command", "python"}


@pages.whole(pages.blocks(AGENTS, "python"))
def test_the_program_of_the_page_proposes_in_a_campaign(
    tmp_path: Path, blocks: tuple[Block, ...]
) -> None:
    (program,) = blocks
    assert program.file == "propose.py"
    part = next(yaml.safe_load(one.text) for one in PARTS if "kind: command" in one.text)
    folder = written(tmp_path / "c", rounds=4, **part)
    lines = (folder / "propose.py").read_text().splitlines()
    assert len([line for line in lines if line and line[0] != "#"]) == 10
    run = tmp_path / "run"
    done = folders.process("run", folder, "--run-dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    found = events(run)
    assert not [one for one in found if one["kind"] == "call_failed" or one.get("stage")]
    ended = [one["disposition"] for one in found if one["kind"] == "slot_ended"]
    assert ended.count("accepted") >= len(ended) / 2


@pages.whole(
    (
        *pages.blocks(AGENTS, "text", under="A prompt of your own"),
        *pages.blocks(AGENTS, "text", under="When the answer is rejected"),
    )
)
def test_the_prompts_of_the_page_are_without_faults(blocks: tuple[Block, ...]) -> None:
    own, repair = blocks
    assert prompt.check_template(own.text) == []
    assert template.faults(repair.text) == []
    table = PAGE.read_text().split("| placeholder |")[1].split("\n\n")[0]
    assert tuple(re.findall(r"^\| `\{(\w+)\}`", table, re.MULTILINE)) == prompt.PLACEHOLDERS


@pages.each(pages.blocks(AGENTS, "text", under="What the agent is told"))
def test_the_words_of_the_page_are_those_of_the_campaign(block: Block) -> None:
    brief = prompt.brief(load_config(QUICKSTART, [plate()]).config, None)
    ask = Ask(1, 1, (0, 1, 2, 3), batch=4)
    assert prompt.messages(brief, ask)[1]["content"] == block.text[:-1]


@pages.whole(pages.blocks(AGENTS, "json", "text", under="What a correction says"))
def test_the_correction_of_the_page_is_what_a_run_says(
    tmp_path: Path, blocks: tuple[Block, ...]
) -> None:
    answer, told = blocks
    folder = shutil.copytree(QUICKSTART, tmp_path / "plate")
    (folder / "told.py").write_text(TOLD)
    (folder / "first.json").write_text(answer.text)
    agent = "agent={kind: python, function: 'told:answer', history: none, suggest: false}"
    words = ("--run-dir", tmp_path / "run", "--set", "rounds=1", "--set", agent, "--set", plate())
    done = folders.process("run", folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "correction.txt").read_text() == told.text[:-1]
