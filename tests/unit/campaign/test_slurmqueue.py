"""Of all that waits at Slurm, what is this run's, and why it waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import running
from campaign.drive import creation
from campaign.events import Event, JobEnded, JobStarted, Submitted, Submitting, Withdrawn
from campaign.ledger import Ledger
from campaign.lock import WriterLock
from campaign.slurmjobs import SlurmJobs
from campaign.slurmqueue import QueuedJob, driver_name, is_driver, jobs_of, words
from campaign.status import KILLED, status
from campaign.waiting import GONE
from executors.slurm import SlurmError, job_prefix
from pretend_slurm import PretendSlurm, pretend_slurm


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    return pretend_slurm(tmp_path / "bin", monkeypatch)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def line(job: str, name: str, where: object, state: str = "PENDING", reason: str = "None") -> str:
    return f"{job}|{state}|{reason}|N/A|{name}|{where}\n"


def knows(*jobs: str, name: str = "simgate-0-driver:x") -> SlurmJobs:
    known = SlurmJobs()
    for job in jobs:
        known.submitting(Submitting(name=name, link=1))
        known.submitted(Submitted(job=job))
    return known


def test_jobs_of_the_run_are_told_by_their_name(pretend: PretendSlurm, run_dir: Path) -> None:
    prefix = job_prefix(run_dir)
    pretend.says(
        "squeue",
        line("1", f"{prefix}driver:bowl", run_dir, reason="Priority")
        + line("2", f"{prefix}default.1", run_dir / "parsl" / "job-1", "RUNNING")
        + line("3", "simgate-ffffffff-driver:bowl", run_dir.parent)  # of another run
        + line("4", "an|odd|name", "/tmp")
        + line("5", f"x{prefix}", run_dir),
    )
    found = jobs_of(run_dir, SlurmJobs())
    assert [(job.id, is_driver(job), job.waits) for job in found] == [
        ("1", True, True),
        ("2", False, False),
    ]
    assert found[0].why == "other jobs go first (Priority)"
    assert found[1].why == ""


def test_a_run_that_was_submitted_under_another_path_has_its_jobs(
    pretend: PretendSlurm, run_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "mount").symlink_to(run_dir)
    name = driver_name(tmp_path / "mount", "bowl")
    pilot = name.replace("driver:bowl", "default")
    pretend.says(
        "squeue",
        line("7", name, tmp_path / "mount")
        + line("8", name, "/not/mounted/here")
        + line("9", pilot, tmp_path / "mount"),
    )
    assert [job.id for job in jobs_of(run_dir, knows("7", name=name))] == ["7", "8", "9"]


def test_a_copy_of_a_run_has_none_of_the_originals_jobs(
    pretend: PretendSlurm, run_dir: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    name = driver_name(run_dir, "bowl")
    pretend.says("squeue", line("7", name, run_dir))
    assert jobs_of(copy, knows("7", name=name)) == ()
    assert [job.id for job in jobs_of(run_dir, knows("7", name=name))] == ["7"]


def test_only_the_users_own_jobs_are_asked_for(pretend: PretendSlurm, run_dir: Path) -> None:
    jobs_of(run_dir, SlurmJobs())
    (asked,) = pretend.asked("squeue")
    assert f"--user={os.getuid()}" in asked


def test_a_queue_that_cannot_be_asked_is_an_error_with_slurms_words(
    pretend: PretendSlurm, run_dir: Path
) -> None:
    pretend.says("squeue", error="slurm_load_jobs error: Unable to contact slurm", code=1)
    with pytest.raises(SlurmError, match="Unable to contact slurm"):
        jobs_of(run_dir, SlurmJobs())


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("PartitionDown", "the partition is down"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-4]", "nodes it needs are down, drained"),
        ("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_"
         "partitions", "nodes it needs are down, drained or reserved"),
        ("AssocGrpCPUMinutesLimit", "a limit of its account is reached"),
        ("QOSMaxJobsPerUserLimit", "a limit of its quality of service is reached"),
        ("Some_New_Reason", "Some New Reason"),
    ],
)  # fmt: skip
def test_a_reason_is_told_in_words(reason: str, told: str) -> None:
    assert words(reason).startswith(told)


def test_a_reason_that_is_a_sentence_is_not_told_twice() -> None:
    sentence = "Job's account not known, so it can't use this partition (theirs allows them)"
    assert QueuedJob("1", "x", "PENDING", sentence, "").why == sentence
    assert QueuedJob("1", "x", "PENDING", "", "").why == ""


# ---- what that makes of the run

NAME = "simgate-0-driver:bowl"
QUEUED: tuple[Event, ...] = (Submitting(name=NAME, link=1), Submitted(job="7"))
STARTED = JobStarted(job=1, host="h", pid=1, python="", numpy="", slurm="7")
STOPPED = JobEnded(job=1, outcome="stopped", reason="Slurm job 7 ends at 10:00:00")


def standing(run_dir: Path, *events: Event) -> tuple[str, str]:
    with Ledger(run_dir) as ledger:
        ledger.append(creation(running.config(), run_dir), *events)
    found = status(run_dir)
    return found["state"], found["reason"]


def test_a_run_that_waits_says_why(pretend: PretendSlurm, run_dir: Path) -> None:
    name = driver_name(run_dir, "bowl")
    pretend.says("squeue", line("7", name, run_dir, reason="PartitionDown"))
    why = "the partition is down (PartitionDown)"
    assert standing(run_dir, *QUEUED) == ("queued", f"Slurm job 7: {why}")
    assert status(run_dir)["queued"] == [
        {
            "job": "7",
            "what": "driver",
            "state": "PENDING",
            "reason": "PartitionDown",
            "why": why,
            "start": "",
        }
    ]


def test_a_run_between_two_jobs_of_a_chain_is_queued(pretend: PretendSlurm, run_dir: Path) -> None:
    name = driver_name(run_dir, "bowl")
    pretend.says("squeue", line("8", name, run_dir, "RUNNING"))
    successor = (Submitting(name=NAME, link=2), Submitted(job="8"))
    found = standing(run_dir, *QUEUED, STARTED, *successor, STOPPED)
    assert found == ("queued", "Slurm job 8: it is starting")


def test_a_job_that_left_the_queue_without_a_driver_makes_no_run_wait(
    pretend: PretendSlurm, run_dir: Path
) -> None:
    state, reason = standing(run_dir, *QUEUED)
    assert state == "stopped"
    assert reason.startswith("Slurm job 7 left the queue before its driver started")
    assert status(run_dir)["queued"] == []
    assert pretend.asked("squeue")


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ((QUEUED[0], Submitted(refused="sbatch: no")), "Slurm took no job: sbatch: no"),
        ((*QUEUED, Withdrawn(jobs=["7"], reason="cancelled")), "cancelled"),
        (QUEUED[:1], "a submit was cut short; simgate submit RUN looks for what it left"),
        ((*QUEUED, STARTED, STOPPED), STOPPED.reason),
        ((*QUEUED, STARTED, STOPPED, Withdrawn(jobs=["7"], reason="cancelled")), "cancelled"),
        ((*QUEUED, STARTED, Withdrawn(jobs=["8"], reason="x"), STOPPED), STOPPED.reason),
        ((*QUEUED, STARTED), KILLED),
    ],
)
@pytest.mark.usefixtures("pretend")
def test_a_stopped_run_says_what_happened_last(
    run_dir: Path, events: tuple[Event, ...], reason: str
) -> None:
    assert standing(run_dir, *events) == ("stopped", reason)


def test_a_driver_that_died_with_its_job_does_not_run(pretend: PretendSlurm, run_dir: Path) -> None:
    name = driver_name(run_dir, "bowl")
    standing(run_dir, *QUEUED, STARTED)
    with WriterLock(run_dir):  # as a driver on another host leaves it behind
        pretend.says("squeue", line("7", name, run_dir, "RUNNING"))
        assert status(run_dir)["state"] == "running"
        pretend.says("squeue")
        assert (status(run_dir)["state"], status(run_dir)["reason"]) == ("stopped", GONE)


def test_where_slurm_does_not_say_the_ledger_does(
    pretend: PretendSlurm, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend.says("squeue", error="down", code=1)
    assert standing(run_dir, *QUEUED) == ("queued", "Slurm job 7, says the ledger; squeue: down")
    assert status(run_dir)["queued"] is None
    monkeypatch.setenv("PATH", "/nonexistent")
    assert status(run_dir)["reason"].endswith("there is no squeue here")


def test_a_run_that_has_nothing_to_do_with_slurm_asks_nothing(
    pretend: PretendSlurm, run_dir: Path
) -> None:
    assert standing(run_dir)[0] == "stopped"
    assert status(run_dir)["queued"] == []
    assert pretend.asked("squeue") == []
