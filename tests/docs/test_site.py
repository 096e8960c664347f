"""The pages hang together: each is in the navigation, links lead somewhere, the site builds."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in DOCS.rglob("*.md"))


def prose(path: Path) -> str:
    """A page without its blocks of code."""
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def links(path: Path) -> list[tuple[str, str]]:
    """Where the links of a page lead: a path, and a heading of it."""
    return LINK.findall(re.sub(r"`[^`\n]+`", "", prose(path)))


def anchors(path: Path) -> set[str]:
    """What a forge calls the headings of a page, the second of two alike with ``-1``."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        again = next(
            n for n in range(len(found) + 1) if (f"{name}-{n}" if n else name) not in found
        )
        found.add(f"{name}-{again}" if again else name)
    return found


def leaves(entry: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from leaves(below)


@pytest.mark.parametrize("page", ["README.md", "configs/README.md", *PAGES])
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page: str) -> None:
    path, dead = ROOT / page, []
    for target, anchor in links(path):
        linked = (path.parent / target).resolve() if target else path
        there = linked.is_relative_to(ROOT) and linked.exists()
        if not there or (anchor and anchor not in anchors(linked)):
            dead.append(f"{target}#{anchor}")
    assert dead == []


def test_every_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert sorted(f"docs/{page}" for page in leaves(nav)) == PAGES


def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("needs mkdocs-material, of the extra docs")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    page = (tmp_path / "site" / "how-to" / "agents" / "index.html").read_text(encoding="utf-8")
    assert 'href="../../configs/quickstart/"' in page
    assert (tmp_path / "site" / "slurm" / "campaign.sbatch.j2").exists()
    html = "\n".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html"))
    fetched = (
        r'<(?:script|img|iframe)[^>]* src="(?:https?:)?//'
        r'|<link rel="(?:stylesheet|preconnect)"[^>]* href="(?:https?:)?//'
    )
    assert not re.findall(fetched, html)
