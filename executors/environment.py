"""The environment a task's process sees. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping

THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
"""1 unless the task sets them: a worker stands for one rank, and libraries read these once."""

# What an enclosing launcher or batch step says about *itself*. An inner mpiexec or srun that reads
# it believes to be part of that step: it hangs, dies, or goes to other nodes than this one.
# Settings a user makes (OMPI_MCA_btl, HYDRA_..., UCX_...) are not among them.
_INHERITED = (
    "PARSL_",
    "PMI_",
    "PMI2_",
    "PMIX_",
    "MPI_LOCAL",
    "HYDI_",
    "OMPI_COMM_WORLD_",
    "OMPI_UNIVERSE_SIZE",
    "OMPI_MCA_ess",
    "OMPI_MCA_orte_",
    "OMPI_MCA_pmix",
    "OMPI_APP_CTX",
    "OMPI_NUM_APP_CTX",
    "OMPI_FIRST_RANKS",
    "OMPI_COMMAND",
    "OMPI_ARGV",
    "OMPI_FILE_LOCATION",
    "SLURM_",
    "SLURMD_",
    "SBATCH_",
    "SRUN_",
    "PBS_",
)
_KEPT = ("SLURM_CONF",)


def task_environment(outer: Mapping[str, str]) -> dict[str, str]:
    """``outer`` without what an enclosing step left in it, with our defaults.

    One thread per rank; and since Open MPI refuses to start as root unless told twice, it is told
    when we are root (containers, CI): the worker already runs as root, nothing is gained by asking.
    """
    inner = {
        name: value
        for name, value in outer.items()
        if name in _KEPT or not name.startswith(_INHERITED)
    }
    inner.update(dict.fromkeys(THREAD_LIMITS, "1"))
    if os.geteuid() == 0:
        inner.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
        inner.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    return inner
