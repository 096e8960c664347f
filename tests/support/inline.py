"""An executor without workers: python tasks run in this process, in an order a test may reverse.

For tests of the loop, where what a task does is a function of the test's own.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from executors.base import PythonWork, Task, TaskResult, TaskStatus
from executors.flight import Load

Answering = Callable[[Mapping[str, Any]], Any]


@dataclass
class InlineExecutor:
    """Calls ``functions[name of the work's function]`` with the candidate.

    A function returns the task's value, or a ``TaskResult`` to say how the try ended.
    ``order`` reverses the order in which waiting tasks finish.
    """

    functions: Mapping[str, Answering]
    backwards: bool = False
    tries: Counter[str] = field(default_factory=Counter)  # by task, without the try's number
    _waiting: list[asyncio.Event] = field(default_factory=list)

    async def run(self, task: Task) -> TaskResult:
        assert isinstance(task.work, PythonWork)
        self.tries[task.id.partition("/")[0]] += 1
        await self._turn()
        answer = self.functions[task.work.function](task.candidate)
        if not isinstance(answer, TaskResult):
            answer = TaskResult(TaskStatus.DONE, value=answer, seconds=1.0)
        task.directory.mkdir(parents=True)
        (task.directory / "candidate.json").write_text(json.dumps(dict(task.candidate)))
        return answer

    def load(self) -> Mapping[str, Load]:
        return {"default": Load(workers=2, running=0, queued=0)}

    async def close(self) -> None:
        return None

    async def _turn(self) -> None:
        """Let everything that is ready start, then go in order or backwards."""
        mine = asyncio.Event()
        self._waiting.append(mine)
        for _ in range(20):
            await asyncio.sleep(0)
        while self._waiting[-1 if self.backwards else 0] is not mine:
            await asyncio.sleep(0)
        self._waiting.remove(mine)
