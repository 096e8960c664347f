"""The command line: what starts, goes on with and looks at a run.

Exit codes: 0 done, 1 failed, 2 bad configuration or usage, 75 stopped and resumable.
Everything heavy is imported by the command that needs it, so that help is there at once.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from campaign.clibase import (
    CONFIG,
    FAILED,
    JSON,
    RUN,
    SET,
    STOPPED,
    USAGE,
    default_run_dir,
    explain,
    fail,
    named_errors,
    print_costs,
    print_json,
)
from campaign.helppage import Index
from campaign.jobcommands import cancel, submit
from campaign.lookcommands import export, why
from campaign.outlet import open_outlets, say
from campaign.reportcommands import replay, report
from campaign.rulecommands import check, rules
from campaign.startcommands import init, schema
from campaign.watchcommand import watch

if TYPE_CHECKING:
    from campaign.configfile import LoadedConfig
    from campaign.events import RunCreated
    from campaign.preflight import Inspection


@click.group(
    cls=Index, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="simgate")
def main() -> None:
    """Run batches of simulations that an agent proposes and a gate lets pass.

    A campaign is one YAML file and what it names; a run of it is one directory, whose ledger all
    commands but run, resume, submit and cancel only read. CONFIG is a campaign's YAML file, or a
    folder with a campaign.yaml. RUN is the directory of a run.
    """
    open_outlets()


@main.command()
@CONFIG
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the run is kept; by default runs/NAME-TIME.",
)
@click.option("--surrogate-only", is_flag=True, help="Contact no agent: the surrogate proposes.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Rehearse one round on this machine: submit nothing, simulate nothing unless "
    "simulation.dry_run says how, and tell what a real run would cost.",
)
@SET
@named_errors
def run(
    config: Path,
    run_dir: Path | None,
    surrogate_only: bool,
    dry_run: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run a campaign here and now, to its end.

    On a terminal a live view shows how it goes; elsewhere every decision is one line. Before
    anything is spent, all is checked that inspect checks. Ctrl-C, SIGTERM or SIGUSR1 stops it
    with what is done kept, a second one at once; simgate resume RUN goes on.
    """
    from campaign.foresight import head_start

    if dry_run:
        _dry_run(config, run_dir, overrides, surrogate_only=surrogate_only)
    with head_start(config) as begun:
        from campaign.configfile import load_config
        from campaign.drive import creation
        from campaign.expectations import kept
        from campaign.preflight import require

        loaded = load_config(config, overrides)
        if surrogate_only:
            loaded = loaded.without_agent()
        require(loaded, begun)
    directory = (run_dir or default_run_dir(loaded.config.name)).absolute()
    rules = kept(loaded.expect)
    _drive(directory, creation(loaded.config, loaded.folder, rules, surrogate_only=surrogate_only))


@main.command()
@RUN
@named_errors
def resume(run: Path) -> None:
    """Go on with a run that was stopped, killed or failed.

    Nothing accepted is asked for again, and no finished task is run again. The config is the one
    the run began with. A run that is done says so and ends with 0.
    """
    _drive(run.absolute(), None)


@main.command()
@RUN
@JSON
@named_errors
def status(run: Path, as_json: bool) -> None:
    """Tell how a run stands, and what of it Slurm still holds.

    The result so far, what the gate rejected, how the slots ended and what was spent of which
    budget, in node-hours, generations, tokens and calls. From the ledger alone, on any machine
    that sees the files; the run may be going on.
    """
    from campaign.status import load, run_state, status as read_status

    if as_json:
        print_json(read_status(run.absolute()))
        return
    from rich.console import Console

    from campaign.jobcommands import waiting_table
    from campaign.summary import summary
    from campaign.waiting import look, standing

    run = run.absolute()
    state, config = load(run)
    queue = look(run, state, config)
    how = standing(run_state(state, run), state, queue)
    console = Console()
    console.print(summary(config, state, run, how), *waiting_table(queue), crop=False)


