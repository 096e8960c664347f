"""The batch script of a pilot job, as text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from executors.allocation import Place, share
from executors.config import AllocationConfig, MpiConfig, Pilot, capacity, too_long
from executors.pilot import PilotJob, script
from executors.slurm import fields, job_prefix

BIN = Path(sys.executable).parent


def job(**asks: object) -> PilotJob:
    return PilotJob(
        name="simgate-1-default",
        nodes=2,
        asks=Pilot.model_validate({"walltime": "1h30m"} | asks),
        command="python pool --x",
        folder=Path("/run dir/000"),
        log=Path("/run dir/pilot.log"),
    )


def test_the_script_asks_for_what_the_pilot_is() -> None:
    text = script(
        job(partition="batch", account="abc", memory="16G", worker_init=["module load x"])
    )
    assert text == "\n".join([
        "#!/bin/bash",
        "#SBATCH --job-name=simgate-1-default",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --time=01:30:00",
        "#SBATCH --partition=batch",
        "#SBATCH --account=abc",
        "#SBATCH --mem=16G",
        '#SBATCH "--output=/run dir/pilot.log"',
        "#SBATCH --open-mode=append",
        "#SBATCH --no-requeue",
        "#SBATCH --no-kill",
        "#SBATCH --exclusive",
        "cd '/run dir/000' || exit",
        "module load x",
        f"export PATH={BIN}:$PATH",
        "unset SLURM_LABELIO",
        "exec srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --overlap --no-kill "
        "--kill-on-bad-exit=0 --export=ALL --job-name=simgate-pool-simgate-1-default "
        "python pool --x",
        "",
    ])  # fmt: skip


def test_options_of_a_site_come_last() -> None:
    text = script(job(exclusive=False, scheduler_options=["--reservation=now", "-w a b"]))
    assert "--exclusive" not in text
    assert text.index("--no-kill") < text.index("#SBATCH --reservation=now")
    assert '#SBATCH "-w a b"' in text


def test_days_are_written_as_slurm_does() -> None:
    assert "#SBATCH --time=2-03:04:05" in script(job(walltime="2-03:04:05"))


def test_a_task_has_to_fit_into_its_pilot() -> None:
    asks = Pilot.model_validate({"walltime": "5m"})
    assert too_long(200.0, asks) == ""
    assert "give those at least 305 s" in too_long(240.0, asks)


ALLOCATION = AllocationConfig(kind="allocation", workers_per_node=3)
MPI = MpiConfig(kind="mpi")


def test_one_executor_has_all_nodes_of_the_job() -> None:
    assert share({"a": ALLOCATION}, ["n1", "n2"]) == {"a": ("n1", "n2")}


def test_two_executors_share_no_node() -> None:
    two, one = ALLOCATION.model_copy(update={"nodes": 2}), MPI.model_copy(update={"nodes": 1})
    found = share({"a": two, "b": one}, ["n1", "n2", "n3", "n4"])
    assert found == {"a": ("n1", "n2"), "b": ("n3",)}


def test_executors_that_share_a_job_say_how_many_nodes_are_theirs() -> None:
    with pytest.raises(ValueError, match="executor 'b' shares the job's nodes with others"):
        share({"a": ALLOCATION.model_copy(update={"nodes": 1}), "b": MPI}, ["n1", "n2"])
    wide = MPI.model_copy(update={"nodes": 2})
    with pytest.raises(ValueError, match="executors: 3 nodes for a, b; the job has 2: n1, n2"):
        share({"a": ALLOCATION.model_copy(update={"nodes": 1}), "b": wide}, ["n1", "n2"])


def test_what_runs_at_once_follows_from_the_nodes() -> None:
    assert capacity(ALLOCATION, Place(4).count) == 12
    assert capacity(MPI, Place(4).count) == 4


def test_a_run_is_known_by_the_names_of_its_jobs(tmp_path: Path) -> None:
    assert job_prefix(tmp_path / "a") == job_prefix(tmp_path / "a")
    assert job_prefix(tmp_path / "a") != job_prefix(tmp_path / "b")


def test_slurms_pairs_may_hold_spaces() -> None:
    told = fields("JobId=7 JobName=a b JobState=PENDING Reason=Nodes_required_for_job Dependency=")
    assert told["JobName"] == "a b"
    assert (told["JobState"], told["Dependency"]) == ("PENDING", "")
