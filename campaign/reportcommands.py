"""The commands that look back on a run's rules: what they said, and what others would have."""

from __future__ import annotations

from pathlib import Path

import click

from campaign.clibase import FAILED, JSON, RUN, SET, fail, named_errors, percentage, print_json


@click.command()
@RUN
@click.option("--rules", "by_rule", is_flag=True, help="Report on the rules, most failing first.")
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    callback=percentage,
    metavar="PERCENT",
    help="Exit with 1 when fewer than this share of an agent's candidates passed all rules.",
)
@JSON
@named_errors
def report(run: Path, by_rule: bool, fail_under: float | None, as_json: bool) -> None:
    """Report on a run, from its ledger alone; it may be running.

    With --rules: which rule fails most, by agent and round. A candidate is one proposal for one
    slot, so that a slot asked for twice counts twice; what the surrogate drew to fill a slot is
    reported as of the agent "surrogate". Exits with 1 when an agent falls short of --fail-under,
    and when nothing was checked at all.
    """
    if not by_rule:
        raise click.UsageError("--rules is missing; the rules are what there is to report")
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


@click.command()
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
    """Judge again every candidate a run saw, under other rules, and say what would have changed.

    Nothing is run or asked. Every candidate of every generation is judged in the batch and after
    the history it had. The answers of the run's agent and verifiers are taken as they were: had an
    earlier candidate of a slot passed, the later ones would not have been proposed, and had one
    been rejected, another would have been. A rule that reads the agent's rationale, which is kept
    nowhere, is not judged again: the run's verdict of it holds if the rule is the same.

    Node-hours saved are what was spent on candidates that would have been stopped before; those
    that would be spent are an estimate from what such tasks took in this run. Each candidate
    counts once, by its content: the same is never paid for twice.
    """
    from campaign.configfile import load_config
    from campaign.replayreport import as_data, compare
    from campaign.status import load, run_state

    state, config = load(run)
    loaded = load_config(other, overrides)
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
