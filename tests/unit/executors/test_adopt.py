"""What a later driver learns from the directory of a try."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from executors import adopt, processes
from executors.base import TaskStatus
from executors.claim import Claim, Outcome


@pytest.fixture
def claim(tmp_path: Path) -> Claim:
    return Claim(str(tmp_path / "deep" / "try-1"), {"x": 1}, {})


def test_a_try_that_never_started_is_not_alive(tmp_path: Path) -> None:
    assert adopt.read_result(tmp_path / "try-1") is None
    assert adopt.try_is_alive(tmp_path / "try-1") is False
    assert adopt.was_started(tmp_path / "try-1") is False


def test_a_try_is_alive_while_its_guard_is_and_has_not_answered(claim: Claim) -> None:
    directory = Path(claim.path)
    assert adopt.try_is_alive(directory) is True
    assert adopt.read_result(directory) is None
    claim.finish(Outcome(TaskStatus.DONE, value=b"1"))
    assert adopt.try_is_alive(directory) is False
    result = adopt.read_result(directory)
    assert result is not None
    assert (result.status, result.value) == (TaskStatus.DONE, 1)


def test_every_field_of_a_result_comes_back(claim: Claim) -> None:
    claim.finish(Outcome(TaskStatus.ERROR, 'said "no"\n', exit_code=-11, log_tail="ü\x00"))
    result = adopt.read_result(Path(claim.path))
    assert result is not None
    assert (result.status, result.value, result.reason) == (TaskStatus.ERROR, None, 'said "no"\n')
    assert (result.exit_code, result.log_tail) == (-11, "ü\x00")
    assert result.host == os.uname().nodename


@pytest.mark.parametrize("change", [{"boot": "another"}, {"start": 1}, {"pid": 2**22 + 1}])
def test_a_process_number_that_means_somebody_else_now_is_not_alive(
    claim: Claim, change: dict[str, Any]
) -> None:
    _rewrite(claim, change)
    assert adopt.try_is_alive(Path(claim.path)) is False


def test_on_another_host_nobody_can_tell(claim: Claim) -> None:
    _rewrite(claim, {"host": "elsewhere"})
    assert adopt.try_is_alive(Path(claim.path)) is None


def test_a_file_caught_while_it_turns_into_the_result_still_names_its_process(
    claim: Claim,
) -> None:
    started = Path(claim.path) / "started.json"
    started.write_bytes(started.read_bytes()[:-1] + b',"status":"do')
    assert adopt.try_is_alive(Path(claim.path)) is True


@pytest.mark.parametrize("text", ["", "{", '{"status":"done"}', "[]", '{"status":"nice"}'])
def test_a_result_that_is_not_whole_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "result.json").write_text(text)
    assert adopt.read_result(tmp_path) is None


def test_making_sure_a_try_ended_kills_it_after_some_patience(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "600"])
    owner = {
        "pid": process.pid,
        "start": processes.start_ticks(process.pid),
        "boot": processes.boot_id(),
        "host": os.uname().nodename,
    }
    (tmp_path / "started.json").write_text(json.dumps({"owner": owner}))
    assert adopt.try_is_alive(tmp_path) is True
    adopt.make_sure_it_ended(tmp_path, patience=0.0)
    assert process.wait(5) == -9
    assert adopt.try_is_alive(tmp_path) is False


def test_a_try_that_was_abandoned_has_ended_without_a_result(claim: Claim) -> None:
    directory = Path(claim.path)
    claim.abandon()
    assert adopt.try_is_alive(directory) is False
    assert adopt.was_started(directory) is True
    assert adopt.read_result(directory) is None
    assert adopt.ran_for(directory) == adopt.abandoned_after(directory)
    assert 0 < adopt.ran_for(directory) < 60


def test_a_try_that_has_a_result_cannot_be_abandoned(claim: Claim) -> None:
    claim.finish(Outcome(TaskStatus.DONE, value=b"1"))
    claim.abandon()
    result = adopt.read_result(Path(claim.path))
    assert result is not None
    assert result.value == 1
    assert adopt.abandoned_after(Path(claim.path)) is None


def test_a_try_elsewhere_is_asked_to_end_and_waited_for(claim: Claim) -> None:
    directory = Path(claim.path)
    _rewrite(claim, {"host": "elsewhere"})

    def obeys() -> None:
        while not claim.cancelled():
            time.sleep(0.01)
        claim.finish(Outcome(TaskStatus.CANCELLED, "cancelled"))

    guard = threading.Thread(target=obeys)
    guard.start()
    adopt.see_ended([directory], patience=0.0)
    assert (directory / "result.json").exists()
    guard.join()


def test_a_try_elsewhere_that_says_nothing_is_not_waited_for_for_ever(claim: Claim) -> None:
    _rewrite(claim, {"host": "elsewhere"})
    began = time.monotonic()
    adopt.see_ended([Path(claim.path)] * 3, patience=0.0, elsewhere=0.3)
    assert 0.3 <= time.monotonic() - began < 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "code", "over"),
    [
        ("JobId=7 JobName=a JobState=CANCELLED Reason=None", 0, True),
        ("JobId=7 JobName=a JobState=COMPLETING Reason=None", 0, False),
        ("JobId=7 JobName=a JobState=NODE_FAIL Reason=None", 0, False),
        ("slurm_load_jobs error: Invalid job id specified", 1, True),
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1, False),
    ],
)
def test_a_try_elsewhere_has_ended_with_its_job(
    claim: Claim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, code: int, over: bool
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    _rewrite(claim, {"host": "elsewhere", "job": "7"})
    began = time.monotonic()
    adopt.see_ended([Path(claim.path)], patience=0.0, elsewhere=3.0)
    assert (time.monotonic() - began < 3.0) is over


def test_a_disk_that_takes_no_result_makes_it_unreadable(claim: Claim) -> None:
    (Path(claim.path) / "result.json").mkdir()
    answer = json.loads(claim.finish(Outcome(TaskStatus.DONE, value=b"1")))
    assert (answer["status"], answer["value"]) == ("unreadable", None)
    assert answer["reason"] == "result.json: Is a directory"


def _rewrite(claim: Claim, change: dict[str, Any]) -> None:
    started = Path(claim.path) / "started.json"
    owner = json.loads(started.read_text())["owner"]
    started.write_text(json.dumps({"owner": {**owner, **change}}))
