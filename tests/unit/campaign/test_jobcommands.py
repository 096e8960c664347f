"""submit and cancel as a user meets them; Slurm's programs say what a test wants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from campaign.events import Event, JobEnded, RunCreated, Submitted, Submitting, Withdrawn
from campaign.ledger import Ledger, LedgerError, read
from campaign.slurmqueue import SCRIPT, driver_name
from campaign.state import fold
from campaign.status import status
from folders import folder, simgate
from pretend_slurm import PretendSlurm, pretend_slurm

JOB = {"walltime": "1h", "partition": "batch"}
REFUSED = "sbatch: error: invalid partition specified: batch"


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    monkeypatch.chdir(tmp_path)
    found = pretend_slurm(tmp_path / "bin", monkeypatch)
    found.says("sbatch", "7\n")
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return folder(tmp_path / "campaign", job=JOB)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path / "a run"


def events(run_dir: Path) -> list[Event]:
    return [entry.event for entry in read(run_dir)]


def waits(run_dir: Path, job: str = "7") -> str:
    return f"{job}|PENDING|Priority|N/A|{driver_name(run_dir, 'bowl')}|{run_dir}\n"


# ---- submit


def test_what_is_submitted_is_in_the_ledger_and_beside_it(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 0, result.output
    assert result.output == (
        "Submitted as Slurm job 7.\n"
        f"Its output goes to {run_dir}/slurm.log\n"
        f"Look at it with: simgate status {run_dir}\n"
        f"End it with: simgate cancel {run_dir}\n"
    )
    created, *rest = events(run_dir)
    assert isinstance(created, RunCreated)
    name = driver_name(run_dir, "bowl")
    assert rest == [Submitting(name=name, link=1), Submitted(job="7")]
    assert pretend.asked("sbatch") == [
        f"--test-only --chdir={run_dir}",
        f"--parsable --chdir={run_dir}",
    ]
    printed = simgate("submit", config, "--run-dir", run_dir, "--print").output
    assert (run_dir / SCRIPT).read_text() == printed


def test_a_chain_and_a_changed_key_are_kept(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    words = ("--chain", "--set", "job.walltime=2h", "--run-dir", run_dir)
    assert simgate("submit", config, *words).exit_code == 0
    created, intent, _ = events(run_dir)
    assert isinstance(created, RunCreated)
    assert created.config["job"]["walltime"] == "2h"
    assert isinstance(intent, Submitting)
    assert intent.chain
    assert pretend.asked("sbatch")


def test_printing_creates_nothing_and_needs_no_slurm(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = simgate("submit", config, "--print")
    assert result.exit_code == 0
    assert result.output.startswith("#!/bin/bash\n#SBATCH --job-name=simgate-")
    assert f" resume {tmp_path}/runs/bowl-" in result.output
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("where", ["test", "submit"])
def test_a_refusal_ends_with_slurms_words_and_exit_1(
    pretend: PretendSlurm, config: Path, run_dir: Path, where: str
) -> None:
    said = f'case "$*" in *test-only*) ;; *) echo "{REFUSED}" >&2; exit 1;; esac'
    if where == "test":
        said = f'echo "{REFUSED}" >&2; exit 1'
    (pretend.folder / "sbatch").write_text(f"#!/bin/sh\n{said}\n")
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 1
    assert result.output == f"simgate: sbatch: {REFUSED}\n"
    if where == "test":
        assert not run_dir.exists()
        return
    assert events(run_dir)[-1] == Submitted(refused=f"sbatch: {REFUSED}")
    assert status(run_dir)["state"] == "stopped"
    pretend_slurm_answers(pretend, "8")
    again = simgate("submit", run_dir)
    assert again.exit_code == 0, again.output
    assert events(run_dir)[-1] == Submitted(job="8")


def pretend_slurm_answers(pretend: PretendSlurm, job: str) -> None:
    (pretend.folder / "sbatch").write_text(f"#!/bin/sh\necho {job}\n")


def test_without_slurm_it_says_so(
    config: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 1
    assert "no sbatch and no srun and no scontrol on PATH" in result.output
    assert not run_dir.exists()


def changed(tmp_path: Path, **changes: Any) -> Path:
    return folder(tmp_path / "changed", **changes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "job: missing; say what to ask Slurm for, at least job: {walltime: 1h}"),
        (
            {"job": {"walltime": "80s"}},
            "verifiers[0].walltime: 10s in jobs of 1m20s with a margin of 1m: it could never "
            "start; give job.walltime at least 1m25s",
        ),
        (
            {
                "job": JOB,
                "executors": {
                    "default": {"kind": "allocation", "nodes": 2},
                },
            },
            "job.nodes: executors: 2 nodes for default; the job has 1: node",
        ),
        ({"job": JOB | {"template": "gone.j2"}}, "gone.j2: No such file or directory"),
    ],
)
def test_what_could_never_run_is_refused_before_slurm_is_asked(
    pretend: PretendSlurm, tmp_path: Path, run_dir: Path, changes: dict[str, Any], said: str
) -> None:
    result = simgate("submit", changed(tmp_path, **changes), "--run-dir", run_dir)
    assert result.exit_code == 2
    assert said in result.output
    assert pretend.asked("sbatch") == []
    assert not run_dir.exists()


def test_inspect_says_as_submit_does_what_does_not_fit_into_the_job(
    pretend: PretendSlurm, tmp_path: Path
) -> None:
    config = changed(tmp_path, job={"walltime": "80s"})
    looked, submitted = simgate("inspect", config), simgate("submit", config)
    assert looked.exit_code == submitted.exit_code == 2
    assert looked.output == submitted.output
    assert "verifiers[0].walltime: 10s in jobs of 1m20s" in looked.output
    told = json.loads(simgate("inspect", config, "--json").stdout)
    assert [one["path"] for one in told["problems"]] == [
        "verifiers[0].walltime",
        "simulation.walltime",
    ]
    assert simgate("inspect", changed(tmp_path, job={"walltime": "85s"})).exit_code == 0
    assert pretend.asked("sbatch") == []


def test_a_folder_that_holds_a_run_already_is_not_started_again(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    pretend.says("squeue")
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 2
    assert f"already holds a run; use simgate submit {run_dir}" in result.output


@pytest.mark.parametrize("words", [("--set", "rounds=3"), ("--run-dir", "x")])
def test_a_run_keeps_its_config(
    pretend: PretendSlurm, config: Path, run_dir: Path, words: tuple[str, str]
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    result = simgate("submit", run_dir, *words)
    assert result.exit_code == 2
    assert "a run keeps its config and its place" in result.output
    assert len(pretend.asked("sbatch")) == 2


def test_a_run_has_one_job_at_a_time(pretend: PretendSlurm, config: Path, run_dir: Path) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    pretend.says("squeue", waits(run_dir))
    result = simgate("submit", run_dir)
    assert result.exit_code == 2
    assert "Slurm job 7 (pending) has this run; end it first" in result.output
    assert len(events(run_dir)) == 3


def test_a_run_that_is_done_is_not_submitted(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    with Ledger(run_dir) as ledger:
        ledger.append(JobEnded(job=1, outcome="done", reason="all 2 rounds are done"))
    result = simgate("submit", run_dir)
    assert result.exit_code == 2
    assert "done (all 2 rounds are done); there is nothing to submit" in result.output
    assert len(pretend.asked("sbatch")) == 3  # the test alone


def test_the_job_of_a_submit_that_died_is_found_and_not_submitted_twice(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    class Killed(BaseException):
        pass

    class MortalLedger(Ledger):
        def append(self, *told: Event) -> Any:
            if any(isinstance(one, Submitted) for one in told):
                raise Killed
            return super().append(*told)

    import campaign.submit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(campaign.submit, "Ledger", MortalLedger)
        with pytest.raises(Killed):
            simgate("submit", config, "--run-dir", run_dir)
    assert isinstance(events(run_dir)[-1], Submitting)
    pretend.says("squeue", waits(run_dir, "7"))
    assert status(run_dir)["reason"].startswith("a submit was cut short")
    result = simgate("submit", run_dir)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("Slurm job 7 was left by a submit that was cut short")
    assert events(run_dir)[-1] == Submitted(job="7")
    submitted = [one for one in pretend.asked("sbatch") if "--parsable" in one]
    assert len(submitted) == 1


def test_a_ledger_that_cannot_take_the_job_down_gets_it_cancelled(
    pretend: PretendSlurm, config: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk(Ledger):
        def append(self, *told: Event) -> Any:
            if any(isinstance(one, Submitted) for one in told):
                raise LedgerError("no space left")
            return super().append(*told)

    monkeypatch.setattr("campaign.submit.Ledger", FullDisk)
    result = simgate("submit", config, "--run-dir", run_dir)
    assert (result.exit_code, result.output) == (1, "simgate: no space left\n")
    assert pretend.asked("scancel") == ["7"]


SILENT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


def test_a_controller_that_does_not_say_whether_it_took_the_job_is_asked_next_time(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    said = f'case "$*" in *test-only*) ;; *) echo "{SILENT}" >&2; exit 1;; esac'
    (pretend.folder / "sbatch").write_text(f"#!/bin/sh\n{said}\n")
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 1
    assert "the queue does not say whether it took the job" in result.output
    assert isinstance(events(run_dir)[-1], Submitting)
    pretend.says("squeue", waits(run_dir, "7"))
    assert simgate("submit", run_dir).exit_code == 0
    assert events(run_dir)[-1] == Submitted(job="7")


def test_a_queue_that_cannot_be_asked_leaves_nothing_behind(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    pretend.says("squeue", error="Unable to contact slurm controller", code=1)
    result = simgate("submit", config, "--run-dir", run_dir)
    assert result.exit_code == 1
    assert "Unable to contact slurm controller" in result.output
    assert not run_dir.exists()


# ---- cancel


def test_cancelling_takes_back_what_waits_and_says_so(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    others = "9|RUNNING|None|N/A|somebody-elses|/tmp\n"
    pretend.says("squeue", waits(run_dir) + others)
    # Slurm forgets the job once it is told to.
    (pretend.folder / "scancel").write_text(
        f'#!/bin/sh\necho "$*" >>{pretend.folder}/scancel.asked\n'
        f"printf '%s' '{others}' >{pretend.folder}/squeue.out\n"
    )
    result = simgate("cancel", run_dir)
    assert result.exit_code == 0, result.output
    assert result.output == "cancelled Slurm job 7, the driver, which waited\n"
    assert pretend.asked("scancel") == ["7"]
    assert events(run_dir)[-1] == Withdrawn(jobs=["7"], reason="cancelled by simgate cancel")
    assert status(run_dir)["reason"] == "cancelled by simgate cancel"
    again = simgate("cancel", run_dir)
    assert (again.exit_code, again.output) == (0, f"nothing of {run_dir} runs or waits\n")
    assert pretend.asked("scancel") == ["7"]


def test_a_driver_on_another_host_is_named_and_what_was_ended_is_kept(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    pretend.says("squeue", waits(run_dir))
    (pretend.folder / "scancel").write_text(f"#!/bin/sh\n: >{pretend.folder}/squeue.out\n")
    lock = run_dir / "writer.lock"
    lock.write_text('{"host": "elsewhere", "pid": 5, "started": "1", "boot": "b"}')
    result = simgate("cancel", run_dir)
    assert result.exit_code == 1
    assert "cancelled Slurm job 7" in result.output
    assert "process 5 on host 'elsewhere' drives it; run simgate cancel there" in result.output
    lock.unlink()
    assert simgate("cancel", run_dir).exit_code == 0


def test_cancelling_closes_what_a_submit_left_open(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    with Ledger(run_dir) as ledger:
        ledger.append(Submitting(name=driver_name(run_dir, "bowl"), link=1))
    pretend.says("squeue", waits(run_dir, "8"))
    (pretend.folder / "scancel").write_text(f"#!/bin/sh\n: >{pretend.folder}/squeue.out\n")
    assert simgate("cancel", run_dir).exit_code == 0
    assert fold(read(run_dir)).slurm.open is None
    assert status(run_dir)["state"] == "stopped"


def test_a_slurm_that_does_not_answer_is_told_and_nothing_is_claimed(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    pretend.says("squeue", error="Unable to contact slurm controller", code=1)
    result = simgate("cancel", run_dir)
    assert result.exit_code == 1
    assert "Unable to contact slurm controller" in result.output
    assert len(events(run_dir)) == 3


def test_cancelling_what_is_no_run_is_a_mistake(pretend: PretendSlurm, tmp_path: Path) -> None:
    result = simgate("cancel", tmp_path)
    assert result.exit_code == 2
    assert "holds no run" in result.output
    assert pretend.asked("scancel") == []


def test_a_plain_local_run_is_cancelled_without_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    assert simgate("run", folder(tmp_path / "c"), "--run-dir", run).exit_code == 0
    monkeypatch.setenv("PATH", "/nonexistent")
    result = simgate("cancel", run)
    assert (result.exit_code, result.output) == (0, f"nothing of {run} runs or waits\n")


# ---- status


def test_the_status_tells_a_person_what_waits(
    pretend: PretendSlurm, config: Path, run_dir: Path
) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    pretend.says("squeue", waits(run_dir))
    result = simgate("status", run_dir)
    assert "bowl: queued (Slurm job 7: other jobs go first (Priority))" in result.output
    assert "Waiting in Slurm's queue" in result.output
    found = json.loads(simgate("status", run_dir, "--json").output)
    assert found["queued"][0]["why"] == "other jobs go first (Priority)"
    pretend.says("squeue", error="gone", code=1)
    assert "Slurm does not say what waits: squeue: gone" in simgate("status", run_dir).output


def test_a_reader_writes_nothing(pretend: PretendSlurm, config: Path, run_dir: Path) -> None:
    assert simgate("submit", config, "--run-dir", run_dir).exit_code == 0
    before = {path.name: path.stat().st_mtime_ns for path in run_dir.iterdir()}
    assert simgate("status", run_dir).exit_code == 0
    assert {path.name: path.stat().st_mtime_ns for path in run_dir.iterdir()} == before
    assert pretend.asked("scontrol") == []