@main.command()
@CONFIG
@JSON
@SET
@named_errors
def inspect(config: Path, as_json: bool, overrides: tuple[str, ...]) -> None:
    """Check a campaign, and show what it costs at least and at most.

    Everything is checked that can be before money is spent: files, modules, functions,
    executables, caps and, with job, whether each task fits into the job that submit asks Slurm
    for. All problems are named at once. No task is run, no agent asked.
    """
    from campaign.foresight import head_start

    with head_start(config) as begun:
        from dataclasses import replace

        from campaign.configfile import load_config
        from campaign.jobfit import job_problems
        from campaign.preflight import inspect as look

        loaded = load_config(config, overrides)
        found = look(loaded, begun)
    found = replace(found, problems=(*found.problems, *job_problems(loaded)))
    if as_json:
        print_json(_inspection_json(loaded, found))
    elif not found.problems:
        _print_inspection(loaded, found)
    if found.problems:
        from campaign.problems import ConfigError

        raise ConfigError(found.problems, str(loaded.path))


def _dry_run(
    config: Path, run_dir: Path | None, overrides: tuple[str, ...], *, surrogate_only: bool
) -> NoReturn:
    from campaign.foresight import head_start

    with head_start(config) as begun:
        from campaign.configfile import load_config
        from campaign.drive import creation
        from campaign.drycommand import announce, conclude, rehearse
        from campaign.expectations import kept

        loaded = load_config(config, overrides)
        if surrogate_only:
            loaded = loaded.without_agent()
        rehearsal = rehearse(loaded, begun)
    name = loaded.config.name
    directory = (run_dir or default_run_dir(f"{name}-dry")).absolute()
    announce(loaded, rehearsal)
    created = creation(rehearsal.run.config, loaded.folder, kept(loaded.expect), dry_run=True)
    real = default_run_dir(name).absolute()
    _drive(directory, created, lambda: conclude(loaded, rehearsal, real))


def _drive(
    directory: Path, created: RunCreated | None, epilogue: Callable[[], None] = lambda: None
) -> NoReturn:
    import asyncio

    from rich.console import Console

    from campaign.configfile import config_from_mapping
    from campaign.drive import RunDirError, drive
    from campaign.model import JobOutcome
    from campaign.status import config_at
    from campaign.summary import summary
    from campaign.view import view

    config = config_from_mapping(created.config) if created else config_at(directory)
    console = Console()
    try:
        with view(console, config) as show:
            ending, state = asyncio.run(drive(directory, created, [show]))
    except RunDirError as error:
        fail(str(error), USAGE)
    except Exception as error:
        explain(error, directory)
    # Whether somebody reads it or has closed the pipe: the exit code is the campaign's.
    with contextlib.suppress(OSError, SystemExit):
        how = (ending.outcome.value, ending.reason)
        console.print(summary(config, state, directory, how), crop=False)
        epilogue()
    if ending.outcome is JobOutcome.STOPPED and (ahead := state.slurm.ahead):
        say(f"Slurm job {ahead[-1]} goes on with it.")
    elif ending.outcome is JobOutcome.STOPPED:
        say(f"Go on with: simgate resume {directory}")
    codes = {JobOutcome.DONE: 0, JobOutcome.FAILED: FAILED, JobOutcome.STOPPED: STOPPED}
    sys.exit(codes[ending.outcome])


def _inspection_json(loaded: LoadedConfig, found: Inspection) -> dict[str, Any]:
    return {
        "name": loaded.config.name,
        "config": str(loaded.path),
        "problems": [
            {"path": one.path, "line": one.line, "message": one.message} for one in found.problems
        ],
        "agent": {"kind": loaded.config.agent.kind, **asdict(found.agent)},
        "notes": list(found.notes),
        "cost": {
            cost.what: {"least": cost.least, "most": cost.most, "cap": cost.cap}
            for cost in found.costs
        },
    }


_CAN = {"single_response_v1": "takes corrections", "structured_outputs": "structured outputs"}


def _print_inspection(loaded: LoadedConfig, found: Inspection) -> None:
    config = loaded.config
    can = [_CAN.get(name, name) for name, there in asdict(found.agent).items() if there]
    declared = f" ({', '.join(can)})" if can else ""
    say(f"{config.name}: {loaded.path} can run, with agent {config.agent.kind}{declared}")
    print_costs(found)


main.add_command(schema)
main.add_command(init)
main.add_command(watch)
main.add_command(rules)
main.add_command(check)
main.add_command(report)
main.add_command(replay)
main.add_command(why)
main.add_command(export)
main.add_command(submit)
main.add_command(cancel)
