"""The commands that look into a run: everything about one candidate, and all of it as rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from campaign.clibase import JSON, RUN, USAGE, fail, named_errors, print_json
from campaign.helppage import Page
from campaign.outlet import say

if TYPE_CHECKING:
    from campaign.report.export import Format


@click.command(cls=Page)
@RUN
@click.argument("candidate", nargs=-1, required=True)
@JSON
@named_errors
def why(run: Path, candidate: tuple[str, ...], as_json: bool) -> None:
    """Tell everything about one candidate of a run.

    When it was proposed and in what ask, each finding, each try with where it ran and what it
    cost in node-hours, and its files. Of a place such as r3 s2 every candidate that was proposed
    or drawn for it is told, every ask that brought none, and how the slot ended. From the ledger
    alone; the run may be going on.
    """
    from campaign.report.why import UnknownCandidateError, why as look

    try:
        found = look(run.absolute(), " ".join(candidate))
    except UnknownCandidateError as error:
        fail(str(error), USAGE)
    if as_json:
        print_json(found)
        return
    from campaign.report.whytext import why_lines

    for line in why_lines(found):
        say(line)


@click.command(cls=Page)
@RUN
@click.option(
    "--format",
    "how",
    type=click.Choice(["csv", "jsonl", "parquet"]),
    default="csv",
    show_default=True,
    help="What to write; parquet needs the extra: pip install 'simgate[parquet]'.",
)
@click.option(
    "--what",
    type=click.Choice(["observations", "candidates"]),
    default="observations",
    show_default=True,
    help="What was simulated, or everything that was ever proposed.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; by default standard output.",
)
@named_errors
def export(
    run: Path, how: Format, what: Literal["observations", "candidates"], out: Path | None
) -> None:
    """Write a run as a table of observations or candidates.

    One row for each, with where it comes from; docs/how-to/report.md has the columns. Times are
    seconds since the epoch, text is UTF-8. An observation whose simulation failed has an empty
    value and says why. From the ledger alone; the run may be going on.
    """
    from campaign.report.export import (
        MissingExtraError,
        candidates,
        observed,
        require_parquet,
        write,
    )

    if how == "parquet":
        try:
            require_parquet()
        except MissingExtraError as error:
            fail(str(error), USAGE)
        if out is None and sys.stdout.isatty():
            raise click.UsageError("parquet is no text for a terminal; give --out FILE")
    rows = observed(run.absolute()) if what == "observations" else candidates(run.absolute())
    try:
        if how == "parquet":
            with click.open_file(str(out or "-"), "wb") as binary:
                write(rows, how, binary)
        else:
            with click.open_file(str(out or "-"), "w", encoding="utf-8") as text:
                write(rows, how, text)
    except BrokenPipeError:
        raise
    except OSError as error:
        fail(f"{out or 'standard output'}: cannot be written: {error.strerror}", USAGE)
