"""The command that shows a run on another machine, or in another process, while it runs."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import click

from campaign.clibase import FAILED, RUN, STOPPED, named_errors
from campaign.helppage import Page

INTERRUPTED = 130


@click.command(cls=Page)
@RUN
@click.option("--once", is_flag=True, help="Show the run as it is now, and do not wait for more.")
@named_errors
def watch(run: Path, once: bool) -> None:
    """Show a run while it goes on, from its files alone.

    On a terminal that is the live view of simgate run; elsewhere one line for each decision, from
    the beginning of the run. The driver may be on another machine; nothing is written. A run
    that is not there yet is waited for. It ends with the run, and with its exit code.
    """
    # A terminal gets its cursor back when this is told to end, too.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        _glance(run.absolute()) if once else _watch(run.absolute())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _glance(run: Path) -> NoReturn:
    from rich.console import Console

    from campaign.watching import glance

    how, over = glance(run, Console())
    sys.exit(_code(how[0]) if over else 0)


def _watch(run: Path) -> NoReturn:
    from rich.console import Console

    from campaign.ledger import NAME
    from campaign.status import config_of
    from campaign.summary import summary
    from campaign.watching import POLL, watch

    told = False

    def missing() -> None:
        nonlocal told
        if not told:
            click.echo(f"simgate: {run}: holds no run yet; waiting for its {NAME}", err=True)
        told = True
        time.sleep(POLL)

    console = Console()
    state, how = watch(run, console, missing, lambda: time.sleep(POLL))
    # Whether somebody reads it or has closed the pipe: the exit code is the run's.
    with contextlib.suppress(OSError, SystemExit):
        console.print(summary(config_of(state, run), state, run, how), crop=False)
    sys.exit(_code(how[0]))


def _code(outcome: str) -> int:
    return {"done": 0, "failed": FAILED, "stopped": STOPPED}[outcome]
