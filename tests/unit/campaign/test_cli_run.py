"""Whole runs by the command line, as processes and on real executors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.drive import creation
from campaign.events import Entry, JobEnded, RunCreated
from campaign.ledger import NAME, Ledger, read
from campaign.status import status
from folders import SLOW, argv, folder, interrupted, process, simgate


def last(run_dir: Path) -> JobEnded:
    event = read(run_dir)[-1].event
    assert isinstance(event, JobEnded)
    return event


@pytest.mark.slow
def test_init_then_run_ends_with_a_result(tmp_path: Path) -> None:
    made = simgate("init", tmp_path / "c")
    assert made.exit_code == 0
    ran = process("run", tmp_path / "c", "--set", "rounds=2", cwd=tmp_path)
    assert ran.returncode in (0, 1), ran.stderr
    assert ran.stderr == ""
    assert "Result: distance = " in ran.stdout
    assert "Slots by disposition" in ran.stdout
    (run_dir,) = (tmp_path / "runs").iterdir()
    assert run_dir.name.startswith("throw-")
    assert ran.stdout.splitlines()[-1] == f"Everything is in {run_dir}"


def test_a_run_without_an_agent_asks_the_surrogate(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", agent={"kind": "replay", "file": "gone.yaml"})
    run_dir = tmp_path / "r"
    assert simgate("run", campaign, "--run-dir", run_dir).exit_code == 2
    ran = simgate("run", campaign, "--run-dir", run_dir, "--surrogate-only", "--set", "rounds=1")
    assert ran.exit_code == 0, ran.output
    found = status(run_dir)
    assert (found["mode"], found["state"], found["rounds_max"]) == ("surrogate_only", "done", 1)
    said = ran.stdout.splitlines()
    assert any("r1 g1 asks for 2 candidates: s0 s1" in line for line in said)


@pytest.mark.slow
def test_a_local_pool_runs_a_campaign_too(tmp_path: Path) -> None:
    executors = {"default": {"kind": "local", "workers": 1}}
    campaign = folder(tmp_path / "c", rounds=1, executors=executors)
    ran = process("run", campaign, "--run-dir", tmp_path / "r")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert status(tmp_path / "r")["dispositions"]["tombstone"] == 0


FAILS = (
    "def stable(c):\n    return {'verdict': 'pass'}\ndef bowl(c):\n    raise RuntimeError('no')\n"
)


def test_a_campaign_without_any_result_ends_with_one(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=1)
    (campaign / "model.py").write_text(FAILS)
    ran = simgate("run", campaign, "--run-dir", tmp_path / "r")
    assert ran.exit_code == 1, ran.output
    assert "no simulation succeeded" in ran.stdout
    assert "FAILED, error: RuntimeError: no" in ran.stdout
    assert status(tmp_path / "r")["state"] == "failed"


@pytest.mark.slow
def test_a_signal_stops_a_run_that_resume_goes_on_with(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=1, stop_grace="1s")
    (campaign / "model.py").write_text(SLOW)
    run_dir = tmp_path / "r"
    code, said = interrupted("run", campaign, "--run-dir", run_dir, by=signal.SIGTERM)
    assert code == 75
    assert said.splitlines()[-1] == f"Go on with: simgate resume {run_dir}"
    assert status(run_dir)["state"] == "stopped"
    (campaign / "model.py").write_text(SLOW.replace("time.sleep(60)", "return {'verdict': 'pass'}"))
    again = simgate("resume", run_dir)
    assert again.exit_code == 0, again.output
    assert status(run_dir)["dispositions"]["accepted"] == 2


def test_a_cap_per_job_ends_the_job_with_75(tmp_path: Path) -> None:
    campaign = folder(
        tmp_path / "c",
        verifiers=[],
        budgets={"node_hours": {"limit": 0.00417, "per": "job"}},
        rounds=1,
        batch_size=1,
    )
    (campaign / "model.py").write_text(
        "import time\ndef bowl(c):\n    time.sleep(.1)\n    return 1\n"
    )
    ran = simgate(
        "run", campaign, "--run-dir", tmp_path / "r", "--set", "simulation.retry_on=[unreadable]",
        "--set", "simulation.retries=3",
    )  # fmt: skip
    assert ran.exit_code == 75, ran.output
    assert "budgets.node_hours: " in ran.stdout


def write_run(run_dir: Path, campaign: Path) -> None:
    from campaign.configfile import load_config

    run_dir.mkdir()
    with Ledger(run_dir) as ledger:
        ledger.append(creation(load_config(campaign).config, campaign, surrogate_only=True))


BROKEN = """
import sys
from pathlib import Path
import campaign.drive
from campaign.cli import main


