"""Every fenced block of the pages is handed to a test, and what configures is read as a run would.

Which tests run a page stands with them, in the marks of ``pages``; here they are gathered.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import folders
import pages
from campaign.configfile import load_config
from campaign.model import SIMULATION
from campaign.yamlfile import read_text
from checks.domain import DERIVED
from checks.finding import Layer
from pages import ROOT, Block

# The decisions show nothing to copy, and the reference is compared with what it is made from.
APART = {"adr", "reference"}
PAGES = [
    "README.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").rglob("README.md")),
    *sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "docs").rglob("*.md")
        if path.parent.name not in APART
    ),
]
TESTS = [
    *sorted((ROOT / "tests" / "docs").glob("test_*.py")),
    ROOT / "tests" / "slurm" / "test_minicluster.py",
    ROOT / "tests" / "unit" / "checks" / "test_rules_page.py",
]
# Pages whose every part of a configuration stands for itself, beside a small campaign.
PARTS = [
    *(f"docs/how-to/{name}.md" for name in ("another-scheduler", "budgets", "dry-run")),
    *(f"docs/how-to/{name}.md" for name in ("local-model", "run-on-slurm", "submit")),
    *(f"docs/how-to/{name}.md" for name in ("without-internet", "write-rules")),
]
CONTEXT = ("parameters", "executors")  # what a part leaves out, if one before it on its page has it
SUITE = {"fields", "expectations"}


@cache
def handed() -> frozenset[Block]:
    return frozenset().union(*(pages.handed(module) for module in TESTS))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_handed_to_a_test(page: str) -> None:
    found = pages.every(page)
    assert [str(block) for block in found if block not in handed()] == []


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_shown_as_code_but_by_a_fence_that_is_read(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = re.findall(r"^[ \t]*(?:`{3}|~{3})", text, re.MULTILINE)
    assert len(fences) == 2 * len(pages.every(page)), "a fence stands alone, indented or as ~~~"
    for block in pages.every(page):
        text = text.replace(block.text, "")
    assert re.findall(r"\n\n(?: {4}|\t)(?![*-] |\d+\. ).*", text) == [], "indented, so it is code"


@pages.each(*(pages.blocks(page, "yaml") for page in PARTS))
def test_a_part_of_a_configuration_is_accepted_as_it_stands(tmp_path: Path, block: Block) -> None:
    for other in pages.every(block.page):
        if other.file.startswith(("rules/", "checks/")):
            pages.write(tmp_path, other)
    part = as_part(block)
    beside = {key: value for key, value in context(block).items() if key not in part}
    found = load_config(folders.folder(tmp_path, **beside, **part)).config
    dumped = found.model_dump(exclude_unset=True)
    for key, said in part.items():
        assert (
            len(said) == len(dumped[key])
            if isinstance(said, list)
            else said.keys() <= dumped[key].keys()
        ), key


@pages.each(pages.blocks("README.md", "text"))
def test_the_picture_of_the_readme_has_the_stages_of_a_round_in_order(block: Block) -> None:
    """It is drawn by hand and the output of nothing."""
    first = block.text.splitlines()[0]
    agent, shape, checks, verifiers, *rest = first.split(" ──► ")
    assert (agent, shape) == ("agent", Layer.SHAPE)
    assert {name.replace("types", "type") for name in checks.split(", ")} <= {*DERIVED}
    assert (verifiers, *rest) == (f"{Layer.VERIFIER}s", SIMULATION, "ledger", "surrogate")


def as_part(block: Block) -> dict[str, Any]:
    """The part as it would stand in a campaign: rules below ``expect``, or in a file."""
    data: Any = plain(block)
    if isinstance(data, list):
        return {"expect": {"repair": "none", "expectations": data}}
    if set(data) <= SUITE:
        return {"expect": {"repair": "none", "suite": Path(block.file).stem}}
    part: dict[str, Any] = data
    if (task := part.get("simulation")) is not None and "kind" not in task:
        part["simulation"] = folders.plain()["simulation"] | task
    return part


def context(block: Block) -> dict[str, Any]:
    """What the parts before it on the page say of what a part may leave out."""
    found: dict[str, Any] = {}
    for other in pages.blocks(block.page, "yaml"):
        if other == block:
            break
        if isinstance(said := plain(other), dict):
            found |= {key: said[key] for key in CONTEXT if key in said}
    return found


def plain(block: Block) -> Any:
    document = read_text(block.text)
    assert not document.problems, f"{block}: {document.problems}"
    return document.data
