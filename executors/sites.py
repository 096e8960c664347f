"""Configuration -> Parsl configuration: pure, nothing is started here.

A further kind of executor is one more branch of :func:`parsl_executor`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from parsl import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.executors.base import ParslExecutor
from parsl.providers import LocalProvider

from executors import lifeline, slurm
from executors.allocation import Place
from executors.config import (
    AllocationConfig,
    ExecutorConfig,
    LocalConfig,
    MpiConfig,
    ParslConfig,
    SlurmConfig,
    ThreadsConfig,
    pilot,
)
from executors.holders import Allocation
from executors.parsl_log import WarningsLog
from executors.pilot import POOL, PilotJob
from executors.pilots import PilotProvider
from executors.provider import ChildProvider
from executors.slurm import job_prefix

HEARTBEAT_PERIOD = 1
"""Seconds until a worker that died is noticed; Parsl's own 30 suit thousands of nodes."""
HEARTBEAT_THRESHOLD = 20
"""Seconds after which a pool that fell silent counts as lost; one that died is seen at once."""
LOOPBACK = "127.0.0.1"
_POOL = "parsl.executors.high_throughput.process_worker_pool"


@dataclass(frozen=True, slots=True)
class Around:
    """What executors are made in: the process whose end ends everything, and the run's places.

    ``run_dir`` is the run's, ``parsl_dir`` Parsl's own within it.
    """

    driver: int
    run_dir: Path
    parsl_dir: Path
    folder: Path | None = None  # the campaign's, whose modules may be imported
    places: Mapping[str, Place] = field(default_factory=dict)

    def place(self, label: str) -> Place:
        return self.places.get(label, Place())

    def without_lost_nodes(self, label: str) -> Around:
        """The same, but for nodes of the driver's job that Slurm has lost. Asks Slurm.

        Raises ``RuntimeError`` when none is left, and :class:`executors.slurm.SlurmError`.
        """
        place = self.place(label)
        lost = slurm.unusable(place.job, place.names) if place.names else ()
        names = tuple(name for name in place.names if name not in lost)
        if lost and not names:
            raise RuntimeError(f"all its nodes are lost: {', '.join(lost)}")
        left = replace(place, names=names, count=len(names) or place.count)
        return replace(self, places={**self.places, label: left})


def parsl_config(configs: Mapping[str, ExecutorConfig], around: Around) -> Config:
    """Everything about a run's DataFlowKernel.

    Pilot jobs are not among its executors: they are added when there is work. No retries, no
    memoization (the ledger knows both), no scaling, no usage report; its log, and those of its
    programs, hold warnings only: by default they cost more than the dispatch they record.
    """
    return Config(
        executors=[
            parsl_executor(label, parsl_label(label), config, around)
            for label, config in configs.items()
            if pilot(config) is None
        ],
        run_dir=str(around.parsl_dir),
        strategy="none",
        strategy_period=3600,
        retries=0,
        usage_tracking=0,
        initialize_logging=WarningsLog(),
        internal_tasks_max_threads=1,
        exit_mode="cleanup",
    )


def parsl_label(label: str, generation: int = 0) -> str:
    """A label that is also a folder name; ``generation`` tells restarts of one executor apart."""
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", label)
    return f"{plain}.{generation}" if generation else plain


def parsl_executor(label: str, name: str, config: ExecutorConfig, around: Around) -> ParslExecutor:
    """The executor of one config, its files in the folder ``name`` of Parsl's run directory."""
    match config:
        case ThreadsConfig(workers=workers):
            return ThreadPoolExecutor(label=name, max_threads=workers)
        case LocalConfig(workers=workers):
            return _htex(name, around, workers, ChildProvider())
        case AllocationConfig():
            return _allocation(label, name, config, around)
        case SlurmConfig() | MpiConfig(pilot=_) if pilot(config) is not None:
            return _pilot(label, name, config, around)
        case MpiConfig():
            return _whole_nodes(label, name, around)
        case ParslConfig():
            return _of_function(name, config, around)
    raise TypeError(f"no executor: {config!r}")


def _htex(
    name: str,
    around: Around,
    workers: int,
    provider: LocalProvider,
    *,
    address: str = LOOPBACK,
    remote: bool = False,
) -> HighThroughputExecutor:
    """``workers`` on each node; with ``remote`` they are no children of this process."""
    return HighThroughputExecutor(
        label=name,
        provider=provider,
        # Without an address Parsl asks a server on the internet for ours.
        address=address,
        loopback_address=LOOPBACK,
        encrypted=True,
        max_workers_per_node=workers,
        cores_per_worker=0.001,  # the pool starts no more workers than cores / this
        heartbeat_period=HEARTBEAT_PERIOD,
        heartbeat_threshold=HEARTBEAT_THRESHOLD,
        prefetch_capacity=0,
        interchange_launch_cmd=_alive_with(around.driver, "interchange"),
        launch_cmd=_pool_command(name, 0 if remote else around.driver),
        # Blocks are watched by us, who also know what to do about one that ended.
        block_error_handler=False,
    )


