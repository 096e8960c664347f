"""Executors on Parsl: one DataFlowKernel per run, owned here and seen nowhere else."""

from __future__ import annotations

import asyncio
import difflib
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from executors import allocation, pilots
from executors.background import in_thread, start_in_thread
from executors.base import Task, TaskResult, TaskStatus
from executors.config import ExecutorConfig, SlurmConfig, capacity, pilot, too_long
from executors.fleet import Fleet
from executors.flight import Load
from executors.kernel import Kernel
from executors.payer import Free, Payer, UnaffordableError
from executors.pool import Pool
from executors.sites import Around
from executors.slurm import SlurmError

_log = logging.getLogger(__name__)
_START = 120.0  # seconds for all interchanges to come up, each within a second or two
_CLOSE = 30.0  # seconds for Parsl's own cleanup; beyond it the operating system cleans up
_runs = count()


class ExecutorError(RuntimeError):
    """The executors cannot be started: the text says why."""


class ParslExecutors:
    """Runs each task on the executor it names; keeps :class:`executors.base.Executor`'s contract.

    Belongs to the event loop it was started in.
    """

    def __init__(
        self,
        configs: Mapping[str, ExecutorConfig],
        run_dir: Path,
        folder: Path | None = None,
        payer: Payer | None = None,
    ) -> None:
        """``run_dir`` is the run's own; Parsl's files go to ``parsl/job-N`` in it.

        In ``folder`` lie the modules that executors of kind ``parsl`` name. Without a ``payer``
        pilot jobs cost nobody anything.
        """
        self._payer = payer or Free()
        self._folder = folder
        self._configs = dict(configs)
        self._run_dir = run_dir.absolute()
        # Each pilot job of an executor is an executor of Parsl's by itself.
        self._expanded = {
            name: config for label, config in configs.items() for name in _names(label, config)
        }
        self._pools: dict[str, Pool | Fleet] = {}
        self._kernel: Kernel | None = None
        self._closing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start every executor; their workers may take a while longer. Raises ExecutorError."""
        run = next(_runs)
        try:
            places = await in_thread(allocation.places, self._expanded)
            if any(map(pilot, self._configs.values())):
                await in_thread(pilots.end_leftovers, self._run_dir)
            parsl_dir = _fresh(self._run_dir / "parsl")
            around = Around(os.getpid(), self._run_dir, parsl_dir, self._folder, places)
            self._kernel = Kernel(self._expanded, around)
            await start_in_thread(self._kernel.start, self._kernel.broken, _START)
        except (ValueError, SlurmError) as error:
            raise ExecutorError(str(error)) from error
        except Exception as error:
            raise ExecutorError(f"executors: {type(error).__name__}: {error}") from error
        for label, config in self._configs.items():
            pools = [
                Pool(
                    name,
                    config,
                    self._kernel,
                    f"{run}-{name}",
                    capacity(config, places[name].count),
                    self._payer,
                )
                for name in _names(label, config)
            ]
            self._pools[label] = pools[0] if len(pools) == 1 else Fleet(pools)
            if pilot(config) is None:
                pools[0].crew.started()

    async def run(self, task: Task) -> TaskResult:
        """One try of ``task``; see :class:`executors.base.Executor`.

        Raises ``ValueError`` only for a task that no executor here could ever run.
        """
        pool = self._pools.get(task.executor)
        if pool is None:
            raise ValueError(_unknown(task.executor, self._configs))
        if pool.units(task) > pool.workers:
            raise ValueError(
                f"{task.id}: {pool.units(task)} {pool.unit}; executor {task.executor!r} "
                f"has {pool.workers} {'workers' if pool.unit == 'ranks' else 'nodes'}"
            )
        self._ends_in_its_pilot(task)
        if self._closing is not None:
            return TaskResult(TaskStatus.CANCELLED, reason="the executors are closed")
        try:
            return await pool.run(task)
        except UnaffordableError as refusal:
            self._payer.exhausted()
            return TaskResult(TaskStatus.CANCELLED, reason=str(refusal))

    def _ends_in_its_pilot(self, task: Task) -> None:
        asks = pilot(self._configs[task.executor])
        if asks is not None and (long := too_long(task.resources.walltime, asks)):
            raise ValueError(f"{task.id}: {long}")

    def load(self) -> Mapping[str, Load]:
        """Tasks running and waiting, by executor label."""
        return {label: pool.load() for label, pool in self._pools.items()}

    async def close(self) -> None:
        """End every worker and helper process; idempotent, and returns even if Parsl does not."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        if self._kernel is not None:
            try:
                await asyncio.wait_for(in_thread(self._kernel.close), _CLOSE)
            except Exception as error:  # TimeoutError, and whatever Parsl's cleanup raises
                _log.warning("Parsl did not clean up: %s: %s", type(error).__name__, error)
        await asyncio.gather(*(pool.forget() for pool in self._pools.values()))


@asynccontextmanager
async def open_executors(
    configs: Mapping[str, ExecutorConfig],
    run_dir: Path,
    folder: Path | None = None,
    payer: Payer | None = None,
) -> AsyncIterator[ParslExecutors]:
    """The executors of a run, started, and closed in any case. Raises :class:`ExecutorError`.

    ``configs`` are by the label that tasks name as their ``executor``; Parsl's files go into
    ``run_dir``, and modules that executors of kind ``parsl`` name are looked for in ``folder``.
    Nothing is submitted to Slurm that ``payer`` does not pay for; without one all is free.
    """
    executors = ParslExecutors(configs, run_dir, folder, payer)
    try:
        await executors.start()
        yield executors
    finally:
        await executors.close()


def _names(label: str, config: ExecutorConfig) -> tuple[str, ...]:
    """What the kernel calls an executor's pools."""
    if not isinstance(config, SlurmConfig) or config.max_pilots == 1:
        return (label,)
    return tuple(f"{label}-pilot{number}" for number in range(1, config.max_pilots + 1))


def _fresh(folder: Path) -> Path:
    """A folder nobody used before: Parsl numbers its own, but two at once get the same number."""
    folder.mkdir(parents=True, exist_ok=True)
    number = 1 + max(
        (int(d.name[4:]) for d in folder.glob("job-*") if d.name[4:].isdigit()), default=0
    )
    while True:
        try:
            (folder / f"job-{number}").mkdir()
            return folder / f"job-{number}"
        except FileExistsError:
            number += 1


def _unknown(label: str, known: Mapping[str, object]) -> str:
    nearest = difflib.get_close_matches(label, known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return f"executor {label!r}: unknown; known are {', '.join(known)}{hint}"
