"""What Slurm's commands say, in our words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from executors import slurm
from executors.slurm import Ending

ENDINGS = [
    ("COMPLETED", Ending.COMPLETED),
    ("TIMEOUT", Ending.TIME_LIMIT),
    ("DEADLINE", Ending.TIME_LIMIT),
    ("NODE_FAIL", Ending.NODE_FAILURE),
    ("CANCELLED", Ending.CANCELLED),
    ("PREEMPTED", Ending.PREEMPTED),
    ("OUT_OF_MEMORY", Ending.OUT_OF_MEMORY),
    ("FAILED", Ending.FAILED),
    ("COMPLETING", None),
    ("RUNNING", None),
    ("PENDING", None),
]


def says(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, code: int) -> None:
    """A command of Slurm's that says this, whatever it is asked."""
    program = folder / name
    program.write_text(f"#!/bin/sh\ncat <<'END' >&{2 if code else 1}\n{text}\nEND\nexit {code}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)


@pytest.mark.parametrize(("state", "ending"), ENDINGS)
def test_why_a_job_ended_is_slurms_own_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, ending: Ending | None
) -> None:
    line = f"JobId=7 JobName=a b JobState={state} Reason=None NumNodes=2 ExitCode=0:9"
    says(tmp_path, monkeypatch, "scontrol", line, 0)
    job = slurm.job("7")
    assert job is not None
    assert (job.ending, job.name, job.nodes, job.exit_code) == (ending, "a b", 2, "0:9")
    assert (job.runs, job.waits) == (state == "RUNNING", state == "PENDING")


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: "
        "Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_a_controller_that_is_away_has_refused_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    says(tmp_path, monkeypatch, "sbatch", said, 1)
    with pytest.raises(slurm.NoAnswerError, match="sbatch: error: Batch job submission failed"):
        slurm.submit("#!/bin/sh", folder=str(tmp_path))


def test_a_refusal_is_in_slurms_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "sbatch: error: Batch job submission failed: "
        "Invalid account or account/partition combination specified"
    )
    says(tmp_path, monkeypatch, "sbatch", said, 1)
    with pytest.raises(slurm.SlurmError) as caught:
        slurm.submit("#!/bin/sh", folder=str(tmp_path))
    assert not isinstance(caught.value, slurm.NoAnswerError)
    assert str(caught.value).endswith(said)
