"""The commands with which rules are written: what would run, and what it says of some records."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from campaign.clibase import CONFIG, FAILED, JSON, SET, fail, named_errors, percentage, print_json
from campaign.helppage import Page
from campaign.outlet import say

if TYPE_CHECKING:
    from campaign.rulebook import RuleBook
    from campaign.trying import Judged

FAIL_UNDER = click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    callback=percentage,
    metavar="PERCENT",
    help="Exit with 1 when fewer than this share pass.",
)
_SHOWN = 50  # failing records that are told one by one


@click.command(cls=Page)
@CONFIG
@JSON
@SET
@named_errors
def rules(config: Path, as_json: bool, overrides: tuple[str, ...]) -> None:
    """Show every check, rule and verifier that would run.

    In the order they run, with what each reads and where it comes from. CONFIG may also be a file
    of rules alone.
    """
    from campaign.rulebook import open_book, rows

    book = open_book(config, overrides)
    found = list(rows(book))
    if as_json:
        data = [dataclasses.asdict(row) for row in found]
        print_json({"config": str(book.path), "observed": book.observes, "rules": data})
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("layer", "id", "type", "severity", "reads", "from"):
        table.add_column(name, overflow="fold")
    for row in found:
        reads = f"{row.reads}, when {row.row_condition}" if row.row_condition else row.reads
        reads = f"the batch: {reads}" if row.scope == "batch" else reads
        cells = (row.layer, row.id, row.type, row.severity, reads, row.source)
        table.add_row(*map(_text, cells))
    console = Console()
    wide = console if console.is_terminal else Console(width=140)  # a file is as wide as it likes
    wide.print(table)
    if book.observes:
        say("repair: none: what the rules say is recorded and blocks nothing.")


@click.command(cls=Page)
@CONFIG
@click.option(
    "--records",
    "source",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    help="A file of candidates, or - for standard input: JSON, JSON lines or CSV.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "jsonl", "csv"]),
    help="What the file is; by default its suffix or its first character tells.",
)
@click.option("--all", "show_all", is_flag=True, help="Tell of every record, also those that pass.")
@FAIL_UNDER
@JSON
@SET
@named_errors
def check(
    config: Path,
    source: Path,
    form: Any,
    show_all: bool,
    fail_under: float | None,
    as_json: bool,
    overrides: tuple[str, ...],
) -> None:
    """Judge candidates from a file by the rules of a campaign.

    Nothing is run or asked. A candidate is an object of parameters, with the agent's `rationale` if
    a rule reads it. The file is judged as one batch. CONFIG may also be a file of rules alone,
    which then judges records of any fields. The rules are put to a record even where the
    parameters' own bounds and types reject it, which a run would not do.
    """
    from campaign.records import read_records
    from campaign.rulebook import open_book
    from campaign.trying import judge_records, tally

    book = open_book(config, overrides)
    records = read_records(source, form=form, texts=book.texts)
    with redirect_stdout(sys.stderr):  # what a check of the user's own prints is no answer
        judged = judge_records(book, records)
    counts = tally(book, judged)
    if as_json:
        print_json({"records": [one.as_record() for one in judged], "summary": counts})
    else:
        _print_judged(book, judged, show_all=show_all)
        _print_tally(counts)
    share = 100 * counts["passed"] / counts["records"]
    if fail_under is not None and share < fail_under:
        fail(f"{share:.4g}% of the records pass; at least {fail_under:g}% must", FAILED)


def _text(text: str) -> Any:
    from rich.text import Text

    from campaign.lines import plain

    return Text(plain(text))


def _print_judged(book: RuleBook, judged: Sequence[Judged], *, show_all: bool) -> None:
    from campaign.lines import plain

    told = [one for one in judged if show_all or not one.passes or _remarks(one)]
    for one in told if show_all else told[:_SHOWN]:
        if one.passes:
            say(f"record {one.number} passes")
        for finding in one.by_space:
            if not finding.passed:
                say(f"record {one.number} rejected by {finding.check}: {finding.reason}")
        for rule, word, detail in _remarks(one, observed=book.observes):
            say(f"record {one.number} {word} {rule}: {plain(detail)}")
    if not show_all and len(told) > _SHOWN:
        say(f"+{len(told) - _SHOWN} more records; --all or --json tells of all")


def _remarks(judged: Judged, *, observed: bool = False) -> list[tuple[str, str, str]]:
    """What the rules have to say: the rule, what it did, and why."""
    from checks.finding import Severity, Status

    found = []
    for one in judged.expect.findings:
        if one.passed:
            continue
        if one.status is Status.ERROR:
            word = "NOT CHECKED by"
        elif one.severity is not Severity.ERROR:
            word = f"{one.severity.value} by"
        else:
            word = "observed by" if observed else "rejected by"
        found.append((one.check, word, one.reason))
    return found


def _print_tally(counts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from campaign.trying import SAID

    table = Table(title="What was said", title_justify="left", title_style="bold")
    table.add_column("check or rule", overflow="fold")
    for name in SAID:
        table.add_column(name, justify="right")
    for row in counts["rules"]:
        style = "red" if row["failed"] or row["errors"] else None
        cells = [str(row[word]) for word in SAID]
        table.add_row(_text(row["id"]), *cells, style=style)
    Console().print(table)
    say(f"{counts['passed']} of {counts['records']} records pass")
