"""The fenced blocks of the pages, and the marks that hand them to tests.

A block is covered by the test that has it as a parameter: :func:`each` and :func:`whole` make it
one, and :func:`handed` tells which blocks the tests of a module have.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PIECE = re.compile(
    r"^#{1,6} (?P<head>[^\n]*)$|^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_FILE = re.compile(r"# ([\w./-]+\.\w+)\b[^\n]*\n")


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two fences; ``line`` is that of the first, from 1."""

    page: str  # its path in the repository
    line: int
    head: str  # the heading it stands under
    language: str  # none where commands are shown
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def file(self) -> str:
        """The file that the block is, of which its first line is the name; else nothing."""
        named = _FILE.match(self.text)
        return named[1] if named else ""


def blocks(
    page: str, *languages: str, under: str | None = None, before: str | None = None
) -> tuple[Block, ...]:
    """The blocks of a page in order: of some languages, of one section, or up to a heading."""
    found = []
    for block in _read(page):
        if block.head == before:
            break
        if (not languages or block.language in languages) and under in (None, block.head):
            found.append(block)
    assert found, f"{page}: no block of {languages or 'any language'} under {under!r}"
    return tuple(found)


def every(page: str) -> tuple[Block, ...]:
    """All blocks of a page, perhaps none."""
    return tuple(_read(page))


def _read(page: str) -> Iterator[Block]:
    text, head = (ROOT / page).read_text(encoding="utf-8"), ""
    for found in _PIECE.finditer(text):
        if found["fence"] is None:
            head = found["head"]
        else:
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, head, found["language"], found["text"])


def each(*chosen: Iterable[Block]) -> pytest.MarkDecorator:
    """The test is run with each of the blocks as ``block``."""
    found = [block for some in chosen for block in some]
    return pytest.mark.parametrize("block", found, ids=str)


def whole(chosen: tuple[Block, ...]) -> pytest.MarkDecorator:
    """The test is run once, with all of the blocks as ``blocks``."""
    return pytest.mark.parametrize("blocks", [chosen], ids=[chosen[0].page])


def handed(module: Path) -> set[Block]:
    """The blocks that the tests of a module are run with."""
    name = f"read_{'_'.join(module.relative_to(ROOT).with_suffix('').parts)}"
    spec = importlib.util.spec_from_file_location(name, module)
    assert spec is not None
    assert spec.loader is not None
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return {
        block
        for test in vars(loaded).values()
        for mark in getattr(test, "pytestmark", ())
        if isinstance(mark, pytest.Mark) and mark.name == "parametrize"
        for block in _within(mark.args[1])
    }


def _within(value: object) -> Iterator[Block]:
    if isinstance(value, Block):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _within(one)


def lines(block: Block) -> list[str]:
    """The commands of a block, one a line, without what the shell ignores."""
    joined = block.text.replace("\\\n", " ").splitlines()
    return [line for line in joined if shlex.split(line, comments=True)]


def programs(folder: Path) -> str:
    """A PATH on which ``simgate``, ``python`` and ``python3`` are those of this interpreter."""
    folder.mkdir()
    _program(folder / "simgate", f"#!{sys.executable}\nfrom campaign.cli import main\nmain()\n")
    for name in ("python", "python3"):
        _program(folder / name, f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def write(folder: Path, block: Block) -> None:
    """The file that a block is; the line with its name is no part of a table."""
    assert block.file, f"{block}: its first line names no file"
    path = folder / block.file
    path.parent.mkdir(parents=True, exist_ok=True)
    _, _, rest = block.text.partition("\n")
    path.write_text(rest if block.language == "csv" else block.text, encoding="utf-8")


def follow(followed: Iterable[Block], folder: Path, path: str) -> str:
    """Write each file, run each command, look for each output; what was printed last."""
    said = ""
    for block in followed:
        if block.language == "text":
            missing = [line for line in block.text.splitlines() if line not in said]
            assert missing == [], f"{block}\n{said}"
        elif block.language:
            write(folder, block)
        else:
            said = ran(block.text, folder, path)
    return said


def ran(commands: str, folder: Path, path: str, timeout: float = 240) -> str:
    """What commands print that end well, wide enough that no line is broken."""
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"
    return done.stdout
