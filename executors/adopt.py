"""What the directory of a try says about it, to whoever comes later. Standard library only."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path
from typing import Any

from executors import processes, wire
from executors.base import TaskResult
from executors.claim import CANCEL, RESULT, STARTED


def read_result(directory: Path) -> TaskResult | None:
    """The result a try left; None when there is none, or none that is whole."""
    try:
        return wire.result((directory / RESULT).read_bytes())
    except (OSError, ValueError):
        return None


def was_started(directory: Path) -> bool:
    """Whether a worker ever began this try."""
    return (directory / STARTED).exists() or (directory / RESULT).exists()


def try_is_alive(directory: Path) -> bool | None:
    """Whether somebody still works on this try; None when it runs on another host: cannot tell.

    A try whose result is there has ended, as has one that never started.
    """
    if (directory / RESULT).exists():
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
    """Seconds since a try without a result was started; 0 when it never was."""
    owner = _owner(directory)
    return 0.0 if owner is None else max(0.0, time.time() - float(owner.get("time", time.time())))


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


def _owner(directory: Path) -> dict[str, Any] | None:
    """Who started this try. A file caught while it turns into the result starts the same way."""
    with contextlib.suppress(OSError, ValueError, AttributeError, KeyError, TypeError):
        text = (directory / STARTED).read_text()
        owner = json.JSONDecoder().raw_decode(text, text.index("{", 1))[0]
        return {**owner, "pid": int(owner["pid"]), "start": int(owner["start"])}
    return None
