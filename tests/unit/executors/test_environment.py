from __future__ import annotations

import os

import pytest

from executors.environment import THREAD_LIMITS, task_environment


def test_what_an_enclosing_step_says_about_itself_is_left_out() -> None:
    outer = {
        "SLURM_JOB_ID": "7",
        "SLURM_NODELIST": "n[1-4]",
        "PMI_RANK": "0",
        "PMIX_RANK": "0",
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_MCA_ess_base_jobid": "1",
        "PARSL_WORKER_RANK": "1",
        "PBS_NODEFILE": "/x",
        "MPI_LOCALRANKID": "0",
    }
    assert not set(task_environment(outer)) & set(outer)


def test_what_a_user_set_stays() -> None:
    outer = {
        "PATH": "/usr/bin",
        "SLURM_CONF": "/etc/slurm.conf",
        "OMPI_MCA_btl": "self,tcp",
        "HYDRA_LAUNCHER": "fork",
        "LD_LIBRARY_PATH": "/opt/lib",
    }
    inner = task_environment(outer)
    assert {name: inner[name] for name in outer} == outer


def test_a_rank_gets_one_thread_whatever_the_login_shell_says() -> None:
    inner = task_environment({"OMP_NUM_THREADS": "64"})
    assert {inner[name] for name in THREAD_LIMITS} == {"1"}


@pytest.mark.parametrize("uid", [0, 1000])
def test_open_mpi_is_told_that_root_is_meant_only_when_it_is_root(
    uid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in task_environment({})) == (uid == 0)