def _allocation(
    label: str, name: str, config: AllocationConfig, around: Around
) -> HighThroughputExecutor:
    """A pool on each node of the driver's own job, started by one srun."""
    place = around.place(label)
    prefix = [
        "srun", f"--jobid={place.job}", f"--nodes={place.count}", f"--ntasks={place.count}",
        "--ntasks-per-node=1", f"--nodelist={','.join(place.names)}", "--overlap", "--no-kill",
        "--kill-on-bad-exit=0", "--export=ALL", f"--job-name={POOL}-{name}",
    ]  # fmt: skip
    return _htex(
        name, around, config.workers_per_node, ChildProvider(prefix, job=place.job),
        address=_address(config), remote=True,
    )  # fmt: skip


def _pilot(
    label: str, name: str, config: SlurmConfig | MpiConfig, around: Around
) -> HighThroughputExecutor:
    asks = pilot(config)
    assert asks is not None
    place = around.place(label)
    whole = isinstance(config, MpiConfig)
    job = PilotJob(
        name=pilot_name(name, around),
        nodes=place.count,
        asks=asks,
        command="",
        folder=around.parsl_dir,
        log=around.parsl_dir / f"{name}.pilot.log",
        whole_nodes=whole,
    )
    workers = place.count if isinstance(config, MpiConfig) else config.workers_per_node
    return _htex(name, around, workers, PilotProvider(job), address=_address(config), remote=True)


def pilot_name(name: str, around: Around) -> str:
    """What Slurm calls the pilot job of Parsl's executor ``name``."""
    return job_prefix(around.run_dir) + name


def _whole_nodes(label: str, name: str, around: Around) -> HighThroughputExecutor:
    """A pool beside the driver whose workers start ranks on nodes of the driver's job."""
    place = around.place(label)
    claims = around.parsl_dir / f"{name}.nodes" / place.job
    allocation = Allocation(place.job, place.names, claims)
    return _htex(name, around, place.count, ChildProvider(allocation=allocation))


def _of_function(name: str, config: ParslConfig, around: Around) -> ParslExecutor:
    """The one executor of the Parsl configuration a function of the user's gives."""
    from executors.values import resolve

    with importable(around.folder):
        answer = resolve(config.function)()
    if not isinstance(answer, Config) or len(answer.executors) != 1:
        raise ValueError(
            f"{config.function}: answered {answer!r:.200}; give a parsl.Config with one executor"
        )
    (executor,) = answer.executors
    executor.label = name
    if isinstance(executor, HighThroughputExecutor):
        executor.interchange_launch_cmd = _alive_with(around.driver, "interchange")
        # Looked up through PATH, as Parsl does it, the pool is found in an activated venv alone.
        pool = shlex.join([sys.executable, "-m", _POOL])
        executor.launch_cmd = re.sub(r"^process_worker_pool\.py", pool, executor.launch_cmd)
    return executor


@contextmanager
def importable(folder: Path | None) -> Iterator[None]:
    """While inside, the modules of a folder can be imported."""
    path = list(sys.path)
    if folder is not None:
        sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = path


def _address(config: SlurmConfig | AllocationConfig | MpiConfig) -> str:
    """Where the nodes reach the driver, found without asking anybody outside."""
    if config.address is not None:
        return config.address
    from parsl.addresses import address_by_hostname, address_by_route

    for find in (address_by_route, address_by_hostname):
        try:
            return str(find())
        except Exception:
            continue
    return LOOPBACK


def _alive_with(driver: int, program: str) -> list[str]:
    """Argv of a program of Parsl's that ends with the driver; 0: with whatever started it.

    As a module of this very interpreter: looked up through PATH, as Parsl does it, the program
    is not found unless the virtual environment happens to be activated.
    """
    script = str(Path(lifeline.__file__).absolute())
    module = f"parsl.executors.high_throughput.{program}"
    return [sys.executable, script, str(driver), module]


def _pool_command(name: str, driver: int) -> str:
    """Parsl's own launch command, with paths relative to the run directory it is started in.

    Parsl formats them in without quotes, and formats the result twice: a space or a brace in
    the path of the run directory would break it.
    """
    start = shlex.join(_alive_with(driver, "process_worker_pool"))
    start = start.replace("{", "{{{{").replace("}", "}}}}")
    return (
        f"{start} {{debug}} {{max_workers_per_node}} -a {{addresses}} "
        "-p {prefetch_capacity} -c {cores_per_worker} -m {mem_per_worker} --poll {poll_period} "
        f"--port={{worker_port}} --cert_dir ./{name}/certificates --logdir=./{name} "
        f"--logconf=./{name}/log_config/log_config.pkl "
        "--block_id={{block_id}} --hb_period={heartbeat_period} "
        "{address_probe_timeout_string} --hb_threshold={heartbeat_threshold} "
        "--drain_period={drain_period} --cpu-affinity {cpu_affinity} {enable_mpi_mode} "
        "--mpi-launcher={mpi_launcher} --available-accelerators {accelerators}"
    )
