"""Tasks run under a guard of this process, without Parsl: what a worker does, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from executors import task_main, wire
from executors.base import Output, PythonWork, Resources, Task, TaskResult, Work

FUNCTIONS = str(Path(__file__).parents[2] / "support")


class Worker:
    """Runs tasks one after the other, each in a directory of its own under ``folder``."""

    def __init__(self, folder: Path, pool: str) -> None:
        self.folder = folder
        self._pool = pool
        self._number = 0
        self.directory = folder

    def task(self, work: Work, *, walltime: float = 30.0, ranks: int = 1, **fields: Any) -> Task:
        self._number += 1
        self.directory = self.folder / "tasks" / f"t{self._number}"
        fields.setdefault("candidate", {"x": 0.5})
        fields.setdefault("import_path", (FUNCTIONS,))
        return Task(
            id=f"t{self._number}",
            directory=self.directory,
            work=work,
            resources=Resources(walltime=walltime, ranks=ranks),
            **fields,
        )

    def run(self, work: Work, **fields: Any) -> TaskResult:
        answer = task_main.run_task(wire.request(self.task(work, **fields)), self._pool)
        return wire.result(answer)

    def call(self, function: str, **fields: Any) -> TaskResult:
        """Run a function of tests/support/misbehave.py."""
        return self.run(PythonWork(f"misbehave:{function}"), **fields)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One warm guard for a module: starting one takes a tenth of a second."""
    name = str(tmp_path_factory.mktemp("pool"))
    yield name
    task_main.close_guards(name)
    task_main.forget_pool(name)


@pytest.fixture
def worker(tmp_path: Path, pool: str) -> Worker:
    return Worker(tmp_path, pool)


@pytest.fixture
def read_output() -> Output:
    return Output(reader="misbehave:reads")


@pytest.fixture
def below() -> Callable[[], list[str]]:
    """Command lines of live processes below this one, but for guards and their idle runners."""

    def living() -> list[str]:
        found = []
        for process in psutil.Process().children(recursive=True):
            try:
                line = " ".join(process.cmdline())
                if process.status() != psutil.STATUS_ZOMBIE and "executors.guard" not in line:
                    found.append(line)
            except psutil.NoSuchProcess:
                continue
        return found

    return living
