"""The command line: what it prints, what it exits with, and that nobody ever sees a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import Result

import running
from campaign.ledger import NAME, Ledger, read
from folders import folder, process, simgate

MISSING = ("parsl", "numpy", "scipy", "matplotlib", "pandas")


def refused(found: Result, code: int, *parts: str) -> str:
    """The message of a command that ended with ``code``, and not by an exception."""
    assert found.exit_code == code, found.output
    assert found.exception is None or isinstance(found.exception, SystemExit)
    assert "Traceback" not in found.output
    for part in parts:
        assert part in found.output
    return found.output


@pytest.fixture
def done(tmp_path: Path) -> Path:
    """The directory of a run that is done."""
    directory = tmp_path / "run"
    directory.mkdir()
    running.run(directory, running.config(rounds=1))
    return directory


def test_a_campaign_that_is_not_there_is_named(tmp_path: Path) -> None:
    for command in ("run", "inspect"):
        refused(simgate(command, tmp_path / "none.yaml"), 2, "none.yaml", "no such file")
        refused(simgate(command, tmp_path), 2, "no campaign.yaml in this folder")


def test_every_problem_of_a_campaign_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    folder(tmp_path / "c", rounds=0, batch_size="many")
    found = simgate("run", tmp_path / "c", "--run-dir", tmp_path / "r")
    refused(found, 2, "2 problems", "rounds", "batch_size")
    assert not (tmp_path / "r").exists()


def test_what_preflight_finds_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    folder(tmp_path / "c", simulation={"kind": "python", "function": "m:f", "walltime": "1s"})
    found = simgate("run", tmp_path / "c", "--run-dir", tmp_path / "r")
    refused(found, 2, "simulation.function", "No module named 'm'")
    assert not (tmp_path / "r").exists()


def test_run_refuses_a_directory_that_holds_a_run(tmp_path: Path, done: Path) -> None:
    before = (done / NAME).read_bytes()
    found = simgate("run", folder(tmp_path / "c"), "--run-dir", done)
    refused(found, 2, f"simgate resume {done}")
    assert (done / NAME).read_bytes() == before


def test_run_refuses_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = simgate("run", folder(tmp_path / "c"), "--run-dir", tmp_path / "file" / "r")
    refused(found, 2, "cannot be made: Not a directory")


@pytest.mark.parametrize("command", ["resume", "status"])
def test_a_directory_without_a_run_is_refused(tmp_path: Path, command: str) -> None:
    refused(simgate(command, tmp_path), 2, f"simgate: {tmp_path}: holds no run")
    refused(simgate(command, tmp_path / "none"), 2, "holds no run")


@pytest.mark.parametrize("command", ["resume", "status"])
def test_a_broken_ledger_is_named_by_its_line(done: Path, command: str) -> None:
    lines = (done / NAME).read_bytes().split(b"\n")
    (done / NAME).write_bytes(b"\n".join([*lines[:2], b"{", *lines[3:]]))
    refused(simgate(command, done), 1, "line 3 does not read")


@pytest.mark.parametrize("command", ["resume", "status"])
def test_a_ledger_without_a_whole_line_is_empty(done: Path, command: str) -> None:
    (done / NAME).write_bytes(b'{"n":1')
    refused(simgate(command, done), 1, "the ledger is empty")


def test_a_run_that_another_driver_writes_is_refused_by_its_name(done: Path) -> None:
    with Ledger(done):
        refused(simgate("resume", done), 2, "written by process ", " on host ")
        assert simgate("status", done).exit_code == 0


def test_resuming_what_is_done_says_so_and_adds_nothing(done: Path) -> None:
    before = (done / NAME).read_bytes()
    found = simgate("resume", done)
    assert found.exit_code == 0
    assert "bowl: done (all 1 rounds are done)" in found.output
    assert (done / NAME).read_bytes() == before


def test_status_is_for_people_or_for_programs(done: Path) -> None:
    said = simgate("status", done)
    assert said.exit_code == 0
    assert "Slots by disposition" in said.output
    data = json.loads(simgate("status", done, "--json").output)
    assert (data["state"], data["run_dir"]) == ("done", str(done))


def test_inspect_shows_the_bill_and_json_its_numbers(tmp_path: Path) -> None:
    folder(tmp_path, budgets={"node_hours": 0.05})
    said = simgate("inspect", tmp_path)
    assert said.exit_code == 0
    assert "can run" in said.output
    assert "note: node-hours: at most" in said.output
    data = json.loads(simgate("inspect", tmp_path, "--json", "--set", "rounds=5").output)
    assert data["problems"] == []
    assert data["cost"]["generations"] == {"least": 5, "most": 10, "cap": None}


def test_inspect_names_problems_in_json_too(tmp_path: Path) -> None:
    folder(tmp_path, budgets={"node_hours": 0.001})
    found = simgate("inspect", tmp_path, "--json")
    assert found.exit_code == 2
    data = json.loads(found.stdout)
    assert [one["path"] for one in data["problems"]] == ["budgets.node_hours"] * 2
    assert "budgets.node_hours" in found.stderr


def test_overrides_are_checked_like_the_file(tmp_path: Path) -> None:
    folder(tmp_path)
    refused(simgate("inspect", tmp_path, "--set", "rounds=none"), 2, "rounds")
    refused(simgate("inspect", tmp_path, "--set", "round=3"), 2, "did you mean 'rounds'?")
    refused(simgate("inspect", tmp_path, "--set", "rounds"), 2, "rounds")


def test_the_schema_is_json_that_a_campaign_fits() -> None:
    found = simgate("schema")
    assert found.exit_code == 0
    assert json.loads(found.output)["properties"]["rounds"]


def test_init_refuses_a_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    refused(simgate("init", tmp_path), 2, "holds mine")


def test_wrong_usage_is_two() -> None:
    refused(simgate("fly"), 2, "No such command")
    refused(simgate("run"), 2, "Missing argument")
    refused(simgate("status", "a", "b"), 2, "unexpected extra argument")


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    refused(simgate("status", tmp_path / "f"), 2, "is a file")


def test_an_exception_nobody_expected_is_one_line_and_a_file(tmp_path: Path, done: Path) -> None:
    """A ledger that only somebody's own editing can bring about: an end without a start."""
    with Ledger(done) as ledger:
        odd = {"n": len(read(done)) + 1, "t": 1.0, "event": {"kind": "task_ended", "task": "t"}}
        odd["event"] |= {"candidate": "c", "attempt": 1, "status": "done"}  # type: ignore[operator]
        odd["event"] |= {"spent": 0.0, "seconds": 0.0}  # type: ignore[operator]
        path = ledger.path
    path.write_text(path.read_text() + json.dumps(odd) + "\n")
    found = simgate("status", done)
    refused(found, 1, "simgate: internal error: KeyError: ('t', 'c'); details in ")
    details = Path(found.output.rpartition("details in ")[2].strip())
    assert "Traceback" in details.read_text()
    details.unlink()
    assert tmp_path.exists()


def imported(program: str, *words: object) -> set[str]:
    """The top-level packages a command has imported when it is done."""
    code = (
        "import sys, json, contextlib, io\n"
        "from campaign.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        "    try: main(sys.argv[1:])\n"
        "    except SystemExit as error: assert not error.code, error.code\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    argv = [sys.executable, "-c", code, program, *map(str, words)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout))


def test_help_imports_next_to_nothing() -> None:
    found = imported("--help")
    assert not found & {*MISSING, "pydantic", "rich", "msgspec", "yaml", "opentelemetry"}


def test_reading_commands_import_nothing_heavy(tmp_path: Path, done: Path) -> None:
    folder(tmp_path)
    for words in (["status", done], ["status", done, "--json"], ["inspect", tmp_path]):
        assert not imported(*words) & set(MISSING), words  # type: ignore[arg-type]


def test_a_reader_that_goes_away_is_no_traceback(done: Path) -> None:
    ran = process("status", done, "--json", stdin=subprocess.DEVNULL)
    assert ran.returncode == 0
    argv = f"{sys.executable} -c 'from campaign.cli import main; main()' status {done} | true"
    piped = subprocess.run(argv, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in piped.stderr
