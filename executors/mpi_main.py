"""What every rank of an ``mpi`` task runs; started as ``python -m mpi4py -c``, one per rank.

Rank 0 reads the task's input and broadcasts it; its return value is the task's. A rank that fails
leaves its reason in a file before mpi4py aborts the communicator. Standard library and mpi4py.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

INPUT_FILE = "mpi.json"
VALUE_FILE = "mpi-value.json"
ERROR_FILE = "mpi-error-{rank}.json"


def main() -> None:
    """Run this rank's share. Raises whatever the function raises, which ends all ranks."""
    from executors import values

    for name in [n for n in sys.modules if n.partition(".")[0] == "executors"]:
        del sys.modules[name]  # the name is free for a module of the campaign
    del sys.path[0]
    if "" in sys.path:
        sys.path.remove("")
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    task = _shared_input(comm)
    if comm.size != task["ranks"]:
        _report(
            comm.rank,
            "error",
            f"communicator has size {comm.size}, expected {task['ranks']}: "
            "launcher and MPI library do not belong together",
        )
        sys.exit(1)
    sys.path[:0] = task["path"]
    try:
        value = values.resolve(task["function"])(task["candidate"], **task["arguments"])
    except BaseException as error:
        _report(comm.rank, "error", f"rank {comm.rank}: {values.describe(error)}")
        raise
    if comm.rank == 0:
        try:
            _write(VALUE_FILE, values.encode(value))
        except values.NotAnAnswer as error:
            _report(0, "unreadable", str(error))


def _shared_input(comm: Any) -> dict[str, Any]:
    own = json.loads(Path(INPUT_FILE).read_bytes()) if comm.rank == 0 else None
    shared: dict[str, Any] = comm.bcast(own, root=0)
    return shared


def _report(rank: int, status: str, reason: str) -> None:
    text = json.dumps({"status": status, "reason": reason})
    _write(ERROR_FILE.format(rank=rank), text.encode())


def _write(name: str, body: bytes) -> None:
    half = Path(f".{name}.{os.getpid()}")  # ranks that are strangers to each other share the name
    half.write_bytes(body)
    half.replace(name)
