"""Configuration -> Parsl configuration: pure, nothing is started here.

A further kind of executor is one more branch of :func:`parsl_executor`.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from parsl import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.executors.base import ParslExecutor

from executors import lifeline
from executors.config import ExecutorConfig, LocalConfig, ThreadsConfig
from executors.parsl_log import WarningsLog
from executors.provider import ChildProvider

HEARTBEAT_PERIOD = 1
"""Seconds until a worker that died is noticed; Parsl's own 30 suit thousands of nodes."""
HEARTBEAT_THRESHOLD = 20
"""Seconds after which a pool that fell silent counts as lost; one that died is seen at once."""
LOOPBACK = "127.0.0.1"


def parsl_config(configs: Mapping[str, ExecutorConfig], run_dir: Path, driver: int) -> Config:
    """Everything about a run's DataFlowKernel.

    ``run_dir`` is Parsl's own; ``driver`` the process whose end ends everything. No retries, no
    memoization (the ledger knows both), no scaling, no usage report; its log, and those of its
    programs, hold warnings only: by default they cost more than the dispatch they record.
    """
    return Config(
        executors=[
            parsl_executor(parsl_label(label), config, driver) for label, config in configs.items()
        ],
        run_dir=str(run_dir),
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


def parsl_executor(label: str, config: ExecutorConfig, driver: int) -> ParslExecutor:
    """The executor of one config, its files in the folder ``label`` of Parsl's run directory."""
    match config:
        case ThreadsConfig(workers=workers):
            return ThreadPoolExecutor(label=label, max_threads=workers)
        case LocalConfig(workers=workers):
            return _local(label, workers, driver)


def _local(label: str, workers: int, driver: int) -> HighThroughputExecutor:
    return HighThroughputExecutor(
        label=label,
        provider=ChildProvider(),
        # Without an address Parsl asks a server on the internet for ours.
        address=LOOPBACK,
        loopback_address=LOOPBACK,
        encrypted=True,
        max_workers_per_node=workers,
        cores_per_worker=0.001,  # the pool starts no more workers than cores / this
        heartbeat_period=HEARTBEAT_PERIOD,
        heartbeat_threshold=HEARTBEAT_THRESHOLD,
        prefetch_capacity=0,
        interchange_launch_cmd=_alive_with(driver, "interchange"),
        launch_cmd=_pool_command(label, driver),
        # Blocks are watched by us, who also know what to do about one that ended.
        block_error_handler=False,
    )


def _alive_with(driver: int, program: str) -> list[str]:
    """Argv of a program of Parsl's that ends with the driver.

    As a module of this very interpreter: looked up through PATH, as Parsl does it, the program
    is not found unless the virtual environment happens to be activated.
    """
    script = str(Path(lifeline.__file__).absolute())
    module = f"parsl.executors.high_throughput.{program}"
    return [sys.executable, script, str(driver), module]


def _pool_command(label: str, driver: int) -> str:
    """Parsl's own launch command, with paths relative to the run directory it is started in.

    Parsl formats them in without quotes, and formats the result twice: a space or a brace in
    the path of the run directory would break it.
    """
    start = shlex.join(_alive_with(driver, "process_worker_pool"))
    start = start.replace("{", "{{{{").replace("}", "}}}}")
    return (
        f"{start} {{debug}} {{max_workers_per_node}} -a {{addresses}} "
        "-p {prefetch_capacity} -c {cores_per_worker} -m {mem_per_worker} --poll {poll_period} "
        f"--port={{worker_port}} --cert_dir ./{label}/certificates --logdir=./{label} "
        f"--logconf=./{label}/log_config/log_config.pkl "
        "--block_id={{block_id}} --hb_period={heartbeat_period} "
        "{address_probe_timeout_string} --hb_threshold={heartbeat_threshold} "
        "--drain_period={drain_period} --cpu-affinity {cpu_affinity} {enable_mpi_mode} "
        "--mpi-launcher={mpi_launcher} --available-accelerators {accelerators}"
    )