async def breaks(campaign):
    import asyncio

    async with asyncio.TaskGroup() as group:
        group.create_task(inner())


async def inner():
    {what}

campaign.drive.run_campaign = breaks
main(["resume", sys.argv[1]])
"""


def broken(run_dir: Path, what: str) -> subprocess.CompletedProcess[str]:
    """Resume a run whose loop does ``what`` inside a task group."""
    program = [sys.executable, "-c", BROKEN.replace("{what}", what), str(run_dir)]
    return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_an_unexpected_exception_of_the_driver_is_one_line_and_the_ledger_is_whole(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "r", folder(tmp_path / "c"))
    ran = broken(tmp_path / "r", "raise ZeroDivisionError('of the loop\\n itself')")
    assert ran.returncode == 1
    details = tmp_path / "r" / "crash.txt"
    assert ran.stderr == (
        f"simgate: internal error: ZeroDivisionError: of the loop itself; details in {details}\n"
    )
    assert "Traceback" not in ran.stdout
    assert "ZeroDivisionError: of the loop" in details.read_text()
    assert last(tmp_path / "r").outcome == "failed"
    assert last(tmp_path / "r").reason.startswith("ZeroDivisionError: of the loop")
    assert status(tmp_path / "r")["state"] == "failed"
    assert simgate("resume", tmp_path / "r").exit_code == 0  # a failed run is gone on with


@pytest.mark.slow
def test_a_named_error_inside_a_task_group_keeps_its_name(tmp_path: Path) -> None:
    write_run(tmp_path / "r", folder(tmp_path / "c"))
    what = "from campaign.ledger import LedgerError; raise LedgerError('disk full')"
    ran = broken(tmp_path / "r", what)
    assert (ran.returncode, ran.stderr) == (1, "simgate: disk full\n")
    assert not (tmp_path / "r" / "crash.txt").exists()


@pytest.mark.slow
def test_a_ledger_that_can_no_longer_be_written_ends_the_run_by_name(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=50)
    (campaign / "model.py").write_text(
        (campaign / "model.py")
        .read_text()
        .replace(
            "def bowl(candidate):",
            "def bowl(candidate):\n"
            "    import os, pathlib\n"
            "    for lock in pathlib.Path(os.environ['SIMGATE_TASK_DIR']).parents[2].glob('w*'):\n"
            "        lock.unlink()",
        )
    )
    ran = process("run", campaign, "--run-dir", tmp_path / "r")
    assert ran.returncode == 1
    said = f"simgate: {tmp_path / 'r' / NAME}: no longer ours; another driver took this run over\n"
    assert ran.stderr == said
    entries: list[Entry] = read(tmp_path / "r")
    assert isinstance(entries[0].event, RunCreated)


def test_an_executor_that_cannot_start_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "r", folder(tmp_path / "c"))
    (tmp_path / "r" / "parsl").write_text("in the way")
    ran = simgate("resume", tmp_path / "r")
    assert ran.exit_code == 1
    assert "executors: " in last(tmp_path / "r").reason
    assert "Traceback" not in ran.output


@pytest.mark.slow
def test_nobody_reading_the_output_is_no_reason_to_end(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=1)
    words = argv("run", campaign, "--run-dir", tmp_path / "r")
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert ran.returncode == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert json.loads(json.dumps(status(tmp_path / "r")))["state"] == "done"
