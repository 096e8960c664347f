"""Executors that are open, in a loop of a thread of their own, so that tests can share them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from executors import open_executors
from executors.base import PythonWork, Resources, Task, TaskResult, Work
from executors.config import ExecutorConfig
from executors.parsl import ParslExecutors

_T = TypeVar("_T")
SUPPORT = Path(__file__).parent
_numbers = count()


class Opened:
    """Open until :meth:`close`; ``patience`` is how long anything may take, in seconds."""

    def __init__(
        self,
        configs: Mapping[str, ExecutorConfig],
        folder: Path,
        *,
        patience: float = 60.0,
        modules: Path | None = None,
    ) -> None:
        self.folder, self._patience = folder, patience
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._context: AbstractAsyncContextManager[ParslExecutors] = open_executors(
            configs, folder, modules
        )
        self.executors = self.wait(self._context.__aenter__())

    def wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self._patience)

    def begin(self, task: Task) -> Any:
        return asyncio.run_coroutine_threadsafe(self.executors.run(task), self._loop)

    def run(self, task: Task) -> TaskResult:
        return self.wait(self.executors.run(task))

    def close(self) -> None:
        try:
            self.wait(self._context.__aexit__(None, None, None))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def task(
        self, work: Work | str, label: str, *, walltime: float = 30.0, ranks: int = 1, **fields: Any
    ) -> Task:
        """A task of a directory of its own; a text is a function of tests/support/misbehave.py."""
        name = f"t{next(_numbers)}"
        fields.setdefault("candidate", {"x": 0.5})
        return Task(
            id=name,
            directory=self.folder / "tasks" / name,
            work=PythonWork(f"misbehave:{work}") if isinstance(work, str) else work,
            resources=Resources(walltime=walltime, ranks=ranks),
            executor=label,
            import_path=(str(SUPPORT),),
            **fields,
        )
