"""The dry run of a campaign: same agent, same rules, verifiers on this machine, nothing submitted.

Pure: a config becomes that of its dry run, and what was cut is told line by line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeVar

from campaign.config import CampaignConfig, CommandTask, MpiTask, TaskConfig, VerifierConfig
from campaign.problems import Loc, dotted
from campaign.taskconfig import TaskFields
from campaign.template import placeholders
from executors.config import (
    AllocationConfig,
    ExecutorConfig,
    LocalConfig,
    MpiConfig,
    SlurmConfig,
    ThreadsConfig,
)

ROUNDS = 1
"""Rounds of a dry run that asks for no other number: enough to see the gate and the verifiers."""
_MOST = 512  # workers of an executor
_SLURM = frozenset({"srun", "salloc", "sbatch", "scancel", "scontrol"})
_OTHERS = frozenset({"aprun", "flux", "ibrun", "jsrun", "lrun"})  # launchers of other systems
_T = TypeVar("_T", bound=TaskFields)


@dataclass(frozen=True, slots=True)
class DryRun:
    """The config that runs, and what of the real one it leaves out, in lines for a person."""

    config: CampaignConfig
    cuts: tuple[str, ...]


def dry_run(config: CampaignConfig, cores: int, rounds: int = ROUNDS) -> DryRun:
    """What of a campaign runs on a machine with so many ``cores``."""
    used = {task.executor for _, task in running(config)}
    executors = {
        label: _here(executor, cores, idle=label not in used)
        for label, executor in config.executors.items()
    }
    workers = {label: executor.workers for label, executor in executors.items()}
    real, other = config.simulation, stand_in(config)
    cut = config.model_copy(
        update={
            "rounds": rounds,
            "executors": executors,
            "verifiers": tuple(_cut(one, workers) for one in config.verifiers),
            "simulation": _cut(real, workers).model_copy(
                update={"dry_run": None if other is None else _cut(other, workers)}
            ),
        }
    )
    checked = CampaignConfig.model_validate(cut.model_dump(mode="json"))
    return DryRun(checked, tuple(_cuts(config, checked)))


def stand_in(config: CampaignConfig) -> TaskConfig | None:
    """What a dry run runs in place of the simulation, if anything."""
    return config.simulation.dry_run


def running(config: CampaignConfig) -> Iterator[tuple[Loc, TaskConfig]]:
    """Every task a dry run runs, with its place in the config."""
    for index, verifier in enumerate(config.verifiers):
        yield ("verifiers", index), verifier
    if (other := stand_in(config)) is not None:
        yield ("simulation", "dry_run"), other


def forbidden(config: CampaignConfig) -> Iterator[tuple[Loc, str]]:
    """The commands of a dry run that would ask Slurm for something."""
    for loc, task in running(config):
        for index, word in enumerate(task.command if isinstance(task, CommandTask) else ()):
            if found := _slurm(word):
                yield (
                    (*loc, "command", index),
                    f"{found!r} asks Slurm for nodes, and a dry run asks for none; write how "
                    "ranks are started under launcher, which a dry run replaces",
                )


def cores() -> int:
    """Cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0))


def _here(executor: ExecutorConfig, cores: int, *, idle: bool) -> ThreadsConfig | LocalConfig:
    """An executor's place on this machine; where nothing runs, nothing is to be started."""
    workers = min(_workers(executor) or cores, cores, _MOST)
    if idle or isinstance(executor, ThreadsConfig):
        return ThreadsConfig(kind="threads", workers=workers)
    if isinstance(executor, LocalConfig):
        return executor.model_copy(update={"workers": workers})
    return LocalConfig(kind="local", workers=workers)


def _workers(executor: ExecutorConfig) -> int | None:
    """How many ranks it has room for; None where it is made of whole nodes of any size."""
    match executor:
        case SlurmConfig():
            return executor.max_pilots * executor.nodes * executor.workers_per_node
        case AllocationConfig():
            return (executor.nodes or 1) * executor.workers_per_node
        case MpiConfig():
            return None
        case _:
            return executor.workers


def _cut(task: _T, workers: dict[str, int]) -> _T:
    changes: dict[str, object] = {"ranks": min(task.ranks, workers[task.executor]), "nodes": 1}
    if _asks_the_cluster(_launcher(task)):
        changes["launcher"] = None
    return task.model_copy(update=changes)


def _launcher(task: TaskFields) -> Sequence[str]:
    return (task.launcher or ()) if isinstance(task, MpiTask | CommandTask) else ()


def _asks_the_cluster(launcher: Sequence[str]) -> bool:
    other = bool(launcher) and PurePath(launcher[0]).name in _OTHERS
    return other or any(_slurm(word) for word in launcher)


def _slurm(word: str) -> str:
    """The program of Slurm's that a word, or a line for a shell, names; "" for none."""
    return next((part for part in word.split() if PurePath(part).name in _SLURM), "")


def _cuts(config: CampaignConfig, cut: CampaignConfig) -> Iterator[str]:
    if cut.rounds != config.rounds:
        yield f"rounds: {cut.rounds} of {config.rounds}; --set rounds=N runs as many as you like"
    for label in dict.fromkeys(task.executor for _, task in running(config)):
        executor, here = config.executors[label], cut.executors[label]
        if executor != here:
            yield f"executors.{label}: {_room(executor)} -> {_room(here)}"
    for (loc, task), (_, there) in zip(running(config), running(cut), strict=True):
        name = f" ({task.name})" if isinstance(task, VerifierConfig) else ""
        yield from (f"{dotted(loc)}{name}: {what}" for what in _task_cuts(task, there))
    if stand_in(config) is None:
        yield "simulation: none runs; simulation.dry_run may name a task that stands in for it"
    else:
        yield "simulation: simulation.dry_run stands in for it"


def _task_cuts(task: TaskConfig, cut: TaskConfig) -> Iterator[str]:
    if (task.ranks, task.nodes) != (cut.ranks, cut.nodes):
        yield (
            f"{_count(task.ranks, 'rank')} on {_count(task.nodes, 'node')} -> "
            f"{_count(cut.ranks, 'rank')} on {_count(cut.nodes, 'node')}"
        )
    launcher, kept = _launcher(task), _launcher(cut)
    if launcher and not kept:
        yield f"launcher {' '.join(launcher)} -> the default one"
    counts = any(name in ("ranks", "hostlist") for word in kept for name in placeholders(word))
    if kept and task.ranks != cut.ranks and not counts:
        yield f"launcher {' '.join(kept)} stays and says itself how many; {{ranks}} would be cut"


def _room(executor: ExecutorConfig) -> str:
    workers = _workers(executor)
    room = "whole nodes" if workers is None else _count(workers, "worker")
    return f"{executor.kind}, {room}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
