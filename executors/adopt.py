"""What the directory of a try says about it, to whoever comes later. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from executors import processes, slurm, wire
from executors.base import TaskResult
from executors.claim import ABANDONED, CANCEL, RESULT, STARTED

ELSEWHERE = 60.0
"""Seconds to wait for the end of a try on another host, of which nothing is heard any more.

Its worker pool ends within a third of that when it has lost the driver, and takes the try along.
"""
_LOOK = 0.1  # seconds between two looks at a directory
_ASK = 2.0  # seconds between two questions to Slurm


def read_result(directory: Path) -> TaskResult | None:
    """The result a try left; None when there is none, or none that is whole."""
    try:
        return wire.result((directory / RESULT).read_bytes())
    except (OSError, ValueError):
        return None


def was_started(directory: Path) -> bool:
    """Whether a worker ever began this try."""
    return any((directory / name).exists() for name in (STARTED, RESULT, ABANDONED))


def try_is_alive(directory: Path) -> bool | None:
    """Whether somebody still works on this try; None when it runs on another host: cannot tell.

    A try whose result is there has ended, as has one that was abandoned or never started.
    """
    if not _marks(directory).isdisjoint({RESULT, ABANDONED}):
        return False
    owner = _owner(directory)
    if owner is None:
        return False
    if owner.get("host") != socket.gethostname():
        return None
    if owner.get("boot") != processes.boot_id():
        return False
    return bool(processes.start_ticks(owner["pid"]) == owner["start"])


def ran_for(directory: Path) -> float:
    """Seconds a try without a result ran, until now if need be; 0 when it never was started."""
    if (seconds := abandoned_after(directory)) is not None:
        return seconds
    owner = _owner(directory)
    return 0.0 if owner is None else max(0.0, time.time() - float(owner.get("time", time.time())))


def abandoned_after(directory: Path) -> float | None:
    """Seconds after which a try ended that nobody waited for any more; None when none says so."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads((directory / ABANDONED).read_bytes())["seconds"])
    return None


def ask_to_end(directory: Path) -> bool:
    """Cancel a try, wherever it runs; whether a worker may be busy with it already.

    A worker that comes to it later finds the request, so False means: it will never run.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / CANCEL).touch()
    except OSError:
        return True
    return was_started(directory)


def make_sure_it_ended(directory: Path, patience: float) -> None:
    """Wait until nobody on this host works on a try; after ``patience`` seconds, kill it."""
    deadline = time.monotonic() + patience
    while try_is_alive(directory) and time.monotonic() < deadline:
        time.sleep(0.02)
    owner = _owner(directory)
    if owner is not None and try_is_alive(directory):
        processes.kill_exactly(owner["pid"], owner["start"])
        processes.kill_marked(f"{wire.TASK_DIR}={directory}".encode())
        while try_is_alive(directory):  # SIGKILL is certain, but not immediate
            time.sleep(0.01)


def see_ended(directories: Iterable[Path], patience: float, elsewhere: float = ELSEWHERE) -> None:
    """Return when nothing of these tries runs any more, on whatever host.

    Here they are killed after ``patience`` seconds. On another host they are asked to end, and
    have: when they said so, or when their Slurm job is over. After ``elsewhere`` seconds nobody
    waits any longer.
    """
    began, directories = time.monotonic(), tuple(directories)
    remote = [one for one in directories if try_is_alive(one) is None]
    for directory in remote:
        ask_to_end(directory)
    for directory in set(directories).difference(remote):
        make_sure_it_ended(directory, began + patience - time.monotonic())
    jobs = _Jobs()
    while remote and time.monotonic() < began + elsewhere:
        remote = [one for one in remote if try_is_alive(one) is None and not jobs.over(one)]
        time.sleep(_LOOK if remote else 0.0)


class _Jobs:
    """What Slurm says of the jobs that tries ran in, asked now and then."""

    def __init__(self) -> None:
        self._over: dict[str, bool] = {}
        self._ask_at = 0.0

    def over(self, directory: Path) -> bool:
        """Whether the job of a try has ended, and every process of it."""
        job = str((_owner(directory) or {}).get("job", ""))
        now = time.monotonic()
        if now >= self._ask_at:
            self._over = {job: over for job, over in self._over.items() if over}
            self._ask_at = now + _ASK
        if job not in self._over:
            self._over[job] = bool(job) and slurm.is_over(job)
        return self._over[job]


def _marks(directory: Path) -> set[str]:
    """The names in a directory, read anew: a file system may remember that one was not there."""
    try:
        return set(os.listdir(directory))  # noqa: PTH208 - in a loop over many tries
    except OSError:
        return set()


def _owner(directory: Path) -> dict[str, Any] | None:
    """Who started this try. A file caught while it turns into the result starts the same way."""
    with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        text = (directory / STARTED).read_text()
        owner = json.JSONDecoder().raw_decode(text, text.index("{", 1))[0]
        return {**owner, "pid": int(owner["pid"]), "start": int(owner["start"])}
    return None
