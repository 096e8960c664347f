"""A task of the config and a candidate become one executable :class:`executors.base.Task`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from campaign.config import CommandTask, MpiTask, PythonTask, TaskConfig
from campaign.space import Point, content_hash
from campaign.template import render, render_file, text_of
from executors.base import CommandWork, MpiWork, Output, PythonWork, Resources, Task, Work
from executors.config import ExecutorConfig, MpiConfig
from executors.launch import default_launcher, step_launcher


@dataclass(frozen=True, slots=True)
class Place:
    """Where a campaign and its run lie (absolute paths); ``seed`` is the campaign's."""

    folder: Path
    run_dir: Path
    seed: int
    executors: Mapping[str, ExecutorConfig] = field(default_factory=dict)

    def directory(self, task: str, candidate: str, attempt: int) -> Path:
        return self.run_dir / "tasks" / f"{task}-{candidate}" / f"try-{attempt}"


def task_seed(seed: int, task: str, candidate: str) -> int:
    """A seed for a task's own random numbers, in 1 … 900,000,000, the same at every try.

    The range is what the strictest generators of simulation codes take (LAMMPS' Marsaglia).
    """
    digest = hashlib.sha256(f"{seed}:{task}:{candidate}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 900_000_000 + 1


def build_task(name: str, spec: TaskConfig, point: Point, place: Place, attempt: int) -> Task:
    """Render everything.

    Raises ``OSError`` or ``ValueError`` when a template cannot be read or filled.
    """
    candidate = content_hash(point)
    directory = place.directory(name, candidate, attempt)
    values = _values(spec, point, place, directory, task_seed(place.seed, name, candidate))
    return Task(
        id=f"{name}-{candidate}/try-{attempt}",
        directory=directory,
        work=_work(spec, values, place.executors.get(spec.executor)),
        resources=Resources(walltime=spec.walltime, ranks=spec.ranks, nodes=spec.nodes),
        candidate=dict(point),
        output=_output(spec),
        executor=spec.executor,
        files=_files(spec, place.folder, values),
        env={key: render(text, values) for key, text in spec.env.items()} | _marks(values),
        import_path=(str(place.folder),),
    )


def _values(
    spec: TaskConfig, point: Point, place: Place, directory: Path, seed: int
) -> dict[str, str]:
    whole_nodes = isinstance(place.executors.get(spec.executor), MpiConfig)
    return {name: text_of(value) for name, value in point.items()} | {
        "campaign_dir": str(place.folder),
        "task_dir": str(directory),
        "seed": str(seed),
        "ranks": str(spec.ranks),
        "ranks_per_node": str(spec.ranks // spec.nodes),
        # Which nodes are free is known only where the task starts.
        "nodelist": "{nodelist}" if whole_nodes else "localhost",
        "hostlist": "{hostlist}" if whole_nodes else f"localhost:{spec.ranks}",
        "python": sys.executable,
    }


def _marks(values: Mapping[str, str]) -> dict[str, str]:
    return {
        "SIMGATE_SEED": values["seed"],
        "SIMGATE_RANKS": values["ranks"],
        "SIMGATE_CAMPAIGN_DIR": values["campaign_dir"],
        "SIMGATE_TASK_DIR": values["task_dir"],
    }


def _work(spec: TaskConfig, values: Mapping[str, str], executor: ExecutorConfig | None) -> Work:
    if isinstance(spec, PythonTask):
        return PythonWork(spec.function, spec.arguments)
    if isinstance(spec, MpiTask):
        return MpiWork(spec.function, _launcher(spec, values, executor), spec.arguments)
    command = tuple(render(word, values) for word in spec.command)
    if spec.ranks == 1 and spec.launcher is None and not isinstance(executor, MpiConfig):
        return CommandWork(command)
    return CommandWork(_launcher(spec, values, executor) + command)


def _launcher(
    spec: MpiTask | CommandTask, values: Mapping[str, str], executor: ExecutorConfig | None
) -> tuple[str, ...]:
    own = tuple(render(word, values) for word in spec.launcher or ())
    if isinstance(executor, MpiConfig):
        options = executor.launcher_options
        return step_launcher(executor.launcher, options, spec.ranks, spec.nodes, own)
    if own:
        return own
    return default_launcher(spec.ranks) or ("mpiexec", "-n", str(spec.ranks))


def _output(spec: TaskConfig) -> Output:
    if spec.output is None:
        return Output()
    codes = spec.output.exit_codes
    return Output(spec.output.json_file, None if codes is None else dict(codes), spec.output.reader)


def _files(spec: TaskConfig, folder: Path, values: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(spec, CommandTask):
        return {}
    return {
        name: render_file((folder / source).read_text(encoding="utf-8"), values)
        for name, source in spec.files.items()
    }
