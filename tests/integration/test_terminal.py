"""Runs on real terminals: the live view of a run, and that of a run in another process."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from folders import argv
from terminal import PATIENCE, Terminal, terminal

pytestmark = pytest.mark.slow

CAMPAIGN = """
version: 1
name: plates
parameters:
  x: {type: float, min: 0.0, max: 1.0}
objective: {name: loss, direction: minimize}
rounds: 2
batch_size: 2
agent: surrogate
simulation: {kind: python, function: "plates:simulate", walltime: 5m}
budgets: {node_hours: 10}
executors: {default: {kind: threads, workers: 2}}
"""

TASKS = """
import os, pathlib, signal

FOLDER = pathlib.Path(__file__).parent

def simulate(candidate):
    if not (FOLDER / "go").exists():
        (FOLDER / "running").write_text("one more\\n")  # fifos that the test holds open
        gate = os.open(FOLDER / "gate", os.O_RDONLY)
        os.read(gate, 1)
        os.close(gate)
    return {"loss": candidate["x"]}
"""


class Stage:
    """A campaign whose first two simulations have begun when ``begun`` returns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "campaign.yaml").write_text(CAMPAIGN)
        (folder / "plates.py").write_text(TASKS)
        for name in ("running", "gate"):
            os.mkfifo(folder / name)
        self._running, self._gate = (
            os.open(folder / name, os.O_RDWR) for name in ("running", "gate")
        )

    def begun(self) -> None:
        said = b""
        while said.count(b"\n") < 2:
            ready, _, _ = select.select([self._running], [], [], PATIENCE)
            assert ready, "the tasks have not begun"
            said += os.read(self._running, 100)

    def let_go(self) -> None:
        (self.folder / "go").touch()
        os.write(self._gate, b"\n\n")

    def close(self) -> None:
        for fd in (self._running, self._gate):
            os.close(fd)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = Stage(tmp_path / "campaign")
    yield found
    found.close()


def busy(rows: list[str]) -> bool:
    """Whether the picture of the run with its two simulations is there."""
    return any("2 of 2 workers busy" in row for row in rows)


def is_one_picture(shown: Terminal) -> None:
    """On the screen is one picture, and nothing that was left of an earlier one."""
    rows = shown.screen()
    heads = [place for place, row in enumerate(rows) if row.startswith("plates · round")]
    assert len(heads) == 1, rows
    assert all(len(row) <= shown.width for row in rows)
    lines = [row for row in rows[heads[0] :] if row]
    assert lines[1].startswith("job 1 on ")
    assert sum("node_hours" in row for row in rows) == 1


@pytest.mark.parametrize(("width", "height"), [(60, 20), (100, 30)])
def test_a_run_and_one_who_watches_it_see_the_same_on_their_terminals(
    stage: Stage, tmp_path: Path, width: int, height: int
) -> None:
    run = tmp_path / "run"
    command = argv("run", stage.folder, "--run-dir", run)
    with terminal(command, width, height) as driver:
        stage.begun()
        driver.wait_for(busy)
        with terminal(argv("watch", run), width, height) as watcher:
            watcher.wait_for(busy)
            for shown in (driver, watcher):
                is_one_picture(shown)
                assert "\x1b[?25l" in shown.written, "the cursor is hidden"
            once = subprocess.run(
                argv("watch", run, "--once"), capture_output=True, text=True, timeout=PATIENCE
            )
            assert once.returncode == 0
            assert "2 of 2 workers busy" in once.stdout
            stage.let_go()
            assert driver.ends() == 0
            assert watcher.ends() == 0
    for shown in (driver, watcher):
        assert shown.written.count("\x1b[?25h") == shown.written.count("\x1b[?25l")
        rows = shown.screen()
        assert not any("workers busy" in row for row in rows), "the picture is gone"
        assert "Result: " in shown.written
        assert "plates: done" in shown.written


def test_ctrl_c_ends_the_watch_and_not_the_run(stage: Stage, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = argv("run", stage.folder, "--run-dir", run)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        stage.begun()
        with terminal(argv("watch", run), 80, 24) as watcher:
            watcher.wait_for(busy)
            watcher.press(b"\x03")
            assert watcher.ends() == 130
            assert "\x1b[?25h" in watcher.written, "the cursor is back"
            assert "Traceback" not in watcher.written
        with terminal(argv("watch", run), 80, 24) as watcher:
            watcher.wait_for(busy)
            watcher.process.send_signal(signal.SIGTERM)
            assert watcher.ends() == 143
            assert "\x1b[?25h" in watcher.written
        stage.let_go()
        said, _ = driver.communicate(timeout=PATIENCE)
        assert driver.returncode == 0
        assert "r2 ended" in said


def test_watch_waits_for_a_run_in_a_pipe_and_tells_every_line_of_it(
    stage: Stage, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    stage.let_go()
    with subprocess.Popen(
        argv("watch", run), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watcher:
        assert watcher.stderr is not None
        assert watcher.stderr.readline() == (
            f"simgate: {run}: holds no run yet; waiting for its ledger.jsonl\n"
        )
        driver = subprocess.run(
            argv("run", stage.folder, "--run-dir", run),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said, errors = watcher.communicate(timeout=PATIENCE)
    assert (driver.returncode, watcher.returncode, errors) == (0, 0, "")
    assert said == driver.stdout


def test_a_dumb_terminal_gets_lines(stage: Stage, tmp_path: Path) -> None:
    stage.let_go()
    command = argv("run", stage.folder, "--run-dir", tmp_path / "run")
    with terminal(command, 80, 24, TERM="dumb") as shown:
        assert shown.ends() == 0
    assert "r1 g1 asks for 2 candidates: s0 s1" in shown.written
    assert "\x1b[" not in shown.written


def test_a_terminal_without_unicode_gets_a_picture_all_the_same(
    stage: Stage, tmp_path: Path
) -> None:
    command = argv("run", stage.folder, "--run-dir", tmp_path / "run")
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    with terminal(command, 80, 24, **plain) as shown:
        stage.begun()
        rows = shown.wait_for(busy)
        assert any(row.startswith("plates | round 1 of 2") for row in rows)
        stage.let_go()
        assert shown.ends() == 0
    assert "UnicodeEncodeError" not in shown.written
    assert shown.written.isascii()
