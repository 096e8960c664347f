"""The help of every command: complete, consistent, and readable on any terminal."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from campaign.cli import main
from campaign.helpsheets import INDEX, SHEETS
from folders import simgate

ROOT = Path(__file__).parents[3]
COMMANDS = sorted(main.commands)


def page(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    words = (command, "--help") if command else ("--help",)
    found = simgate(*words)
    assert found.exit_code == 0
    return found.output


def test_every_command_has_its_sheet_and_no_sheet_is_left_over() -> None:
    assert sorted(SHEETS) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_tells_arguments_options_exit_codes_and_an_example(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    said = page(command, 80, monkeypatch)
    arguments = [one for one in main.commands[command].params if isinstance(one, click.Argument)]
    assert ("Arguments:" in said) == bool(arguments)
    for title in ("Options:", "Exit codes:", "Examples:", "See also:"):
        assert f"\n{title}\n" in said
    usage = said.partition("\n\n")[0]
    for name, _ in SHEETS[command].arguments:
        assert name in usage


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_no_line_of_a_page_is_broken_by_the_terminal_but_an_example(
    monkeypatch: pytest.MonkeyPatch, command: str, columns: int
) -> None:
    sheet = SHEETS.get(command, INDEX)
    copied = {f"  {words}" for words, _ in sheet.examples}
    lines = page(command, columns, monkeypatch).splitlines()
    assert copied <= set(lines)
    assert max(len(line) for line in lines if line not in copied) <= min(columns, 100)


def test_the_list_of_commands_cuts_none_of_their_summaries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns in (40, 80):
        said = page("", columns, monkeypatch)
        assert "..." not in said.partition("Commands:")[2].partition("Exit codes:")[0]
    listed = said.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    assert len(listed) == len(COMMANDS), "each on a line of its own"


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_page_refers_to_is_there(command: str) -> None:
    for part in SHEETS[command].see.split("; "):
        if part.startswith("docs/"):
            assert (ROOT / part).is_file()
        else:
            names = re.sub(r"--[a-z-]+|simgate", "", part)
            assert set(re.findall(r"[a-z]+", names)) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "near"),
    [(("runn",), "'run'"), (("stats",), "'status'"), (("report", "--jason", "r"), "--json")],
)
def test_a_misspelt_command_or_option_is_answered_by_the_near_one(
    words: tuple[str, ...], near: str
) -> None:
    found = simgate(*words)
    assert found.exit_code == 2
    assert near in found.output
