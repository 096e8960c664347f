"""The telemetry of a job: on while it runs, flushed at its end, and never in its way.

What the libraries say through the OpenTelemetry API, the SDK writes to files of the run, see
:mod:`campaign.exporting`. Losing telemetry changes nothing else: it is said once, in the log.
``OTEL_SDK_DISABLED=true`` turns all of it off.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.attend import SIGNALS
from campaign.meters import Meters
from campaign.recorder import Recorder
from campaign.spans import JobSpan, of_job
from executors.background import in_thread

if TYPE_CHECKING:
    from campaign.exporting import Signals

FOLDER = "telemetry"
_log = logging.getLogger(__name__)


class Loss:
    """Says what of the telemetry is lost, the first time."""

    def __init__(self) -> None:
        self._said = False

    def __call__(self, what: str) -> None:
        if not self._said:
            self._said = True
            _log.warning("telemetry: %s; some of it is lost, the run goes on", what)


@asynccontextmanager
async def observing(recorder: Recorder, run_dir: Path) -> AsyncIterator[JobSpan]:
    """The root span of the next job of a run, whose telemetry is kept while inside."""
    state = recorder.state
    number = 1 if state.job is None else state.job.job + 1
    previous = "" if state.job is None else state.job.traceparent
    name, mode = ("", "") if state.run is None else (state.run.name, state.run.mode)
    signals = await _opened(run_dir, number)
    try:
        if signals is not None:
            recorder.listen(Meters())
        with of_job(name, mode, number, previous) as root:
            yield root
    finally:
        if signals is not None:
            await _close(signals)


async def _close(signals: Signals) -> None:
    """Get the last of it out; a further signal means that nobody waits for it."""
    loop, hurry = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, hurry.set)
    try:
        await signals.close(hurry)
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


async def _opened(run_dir: Path, job: int) -> Signals | None:
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    try:
        return await in_thread(_open, run_dir / FOLDER, job)
    except Exception as error:  # whatever the SDK makes of its environment: not the run's business
        Loss()(f"{type(error).__name__}: {error}")
        return None


def _open(folder: Path, job: int) -> Signals:
    from campaign.exporting import Signals

    return Signals(folder, job, Loss(), Loss())
