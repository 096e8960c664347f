"""The command line: the only place that prints, and that turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 bad configuration or usage, 75 stopped and resumable.
Everything heavy is imported by the command that needs it, so that help is there at once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from campaign.configfile import LoadedConfig
    from campaign.events import RunCreated
    from campaign.preflight import Inspection

FAILED, USAGE, STOPPED = 1, 2, 75

P = ParamSpec("P")
T = TypeVar("T")

CONFIG = click.argument("config", type=click.Path(path_type=Path))
RUN = click.argument("run", type=click.Path(path_type=Path, file_okay=False))
SET = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override one key of the config, for instance --set budgets.node_hours=2. Repeatable.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def _named_errors(command: Callable[P, T]) -> Callable[P, T]:
    """What a user can put right is printed as text; nobody gets a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click's own, which it prints itself
        except Exception as error:
            _explain(error)

    return wrapped


def _explain(error: Exception, run_dir: Path | None = None) -> NoReturn:
    """Name an error on standard error and exit; of one that nobody expected, keep the details."""
    from campaign.crash import cause, keep
    from campaign.ledger import LedgerError, NoLedgerError
    from campaign.lock import LockHeldError
    from campaign.problems import ConfigError

    first = cause(error)
    if isinstance(first, ConfigError | LockHeldError | NoLedgerError):
        _fail(str(first), USAGE)
    if isinstance(first, LedgerError):
        _fail(str(first), FAILED)
    where = keep(error, run_dir)
    said = " ".join(f"{type(first).__name__}: {first}".split())
    _fail(f"internal error: {said}" + (f"; details in {where}" if where else ""), FAILED)


def _fail(message: str, code: int) -> NoReturn:
    click.echo(f"simgate: {message}", err=True)
    sys.exit(code)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="simgate")
def main() -> None:
    """Run batches of simulations that an agent proposes and a gate lets pass.

    CONFIG is a campaign's YAML file, or a folder with a campaign.yaml. RUN is the directory of a
    run. Exit codes: 0 done, 1 failed, 2 bad configuration or usage, 75 stopped (resume it).
    """


@main.command()
@CONFIG
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where the run is kept; by default runs/NAME-TIME.",
)
@click.option("--surrogate-only", is_flag=True, help="Contact no agent: the surrogate proposes.")
@SET
@_named_errors
def run(
    config: Path, run_dir: Path | None, surrogate_only: bool, overrides: tuple[str, ...]
) -> None:
    """Run a campaign here and now, to its end.

    On a terminal a live view shows how it goes; elsewhere every decision is one line. A run that
    was stopped or killed is gone on with by: simgate resume RUN.
    """
    from campaign.foresight import head_start

    if surrogate_only:
        overrides = (*overrides, "agent=surrogate")
    with head_start(config) as begun:
        from campaign.configfile import load_config
        from campaign.drive import creation
        from campaign.expectations import kept
        from campaign.preflight import require

        loaded = load_config(config, overrides)
        require(loaded, begun)
    directory = (run_dir or _default_run_dir(loaded.config.name)).absolute()
    rules = kept(loaded.expect)
    _drive(directory, creation(loaded.config, loaded.folder, rules, surrogate_only=surrogate_only))


@main.command()
@RUN
@_named_errors
def resume(run: Path) -> None:
    """Go on with a run that was stopped, killed or failed.

    Nothing accepted is asked for again, and no finished task is run again.
    """
    _drive(run.absolute(), None)


@main.command()
@RUN
@JSON
@_named_errors
def status(run: Path, as_json: bool) -> None:
    """Tell how a run stands, from its ledger alone; it may be running."""
    from campaign.status import load, run_state
    from campaign.status import status as read_status

    if as_json:
        _print_json(read_status(run.absolute()))
        return
    from rich.console import Console

    from campaign.summary import summary

    state, config = load(run)
    Console().print(summary(config, state, run.absolute(), run_state(state, run)), crop=False)


@main.command()
@CONFIG
@JSON
@SET
@_named_errors
def inspect(config: Path, as_json: bool, overrides: tuple[str, ...]) -> None:
    """Check everything that can be checked before money is spent, and show the worst-case cost.

    Files, modules, functions, executables and caps are looked at; no task is run.
    """
    from campaign.foresight import head_start

    with head_start(config) as begun:
        from campaign.configfile import load_config
        from campaign.preflight import inspect as look

        loaded = load_config(config, overrides)
        found = look(loaded, begun)
    if as_json:
        _print_json(_inspection_json(loaded, found))
    elif not found.problems:
        _print_inspection(loaded, found)
    if found.problems:
        from campaign.problems import ConfigError

        raise ConfigError(found.problems, str(loaded.path))


@main.command()
@_named_errors
def schema() -> None:
    """Print the JSON Schema of a campaign's YAML file, for editors."""
    from campaign.reference import json_schema

    _print_json(json_schema())


@main.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@_named_errors
def init(directory: Path) -> None:
    """Write a small commented campaign into DIRECTORY, that runs as it stands."""
    from campaign.scaffold import ScaffoldError
    from campaign.scaffold import init as scaffold

    try:
        written = scaffold(directory)
    except ScaffoldError as error:
        _fail(str(error), USAGE)
    for path in written:
        click.echo(f"wrote {path}")
    click.echo(f"run it with: simgate run {directory}")


def _default_run_dir(name: str) -> Path:
    import time

    first = path = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(2):
        if not path.exists():
            break
        path = first.with_name(f"{first.name}-{number}")
    return path


def _drive(directory: Path, created: RunCreated | None) -> NoReturn:
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
        _fail(str(error), USAGE)
    except Exception as error:
        _explain(error, directory)
    # Whether somebody reads it or has closed the pipe: the exit code is the campaign's.
    with contextlib.suppress(OSError, SystemExit):
        how = (ending.outcome.value, ending.reason)
        console.print(summary(config, state, directory, how), crop=False)
    if ending.outcome is JobOutcome.STOPPED:
        click.echo(f"Go on with: simgate resume {directory}")
    codes = {JobOutcome.DONE: 0, JobOutcome.FAILED: FAILED, JobOutcome.STOPPED: STOPPED}
    sys.exit(codes[ending.outcome])


def _print_json(data: object) -> None:
    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def _inspection_json(loaded: LoadedConfig, found: Inspection) -> dict[str, Any]:
    return {
        "name": loaded.config.name,
        "config": str(loaded.path),
        "problems": [
            {"path": one.path, "line": one.line, "message": one.message} for one in found.problems
        ],
        "notes": list(found.notes),
        "cost": {
            cost.what: {"least": cost.least, "most": cost.most, "cap": cost.cap}
            for cost in found.costs
        },
    }


def _print_inspection(loaded: LoadedConfig, found: Inspection) -> None:
    click.echo(f"{loaded.config.name}: {loaded.path} can run")
    click.echo(f"  {'':22}{'at least':>12}{'at most':>12}{'cap':>12}")
    for cost in found.costs:
        cap = "none" if cost.cap is None else f"{cost.cap:.4g}"
        click.echo(f"  {cost.what:22}{cost.least:>12.4g}{cost.most:>12.4g}{cap:>12}")
    for note in found.notes:
        click.echo(f"  note: {note}")
