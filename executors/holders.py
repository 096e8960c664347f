"""Who holds which node of a Slurm job: one file for each node that is not free.

Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from executors import processes


class NodesError(RuntimeError):
    """Nodes that cannot be had, or cannot be given back; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a node: one process, among all processes of all boots of this host."""

    pid: int
    start: int
    boot: str
    directory: str  # of the task
    lost: bool = False  # the node is: nobody holds it, and nobody can

    @classmethod
    def me(cls) -> Owner:
        pid = os.getpid()
        return cls(pid, processes.start_ticks(pid) or 0, processes.boot_id(), str(Path.cwd()))

    @property
    def alive(self) -> bool:
        same = self.boot == processes.boot_id()
        return same and self.pid > 0 and processes.start_ticks(self.pid) == self.start

    @property
    def mark(self) -> str:
        """The value of ``SIMGATE_STEP`` in the environment of its processes."""
        return f"{self.pid}-{self.start}"


@dataclass(frozen=True, slots=True)
class Allocation:
    """The nodes of a job that one executor may use, in the job's order, and where claims lie."""

    job: str
    names: tuple[str, ...]
    folder: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Allocation:
        """As its worker pool was told. Raises :class:`NodesError`."""
        wanted = ("SIMGATE_JOB", "SIMGATE_NODES", "SIMGATE_NODE_CLAIMS")
        job, names, folder = (environment.get(name, "") for name in wanted)
        if not (job and names and folder):
            missing = [name for name in wanted if not environment.get(name)]
            raise NodesError(f"{', '.join(missing)}: not set; the worker pool sets them")
        return cls(job, tuple(names.split(",")), Path(folder, job))

    @property
    def environment(self) -> dict[str, str]:
        """What tells a worker pool of it."""
        return {
            "SIMGATE_JOB": self.job,
            "SIMGATE_NODES": ",".join(self.names),
            "SIMGATE_NODE_CLAIMS": str(self.folder.parent),
        }


def owner_of(path: Path) -> Owner | None:
    """Who holds the node whose file this is; ``None`` when it is free."""
    try:
        return Owner(**json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None


def write_owner(path: Path, owner: Owner) -> None:
    """Say who holds it, in one step."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(json.dumps(asdict(owner)))
    half.replace(path)
