"""A driver of executors alone: ``planned_driver.py FOLDER`` does what ``FOLDER/plan.json`` says.

The plan holds ``executors`` by label, as a config has them, and ``tasks``, begun in their order:
each with its ``name``, ``executor``, ``function`` (of tests/support/misbehave.py) or ``argv``, and
if need be ``candidate``, ``walltime``, ``ranks``, ``nodes``. Their results go to ``results.json``.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from executors import (
    CommandWork,
    ExecutorConfig,
    Output,
    PythonWork,
    Resources,
    Task,
    TaskResult,
    open_executors,
)
from executors.config import MpiConfig
from executors.launch import step_launcher

SUPPORT = str(Path(__file__).parent)


def planned(folder: Path, plan: dict[str, Any], config: ExecutorConfig) -> Task:
    """The task of one entry of the plan; a program on whole nodes is started there."""
    ranks, nodes = plan.get("ranks", 1), plan.get("nodes", 1)
    own: tuple[str, ...] = ()
    if isinstance(config, MpiConfig):
        own = step_launcher(config.launcher, config.launcher_options, ranks, nodes)
    command = CommandWork((*own, *plan.get("argv", ())))
    return Task(
        id=plan["name"],
        directory=folder / "tasks" / plan["name"],
        work=command if "argv" in plan else PythonWork(f"misbehave:{plan['function']}"),
        resources=Resources(plan.get("walltime", 60.0), ranks, nodes),
        candidate=plan.get("candidate", {"x": 0.5}),
        output=Output(exit_codes={0: "pass"}) if "argv" in plan else Output(),
        executor=plan["executor"],
        import_path=(SUPPORT,),
    )


async def main(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    configs = TypeAdapter(dict[str, ExecutorConfig]).validate_python(plan["executors"])
    async with open_executors(configs, folder) as executors:
        tasks = [planned(folder, one, configs[one["executor"]]) for one in plan["tasks"]]
        results: list[TaskResult] = await asyncio.gather(*map(executors.run, tasks))
    told = [
        {
            "name": task.id,
            "status": result.status.value,
            "reason": result.reason,
            "value": result.value,
            "seconds": result.seconds,
            "host": result.host,
        }
        for task, result in zip(tasks, results, strict=True)
    ]
    (folder / "results.json").write_text(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
