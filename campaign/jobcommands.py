"""The commands that deal with Slurm: give it a campaign, and end one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from campaign.clibase import FAILED, RUN, SET, USAGE, default_run_dir, fail, named_errors
from campaign.helppage import Page
from campaign.outlet import say

if TYPE_CHECKING:
    from rich.console import RenderableType

    from campaign.submit import Submission
    from campaign.waiting import Queue

P = ParamSpec("P")
T = TypeVar("T")


def slurms_words(command: Callable[P, T]) -> Callable[P, T]:
    """What Slurm refuses ends with its own words and exit code 1; a run in the way, with 2."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        from campaign.cancel import CancelError
        from campaign.drive import RunDirError
        from executors.slurm import SlurmError

        try:
            return command(*args, **kwargs)
        except RunDirError as error:
            fail(str(error), USAGE)
        except (SlurmError, CancelError) as error:
            fail(str(error), FAILED)

    return wrapped


@click.command(cls=Page)
@click.argument("source", metavar="CONFIG|RUN", type=click.Path(path_type=Path))
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where a new run is kept; by default runs/NAME-TIME.",
)
@click.option("--print", "print_only", is_flag=True, help="Show the script and submit nothing.")
@click.option(
    "--chain",
    is_flag=True,
    help="Let each job submit its successor until the campaign is done; job.chain says how far.",
)
@SET
@named_errors
@slurms_words
def submit(
    source: Path, run_dir: Path | None, print_only: bool, chain: bool, overrides: tuple[str, ...]
) -> None:
    """Run a campaign in a Slurm job, or go on with a run in one.

    CONFIG starts a new run; RUN, the directory of one that was stopped, goes on with that. What
    the job asks Slurm for is said under job: in the config. Slurm is asked first whether it would
    take the job; what it refuses ends here with exit code 1, and nothing is queued.
    """
    from campaign.ledger import NAME

    if (source / NAME).exists():
        if overrides or run_dir is not None:
            fail(
                f"{source}: a run keeps its config and its place; leave --set and --run-dir", USAGE
            )
        _again(source.absolute(), print_only=print_only, chain=chain)
    else:
        _new(source, run_dir, overrides, print_only=print_only, chain=chain)


@click.command(cls=Page)
@RUN
@named_errors
@slurms_words
def cancel(run: Path) -> None:
    """End a run, all it started and all it has queued.

    Its driver on this machine, its Slurm jobs, its pilot jobs and what they run are ended, and
    nothing else is. What waits in Slurm's queue is taken back. simgate resume RUN goes on.
    """
    from campaign.cancel import cancel as end

    if not end(run.absolute(), say):
        say(f"nothing of {run} runs or waits")


def _new(
    config: Path, run_dir: Path | None, overrides: tuple[str, ...], *, print_only: bool, chain: bool
) -> None:
    from campaign.configfile import load_config
    from campaign.drive import creation
    from campaign.expectations import kept
    from campaign.preflight import require
    from campaign.submit import batch_script, require_job, submit as give

    loaded = load_config(config, overrides)
    require_job(loaded)
    directory = (run_dir or default_run_dir(loaded.config.name)).absolute()
    if print_only:
        say(batch_script(loaded.config, directory, loaded.folder), nl=False)
        return
    require(loaded)
    created = creation(loaded.config, loaded.folder, kept(loaded.expect))
    _told(give(directory, loaded.config, loaded.folder, created, chain=chain))


def _again(run_dir: Path, *, print_only: bool, chain: bool) -> None:
    from campaign.drive import refuse_dry_run
    from campaign.ledger import created
    from campaign.status import config_at
    from campaign.submit import batch_script, submit as give

    config = config_at(run_dir)
    run = created(run_dir)
    assert run is not None
    refuse_dry_run(run, run_dir)
    folder = Path(run.folder)
    if print_only:
        say(batch_script(config, run_dir, folder), nl=False)
        return
    _told(give(run_dir, config, folder, None, chain=chain))


def _told(submission: Submission) -> None:
    job, run_dir = submission.job, submission.run_dir
    if submission.found:
        say(f"Slurm job {job} was left by a submit that was cut short; it has this run.")
    else:
        say(f"Submitted as Slurm job {job}.")
    say(f"Its output goes to {submission.output}")
    say(f"Look at it with: simgate status {run_dir}")
    say(f"End it with: simgate cancel {run_dir}")


def waiting_table(queue: Queue) -> list[RenderableType]:
    """What waits at Slurm, for a person; nothing where nothing does."""
    from rich.table import Table
    from rich.text import Text

    if queue.unknown:
        return [Text(f"Slurm does not say what waits: {queue.unknown}")]
    if not queue.waiting:
        return []
    table = Table(title="Waiting in Slurm's queue", title_justify="left", title_style="bold")
    for title in ("job", "what", "why", "expected start"):
        table.add_column(title, overflow="fold")
    for job in queue.as_data() or ():
        table.add_row(*(Text(job[key]) for key in ("job", "what", "why", "start")))
    return [table]
