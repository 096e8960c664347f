"""Generates ``commands.md``, ``ledger.md``, ``python.md``, ``telemetry.md`` in ``docs/reference``.

python -m campaign.manual
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

import campaign.status
from campaign import events, replayreport, rulereport
from campaign.cli import main as commands
from campaign.pythonmanual import render_python
from campaign.report import figures, why
from campaign.telemetrymanual import render_telemetry

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
JSON_KEYS = (
    ("status", campaign.status),
    ("report", figures),
    ("report --rules", rulereport),
    ("replay", replayreport),
    ("why", why),
)
MADE = "<!-- Made by python -m campaign.manual; do not edit. -->"


def render_commands() -> str:
    """Every command with its help, and the keys of ``status --json``."""
    lines = [MADE, "", "# Commands", "", "```text", _help(commands, "simgate"), "```"]
    for name, command in commands.commands.items():
        lines += [
            "",
            f"## `simgate {name}`",
            "",
            "```text",
            _help(command, f"simgate {name}"),
            "```",
        ]
    for words, module in JSON_KEYS:
        keys = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2]
        lines += ["", f"## Keys of `simgate {words} --json`", "", "```text", keys, "```"]
    lines.append("")
    return "\n".join(lines)


def render_ledger() -> str:
    """The format of the ledger: a line, and every kind of event with its fields."""
    lines = [MADE, "", "# The ledger", "", inspect.cleandoc(events.__doc__ or "")]
    lines += ["", "Fields that have their default are left out of a line.", ""]
    for kind in typing.get_args(events.Event):
        lines += [*_event(kind), ""]
    for part in (events.VerdictRecord, events.FindingRecord):
        lines += [f"## Part: {part.__name__}", "", *_described(part), ""]
    return "\n".join(lines)


def _help(command: click.Command, name: str) -> str:
    make = command.context_class
    with make(command, info_name=name, max_content_width=96, terminal_width=96) as context:
        return command.get_help(context)


def _event(kind: type[msgspec.Struct]) -> Iterator[str]:
    yield f"## `{kind.__struct_config__.tag}`"
    yield ""
    yield from _described(kind)


def _described(kind: type[msgspec.Struct]) -> Iterator[str]:
    if kind.__doc__:
        yield inspect.cleandoc(kind.__doc__)
        yield ""
    fields = msgspec.structs.fields(kind)
    yield "| field | type | default |"
    yield "|---|---|---|"
    for field in fields:
        yield f"| `{field.name}` | {_type(field.type)} | {_default(field)} |"


def _type(kind: object) -> str:
    if isinstance(kind, types.UnionType):
        return " or ".join(map(_type, typing.get_args(kind)))
    if typing.get_origin(kind) is list:
        return f"list of {_type(typing.get_args(kind)[0])}"
    if typing.get_origin(kind) is dict:
        return "mapping"
    names: dict[object, str] = {str: "text", float: "number", int: "whole number", bool: "boolean"}
    return names.get(kind, "null" if kind is types.NoneType else getattr(kind, "__name__", "any"))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return "empty"
    return "" if field.default is msgspec.NODEFAULT else f"`{field.default!r}`"


def main() -> None:
    """Write the pages into the checkout this module lies in."""
    (FOLDER / "commands.md").write_text(render_commands(), encoding="utf-8")
    (FOLDER / "ledger.md").write_text(render_ledger(), encoding="utf-8")
    (FOLDER / "python.md").write_text(render_python(MADE), encoding="utf-8")
    (FOLDER / "telemetry.md").write_text(render_telemetry(MADE), encoding="utf-8")


if __name__ == "__main__":
    main()
