"""Signals: the run stops politely, says how to go on, and leaves nothing running."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

import otlp
from campaign.events import JobEnded, Signalled, TaskEnded
from campaign.ledger import read
from campaign.status import status
from folders import argv

pytestmark = pytest.mark.slow

CAMPAIGN = """
version: 1
name: waiting
parameters:
  x: {type: float, min: 0.0, max: 1.0}
objective: {name: loss, direction: minimize}
rounds: 1
batch_size: 2
agent: surrogate
simulation:
  kind: python
  function: "waiting:simulate"
  walltime: 5m
  env: {WAITING_TEST: "{campaign_dir}"}
executors: {default: {kind: KIND, workers: 2}}
"""

TASKS = """
import pathlib, signal, sys

FOLDER = pathlib.Path(__file__).parent

def simulate(candidate):
    if (FOLDER / "go").exists():
        return {"loss": candidate["x"]}
    (FOLDER / "running").write_text("one more\\n")  # a fifo that the test holds open
    signal.pause()
"""


@dataclass
class Driver:
    """A real ``simgate run`` whose two simulations have begun and wait."""

    process: subprocess.Popen[str]
    run_dir: Path
    folder: Path

    def ends(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode


def wait_until_two_run(folder: Path) -> None:
    fifo = os.open(folder / "running", os.O_RDWR)
    try:
        said = b""
        while said.count(b"\n") < 2:
            ready, _, _ = select.select([fifo], [], [], 60)
            assert ready, "the tasks have not begun"
            said += os.read(fifo, 100)
    finally:
        os.close(fifo)


@pytest.fixture(params=["threads", "local"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    folder = tmp_path / "campaign"
    folder.mkdir()
    (folder / "campaign.yaml").write_text(CAMPAIGN.replace("KIND", request.param))
    (folder / "waiting.py").write_text(TASKS)
    os.mkfifo(folder / "running")
    command = argv("run", str(folder), "--run-dir", str(tmp_path / "run"), "--set", "stop_grace=1s")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until_two_run(folder)
        yield Driver(process, tmp_path / "run", folder)
        process.kill()
    left = [one for one in psutil.process_iter(["environ"]) if _ours(one, folder)]
    psutil.wait_procs(left, timeout=60)
    assert not [one for one in left if one.is_running()]


def _ours(process: psutil.Process, folder: Path) -> bool:
    environ = process.info["environ"] or {}
    return environ.get("WAITING_TEST") == str(folder)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_ends_the_run_resumable_with_everything_settled(
    driver: Driver, number: signal.Signals
) -> None:
    driver.process.send_signal(number)
    assert driver.ends() == 75
    entries = read(driver.run_dir)
    last = entries[-1].event
    assert isinstance(last, JobEnded)
    assert (last.outcome, last.reason) == ("stopped", f"{number.name} received")
    (said,) = [one.event for one in entries if isinstance(one.event, Signalled)]
    assert (said.signal, said.grace) == (number.name, 1.0)
    ended = [one.event for one in entries if isinstance(one.event, TaskEnded)]
    assert [one.status for one in ended] == ["cancelled"] * 2
    assert all(one.spent > 0 for one in ended)  # what ran was paid for
    found = status(driver.run_dir)
    assert found["state"] == "stopped"
    assert found["budgets"]["node_hours"]["reserved"] == 0
    tree = otlp.tree(driver.run_dir)
    (root,) = tree.roots
    assert tree.orphans == []
    assert otlp.attributes(root.attributes)["simgate.job.outcome"] == "stopped"
    assert len(tree.named("simulate")) == len(tree.named("worker simulation")) == 2


def test_a_stopped_run_is_gone_on_with(driver: Driver) -> None:
    driver.process.send_signal(signal.SIGTERM)
    assert driver.ends() == 75
    (driver.folder / "go").touch()
    resumed = subprocess.run(
        argv("resume", str(driver.run_dir)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    found = status(driver.run_dir)
    assert (found["state"], found["dispositions"]["accepted"]) == ("done", 2)


def test_a_second_signal_does_not_wait_for_the_grace(driver: Driver) -> None:
    # With a grace of an hour only the second signal can end the run in time.
    driver.process.kill()
    driver.process.communicate(timeout=60)
    command = argv("resume", str(driver.run_dir))
    ledger = driver.run_dir / "ledger.jsonl"
    first, _, rest = ledger.read_text().partition("\n")
    created = json.loads(first)
    created["event"]["config"]["stop_grace"] = "1h"
    ledger.write_text(json.dumps(created) + "\n" + rest)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until_two_run(driver.folder)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=60)
    assert process.returncode == 75
