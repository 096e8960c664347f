"""The commands that look back on a run: what it came to, and what other rules would have said."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from campaign.clibase import (
    FAILED,
    JSON,
    RUN,
    SET,
    USAGE,
    fail,
    named_errors,
    percentage,
    print_json,
)
from campaign.helppage import Page


@click.command(cls=Page)
@RUN
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write one page with plots that holds everything it shows.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print every figure as one row of CSV.")
@click.option("--rules", "by_rule", is_flag=True, help="Report on the rules, most failing first.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    callback=percentage,
    metavar="PERCENT",
    help="With --rules: exit with 1 when fewer than this share of an agent's candidates passed.",
)
@JSON
@named_errors
def report(
    run: Path,
    html: Path | None,
    as_csv: bool,
    by_rule: bool,
    fail_under: float | None,
    as_json: bool,
) -> None:
    """Report on a run: its result, and what the gate saved.

    What it found and how sure that is, what the gate stopped and which node-hours each check
    saved, what was spent, and what the tasks and the nodes did. Without an option as tables. From
    the ledger alone; the run may be going on.

    With --rules: which rule fails most, by agent and round. A candidate is one proposal for one
    slot, so that a slot asked for twice counts twice; what the surrogate drew to fill a slot is
    reported as of the agent "surrogate". Exits with 1 when an agent falls short of --fail-under,
    and when nothing was checked at all.
    """
    if fail_under is not None and not by_rule:
        raise click.UsageError("--fail-under is about the rules; give --rules as well")
    if by_rule and (html or as_csv):
        raise click.UsageError("--rules is printed as tables or with --json; leave out the other")
    if as_csv and as_json:
        raise click.UsageError("--csv and --json: give one of them")
    if by_rule:
        _report_rules(run, fail_under, as_json)
    else:
        _report_run(run.absolute(), html, as_csv, as_json)


def _report_rules(run: Path, fail_under: float | None, as_json: bool) -> None:
    from campaign.rulereport import as_data, rule_report
    from campaign.status import load

    state, config = load(run)
    found = rule_report(state, config)
    if as_json:
        head = {"name": config.name, "run_dir": str(run.absolute())}
        print_json(head | as_data(found, fail_under))
    else:
        from campaign.reporttables import rule_tables

        _print(f"{config.name}: the rules of {run}", rule_tables(found))
    if missed := found.missed(fail_under):
        fail("; ".join(missed), FAILED)


def _report_run(run: Path, html: Path | None, as_csv: bool, as_json: bool) -> None:
    import gc

    from campaign.ledger import uncollected
    from campaign.report.figures import as_data, figures

    with uncollected():
        found = figures(run)
        gc.freeze()  # kept to the end; of a long run, every look for garbage takes a second
    if html is not None:
        from campaign.report.page import page

        try:
            html.write_text(page(found), encoding="utf-8")
        except OSError as error:
            fail(f"{html}: cannot be written: {error.strerror}", USAGE)
        click.echo(f"wrote {html}", err=as_json or as_csv)
    if as_json:
        print_json(as_data(found))
    elif as_csv:
        import csv

        from campaign.report.text import rows

        with click.open_file("-", "w", encoding="utf-8") as out:  # as export writes it
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(("table", "row", "figure", "value"))
            writer.writerows(rows(found))
    elif html is None:
        from campaign.report.text import tables

        state, reason = found.how
        head = f"{found.config.name}: {state}" + (f" ({reason})" if reason else "")
        _print(head, tables(found))


@click.command(cls=Page)
@RUN
@click.option(
    "--with",
    "other",
    required=True,
    type=click.Path(path_type=Path),
    metavar="CONFIG",
    help="The campaign whose parameters, rules, repair, policy and guard are put to the run.",
)
@SET
@JSON
@named_errors
def replay(run: Path, other: Path, overrides: tuple[str, ...], as_json: bool) -> None:
    """Judge a run's candidates by other rules.

    Says what would have changed; nothing is run or asked. Every candidate of every generation is
    judged in the batch and after the history it had. The answers of the run's agent and verifiers
    are taken as they were: had an earlier candidate of a slot passed, the later ones would not have
    been proposed, and had one been rejected, another would have been. A rule that reads the agent's
    rationale, which is kept nowhere, is not judged again: the run's verdict of it holds if the rule
    is the same.

    Node-hours saved are what was spent on candidates that would have been stopped before; those
    that would be spent are an estimate from what such tasks took in this run. Each candidate
    counts once, by its content: the same is never paid for twice.
    """
    from campaign.configfile import load_config
    from campaign.replayreport import as_data, compare
    from campaign.status import load, run_state

    state, config = load(run)
    loaded = load_config(other, overrides)
    with redirect_stdout(sys.stderr):  # what a check of the user's own prints is no answer
        found = compare(state, config, loaded)
    how, _ = run_state(state, run)
    if as_json:
        head = {"name": config.name, "run_dir": str(run.absolute()), "config": str(loaded.path)}
        print_json(head | {"state": how} | as_data(found))
        return
    from campaign.reporttables import replay_tables

    _print(f"{config.name}, which is {how}, by the rules of {loaded.path}", replay_tables(found))


def _print(title: str, tables: object) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console()
    wide = console if console.is_terminal else Console(width=140)  # a file is as wide as it likes
    wide.print(Text(title, style="bold"), tables, sep="\n", crop=False)
