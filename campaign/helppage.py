"""Help as pages of a manual: what a command does, and beneath it what it takes, ends with, heeds.

Click tells the usage, the text and the options; the rest of a page is a :class:`Sheet` of
:mod:`campaign.helpsheets`. A page fits terminals from 30 columns on.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import click

WIDEST, _LEAST = 100, 30  # columns of a page
Rows: TypeAlias = Sequence[tuple[str, str]]


class Sheet(NamedTuple):
    """What is beneath a command's options; ``see`` names other commands and pages."""

    arguments: Rows = ()
    exits: Rows = ()
    environment: Rows = ()
    examples: Rows = ()
    see: str = ""


class Formatter(click.HelpFormatter):
    """As wide as the terminal, however narrow: Click's own is never narrower than 50 columns."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        if width is None:
            columns = min(shutil.get_terminal_size().columns, max_width or WIDEST)
            width = max(columns - 1, _LEAST)
        super().__init__(indent_increment, width, max_width)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Terms and what they mean side by side, where that leaves the meaning room."""
        super().write_dl(list(rows), min(col_max, self.width // 3), col_spacing)


class PageContext(click.Context):
    formatter_class = Formatter


class Page(click.Command):
    """A command whose help is a page."""

    context_class = PageContext

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _section(formatter, "Arguments", sheet(self).arguments)
        super().format_options(ctx, formatter)

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        write(sheet(self), formatter)


class Index(click.Group):
    """The commands, and what is the same for all of them."""

    context_class = PageContext
    command_class = Page

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, one.get_short_help_str(WIDEST)) for name, one in self.commands.items()]
        _section(formatter, "Commands", sorted(rows))

    def format_epilog(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        write(sheet(self), formatter)


def sheet(command: click.Command) -> Sheet:
    """The sheet of a command, by its name."""
    from campaign.helpsheets import INDEX, SHEETS

    return INDEX if isinstance(command, Index) else SHEETS[str(command.name)]


def write(found: Sheet, formatter: click.HelpFormatter) -> None:
    """What comes after the options."""
    _section(formatter, "Exit codes", found.exits)
    _section(formatter, "Environment", found.environment)
    if found.examples:
        with formatter.section("Examples"):
            for command, what in found.examples:
                formatter.write_text(f"\b\n{command}")  # never broken: it is there to be copied
                with formatter.indentation():
                    formatter.write_text(what)
    if found.see:
        with formatter.section("See also"):
            for line in found.see.split("; "):
                formatter.write_text(line if " " in line else f"\b\n{line}")


def _section(formatter: click.HelpFormatter, title: str, rows: Rows) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)
