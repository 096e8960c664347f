"""The programs of docs/how-to/use-the-parts.md, copied and run, print what the page says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pages
from folders import simgate
from pages import Block

PAGE = "docs/how-to/use-the-parts.md"


def runs_as_told(folder: Path, *shown: Block) -> None:
    """Write the programs, run the last, and compare what it prints with the block behind it."""
    *programs, said = shown
    for program in programs:
        pages.write(folder, program)
    done = subprocess.run(
        [sys.executable, programs[-1].file],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, said.text), done.stderr


@pages.whole(pages.blocks(PAGE, under="`accept` alone"))
def test_accept_works_alone(tmp_path: Path, blocks: tuple[Block, ...]) -> None:
    runs_as_told(tmp_path, *blocks)


@pages.whole(pages.blocks(PAGE, under="The rules alone"))
def test_the_rules_work_alone(tmp_path: Path, blocks: tuple[Block, ...]) -> None:
    runs_as_told(tmp_path, *blocks)


@pages.whole(pages.blocks(PAGE, under="The executors alone"))
def test_the_executors_work_alone(tmp_path: Path, blocks: tuple[Block, ...]) -> None:
    runs_as_told(tmp_path, *blocks)


@pages.whole(pages.blocks(PAGE, under="A run from Python, and its ledger as rows"))
def test_a_run_is_driven_and_read_from_python(tmp_path: Path, blocks: tuple[Block, ...]) -> None:
    assert simgate("init", str(tmp_path / "throw")).exit_code == 0
    run, printed, tell, told = blocks
    runs_as_told(tmp_path, run, printed)
    runs_as_told(tmp_path, tell, told)
