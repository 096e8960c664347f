"""Functions every rank of an mpi task calls."""

# ruff: noqa: ARG001 - a task is called with its candidate whether it looks at it or not

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

Candidate = Mapping[str, Any]


def total(candidate: Candidate, *, offset: float = 0.0) -> dict[str, float] | None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    summed = comm.allreduce(candidate["x"] + offset)
    return {"size": comm.size, "total": summed} if comm.rank == 0 else None


def rank_fails(candidate: Candidate) -> None:
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("not my kind of density")
    MPI.COMM_WORLD.barrier()


def hangs(candidate: Candidate) -> None:
    time.sleep(600)


def answers_nonsense(candidate: Candidate) -> dict[str, float]:
    return {"p": float("nan")}
