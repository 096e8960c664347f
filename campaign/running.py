"""A campaign run from Python: what ``simgate run`` and ``simgate resume`` do, without a screen."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.configfile import LoadedConfig
from campaign.events import RunCreated
from executors.background import in_thread

if TYPE_CHECKING:
    from campaign.loop import Ending


async def run(loaded: LoadedConfig, run_dir: Path, *, surrogate_only: bool = False) -> Ending:
    """Run a campaign, in a new directory, to its end; how it ended, with the reason in one line.

    ``await`` it in a notebook, give it to ``asyncio.run`` in a program; ``loaded`` comes from
    :func:`load_config`. Everything is inspected first. Until it returns, SIGINT (a notebook's
    interrupt), SIGTERM and SIGUSR1 stop the campaign so that :func:`resume` can go on with it: the
    ending's outcome is then ``JobOutcome.STOPPED``. A campaign that failed is an ending, too.

    Raises :class:`ConfigError` with every problem, and :class:`RunDirError` when ``run_dir`` holds
    a run already or cannot be made, before anything is spent; :class:`LedgerError` when the disk
    refuses, ``campaign.lock.LockHeldError`` when another driver writes the run, ``RuntimeError``
    outside the main thread, which alone gets signals.
    """
    _require_main_thread()
    from campaign.drive import creation  # and with it the executors and the surrogate
    from campaign.expectations import kept
    from campaign.preflight import require

    if surrogate_only:
        loaded = loaded.without_agent()
    await in_thread(require, loaded)
    rules = kept(loaded.expect)
    created = creation(loaded.config, loaded.folder, rules, surrogate_only=surrogate_only)
    return await _driven(run_dir, created)


async def resume(run_dir: Path) -> Ending:
    """Go on with a run that was stopped, killed or failed; of one that is done, tell its end.

    Nothing accepted is asked for again, and no finished task is run again. The configuration is
    that in the ledger. Stops and raises as :func:`run` does, and ``campaign.ledger.NoLedgerError``,
    a :class:`LedgerError`, when the directory holds no run.
    """
    _require_main_thread()
    from campaign.status import config_at

    config_at(run_dir.absolute())  # a directory without a run is not made one by asking
    return await _driven(run_dir, None)


async def _driven(run_dir: Path, created: RunCreated | None) -> Ending:
    from campaign.drive import drive

    ending, _ = await drive(run_dir.absolute(), created)
    return ending


def _require_main_thread() -> None:
    here = threading.current_thread()
    if here is not threading.main_thread():
        raise RuntimeError(
            f"thread {here.name!r}: gets no signals, so nobody could stop the campaign; "
            "run it in the main thread"
        )
