"""What every command shares: its arguments, exit codes, and how errors are told.

Everything heavy is imported where it is needed, so that help is there at once.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TypeVar

import click

from campaign.outlet import say

if TYPE_CHECKING:
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


def named_errors(command: Callable[P, T]) -> Callable[P, T]:
    """What a user can put right is printed as text; nobody gets a traceback."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click's own, which it prints itself
        except Exception as error:
            explain(error)

    return wrapped


def explain(error: Exception, run_dir: Path | None = None) -> NoReturn:
    """Name an error on standard error and exit; of one that nobody expected, keep the details."""
    from campaign.crash import cause, keep
    from campaign.ledger import LedgerError, NoLedgerError
    from campaign.lock import LockHeldError
    from campaign.nearby import told
    from campaign.problems import ConfigError

    first = cause(error)
    if isinstance(first, NoLedgerError):
        fail(told(first), USAGE)
    if isinstance(first, ConfigError | LockHeldError):
        fail(str(first), USAGE)
    if isinstance(first, LedgerError):
        fail(str(first), FAILED)
    where = keep(error, run_dir)
    said = " ".join(f"{type(first).__name__}: {first}".split())
    fail(f"internal error: {said}" + (f"; details in {where}" if where else ""), FAILED)


def fail(message: str, code: int) -> NoReturn:
    click.echo(f"simgate: {message}", file=sys.stderr)
    sys.exit(code)


def default_run_dir(name: str) -> Path:
    """Where a new run is kept when nobody says: a directory that is not there yet."""
    first = path = Path("runs") / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(2):
        if not path.exists():
            break
        path = first.with_name(f"{first.name}-{number}")
    return path


def print_json(data: object) -> None:
    """Valid JSON in any encoding: what that does not have is escaped as JSON does it."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(data, indent=2, allow_nan=False)
    say(text)


def print_costs(found: Inspection) -> None:
    """The worst-case bill, and what about it may surprise."""
    say(f"  {'':22}{'at least':>12}{'at most':>12}{'cap':>12}")
    for cost in found.costs:
        cap = "none" if cost.cap is None else f"{cost.cap:.4g}"
        say(f"  {cost.what:22}{cost.least:>12.4g}{cost.most:>12.4g}{cap:>12}")
    for note in found.notes:
        say(f"  note: {note}")


def percentage(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuse what a range lets pass."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no number; give a percentage from 0 to 100")
    return value
