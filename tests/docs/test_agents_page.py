"""The page on agents says what loads, what runs, and what an agent is really told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import folders
from campaign.agents import prompt
from campaign.configfile import load_config
from campaign.model import Ask
from checks import template

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "agents.md"
QUICKSTART = ROOT / "configs" / "quickstart"
PIECE = re.compile(r"^#+ (?P<head>.*)$|^```(?P<kind>\w+)\n(?P<text>(?s:.*?))^```$", re.MULTILINE)


def read() -> Iterator[tuple[str, str, str]]:
    """The blocks of the page: the heading above, the language, the text."""
    head = ""
    for found in PIECE.finditer(PAGE.read_text(encoding="utf-8")):
        head = found["head"] or head
        if found["kind"]:
            yield head, found["kind"], found["text"]


BLOCKS = list(read())
PARTS = [text for _, kind, text in BLOCKS if kind == "yaml"]
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
    (text,) = [text for under, language, text in BLOCKS if (under, language) == (head, kind)]
    return text


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


@pytest.mark.parametrize("text", PARTS)
def test_a_part_of_the_page_is_accepted_as_it_stands(tmp_path: Path, text: str) -> None:
    part: dict[str, Any] = yaml.safe_load(text)
    found = load_config(written(tmp_path, **part)).config.model_dump(exclude_unset=True)
    for key, said in part.items():
        assert set(said) <= set(found[key])


def test_the_page_has_every_kind() -> None:
    named = re.findall(r"^\| `(\w+)` \| a", PAGE.read_text(), re.MULTILINE)
    assert {"openai", "command", "python", "replay"} <= set(named)
    shown = {kind for text in PARTS for kind in re.findall(r"kind: (\w+)", text)}
    assert shown == {"openai", "command", "python"}


def test_the_program_of_the_page_proposes_in_a_campaign(tmp_path: Path) -> None:
    part = next(yaml.safe_load(text) for text in PARTS if "kind: command" in text)
    folder = written(tmp_path / "c", rounds=4, **part)
    program = (folder / "propose.py").read_text().splitlines()
    assert len([line for line in program if line and line[0] != "#"]) == 10
    run = tmp_path / "run"
    done = folders.process("run", folder, "--run-dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    found = events(run)
    assert not [one for one in found if one["kind"] == "call_failed" or one.get("stage")]
    ended = [one["disposition"] for one in found if one["kind"] == "slot_ended"]
    assert ended.count("accepted") >= len(ended) / 2


def test_the_prompts_of_the_page_are_without_faults() -> None:
    own, repair = (
        block("A prompt of your own", "text"),
        block("When the answer is rejected", "text"),
    )
    assert prompt.check_template(own) == []
    assert template.faults(repair) == []
    table = PAGE.read_text().split("| placeholder |")[1].split("\n\n")[0]
    assert tuple(re.findall(r"^\| `\{(\w+)\}`", table, re.MULTILINE)) == prompt.PLACEHOLDERS


def test_the_words_of_the_page_are_those_of_the_campaign() -> None:
    brief = prompt.brief(load_config(QUICKSTART, [plate()]).config, None)
    ask = Ask(1, 1, (0, 1, 2, 3), batch=4)
    assert prompt.messages(brief, ask)[1]["content"] == block("What the agent is told", "text")[:-1]


def test_the_correction_of_the_page_is_what_a_run_says(tmp_path: Path) -> None:
    folder = shutil.copytree(QUICKSTART, tmp_path / "plate")
    (folder / "told.py").write_text(TOLD)
    (folder / "first.json").write_text(block("What a correction says", "json"))
    agent = "agent={kind: python, function: 'told:answer', history: none, suggest: false}"
    words = ("--run-dir", tmp_path / "run", "--set", "rounds=1", "--set", agent, "--set", plate())
    done = folders.process("run", folder, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    said = (folder / "correction.txt").read_text()
    assert said == block("What a correction says", "text")[:-1]
