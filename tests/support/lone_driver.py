"""A driver that runs one task: ``lone_driver.py FOLDER KIND FUNCTION``; prints how it ended."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from executors import CommandWork, PythonWork, Resources, Task, TaskResult, Work, open_executors
from executors.config import ExecutorConfig, LocalConfig, ThreadsConfig


async def main(folder: Path, kind: str, function: str) -> None:
    config: ExecutorConfig = (
        LocalConfig(kind="local") if kind == "local" else ThreadsConfig(kind="threads")
    )
    support = str(Path(__file__).parent)

    def task(name: str, work: Work) -> Task:
        return Task(
            id=name,
            directory=folder / name,
            work=work,
            resources=Resources(walltime=300.0),
            candidate={"x": 0.5},
            import_path=(support,),
        )

    async with open_executors({"default": config}, folder) as executors:
        works: list[tuple[str, Work]] = [("function", PythonWork(f"misbehave:{function}"))]
        if function == "sleeps":
            detached = "setsid sleep 600 & trap '' TERM; sleep 600"
            works.append(("command", CommandWork(("sh", "-c", detached))))
        results: list[TaskResult] = await asyncio.gather(
            *(executors.run(task(name, work)) for name, work in works)
        )
        print(*(result.status.value for result in results))


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
