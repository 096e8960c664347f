"""The batch script of a pilot job: pure text."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from executors.batchtext import clock, sbatch_word, unexpanded
from executors.config import Pilot

POOL = "simgate-pool"
"""What the names of steps that hold our worker pools begin with."""


@dataclass(frozen=True, slots=True)
class PilotJob:
    """One pilot job: ``command`` starts a worker pool, on every node or on the first alone."""

    name: str
    nodes: int
    asks: Pilot
    command: str
    folder: Path  # where the pool starts
    log: Path
    whole_nodes: bool = False  # one pool that starts ranks on all nodes itself


def script(job: PilotJob) -> str:
    """The script as sbatch takes it."""
    asks = job.asks
    options = {
        "job-name": job.name,
        "nodes": job.nodes,
        "ntasks-per-node": None if job.whole_nodes else 1,
        "time": clock(asks.walltime),
        "partition": asks.partition,
        "account": asks.account,
        "qos": asks.qos,
        "constraint": asks.constraint,
        "mem": asks.memory,
        "gpus-per-node": asks.gpus,
        "output": unexpanded(str(job.log)),
    }
    words = [f"--{name}={value}" for name, value in options.items() if value is not None]
    words += ["--open-mode=append", "--no-requeue", "--no-kill"]
    words += ["--exclusive"] if asks.exclusive else []
    lines = [f"#SBATCH {sbatch_word(word)}" for word in (*words, *asks.scheduler_options)]
    where = shlex.quote(str(Path(sys.executable).parent))
    return "\n".join(
        [
            "#!/bin/bash",
            *lines,
            f"cd {shlex.quote(str(job.folder))} || exit",
            *asks.worker_init,
            f"export PATH={where}:$PATH",
            "unset SLURM_LABELIO",
            *(_whole(job) if job.whole_nodes else _spread(job)),
            "",
        ]
    )


def _spread(job: PilotJob) -> list[str]:
    """A pool on every node; one that is lost takes none of the others along."""
    step = f"--job-name={POOL}-{job.name}"
    return [
        f"exec srun --nodes={job.nodes} --ntasks={job.nodes} --ntasks-per-node=1 --overlap "
        f"--no-kill --kill-on-bad-exit=0 --export=ALL {shlex.quote(step)} {job.command}"
    ]


def _whole(job: PilotJob) -> list[str]:
    """A pool on the first node, told which nodes it may start ranks on."""
    return [
        "export SIMGATE_JOB=$SLURM_JOB_ID",
        'SIMGATE_NODES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -s -d , -)',
        "export SIMGATE_NODES",
        "SIMGATE_NODE_CLAIMS=$(mktemp -d) || exit",
        "export SIMGATE_NODE_CLAIMS",
        f"exec {job.command}",
    ]
