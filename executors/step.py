"""The words that start a program's ranks on nodes of a job; pure, and standard library only."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from executors import nodes
from executors.environment import THREAD_LIMITS, task_environment
from executors.holders import Owner
from executors.launch import default_launcher

_LAUNCHERS = ("auto", "srun", "mpiexec", "own")


class Refused(ValueError):
    """Words that ask for something that cannot be."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the words say: ``ranks`` ranks of ``program``, equally many on each of ``nodes``."""

    nodes: int
    ranks: int
    launcher: str = "srun"
    options: tuple[str, ...] = ()
    program: tuple[str, ...] = ()
    probe: bool = False

    @property
    def per_node(self) -> int:
        return self.ranks // self.nodes


def parse(words: Sequence[str]) -> Request:
    """The request in ``words``. Raises :class:`Refused`."""
    end = words.index("--") if "--" in words else len(words)
    given, program = list(words[:end]), tuple(words[end + 1 :])
    probe = given[:1] == ["--probe"]
    del given[:probe]
    pairs = list(zip(given[::2], given[1::2], strict=False))
    values = dict(pairs)
    unknown = values.keys() - {"--nodes", "--ranks", "--launcher", "--option"}
    if len(given) % 2 or unknown or not (probe or program):
        raise Refused(f"cannot read {' '.join(words)!r}; --nodes K --ranks R ... -- PROGRAM")
    count, ranks = _number(values, "--nodes"), _number(values, "--ranks")
    if ranks % count:
        raise Refused(f"{ranks} ranks on {count} nodes: give a multiple of {count}")
    launcher = values.get("--launcher", "srun")
    if launcher not in _LAUNCHERS:
        raise Refused(f"--launcher: {launcher!r}; one of {', '.join(_LAUNCHERS)}")
    options = tuple(value for name, value in pairs if name == "--option")
    return Request(count, ranks, launcher, options, program, probe)


def command(request: Request, job: str, names: Sequence[str]) -> list[str]:
    """What starts the program on the nodes ``names`` of ``job``. Raises :class:`Refused`."""
    joined = ",".join(names)
    if request.launcher == "own":
        hosts = ",".join(f"{name}:{request.per_node}" for name in names)
        return [
            word.replace("{nodelist}", joined).replace("{hostlist}", hosts)
            for word in request.program
        ]
    if request.launcher == "mpiexec":
        beside = default_launcher(request.ranks)
        if beside is None:
            raise Refused("no mpiexec beside this Python; pip install 'simgate[mpi]', or use srun")
        # Left alone, hydra asks ssh to start it elsewhere, since nothing here says it is in a job.
        where = ["-launcher", "slurm", "-ppn", str(request.per_node), "-hosts", joined]
        return [*beside, *where, *request.options, *request.program]
    return [
        "srun",
        f"--jobid={job}",
        f"--job-name={nodes.STEP}",
        f"--nodes={request.nodes}",
        f"--nodelist={joined}",
        f"--ntasks={request.ranks}",
        f"--ntasks-per-node={request.per_node}",
        "--overlap",  # the nodes are ours: never wait for a step that is still being taken down
        "--kill-on-bad-exit=1",
        "--mpi=pmi2",
        "--export=ALL",
        *request.options,
        *request.program,
    ]


def environment(
    outer: Mapping[str, str], request: Request, job: str, names: Sequence[str]
) -> dict[str, str]:
    """What the launcher sees: no step around us, and where one asks, the job as if only ours."""
    inner = dict(outer)
    if "SLURM_JOB_ID" in outer:  # no guard has left out what an outer step said about itself
        threads = {name: outer[name] for name in THREAD_LIMITS if name in outer}
        inner = task_environment(outer) | threads
    inner[nodes.MARK] = Owner.me().mark
    if request.launcher != "srun":
        joined, each = ",".join(names), f"{request.per_node}(x{request.nodes})"
        inner |= {
            "SLURM_JOB_ID": job,
            "SLURM_JOBID": job,
            "SLURM_JOB_NODELIST": joined,
            "SLURM_NODELIST": joined,
            "SLURM_JOB_NUM_NODES": str(request.nodes),
            "SLURM_NNODES": str(request.nodes),
            "SLURM_TASKS_PER_NODE": each,
            "SLURM_OVERLAP": "1",  # for the srun that starts the launcher's daemons
        }
        inner |= _where_daemons_go(inner, names)
    return inner


def _where_daemons_go(env: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """What makes Open MPI start its daemons on our nodes.

    It asks srun for as many as there are nodes besides its own, and names none: in a part of a job
    they would come up on other nodes. Words for srun are a parameter of its launcher.
    """
    here = socket.gethostname().partition(".")[0]
    others = [name for name in names if name != here]
    if not others:
        return {}
    words = f"--nodes={len(others)} --nodelist={','.join(others)}"
    found = {}
    for variable in ("OMPI_MCA_plm_slurm_args", "PRTE_MCA_plm_slurm_args"):
        found[variable] = f"{env.get(variable, '')} {words}".strip()
    return found


def _number(values: Mapping[str, str], name: str) -> int:
    text = values.get(name, "")
    if not text.isdecimal() or int(text) < 1:
        raise Refused(f"{name}: {text!r}; give a whole number from 1")
    return int(text)
