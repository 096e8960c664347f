from __future__ import annotations

import sys
from pathlib import Path

import pytest

from executors.base import CommandWork, MpiWork, PythonWork
from executors.launch import check_work, default_launcher, script_of, unreadable


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, with a program ``lmp`` and a file ``notes`` in it."""
    (tmp_path / "lmp").write_text("#!/bin/sh\n")
    (tmp_path / "lmp").chmod(0o755)
    (tmp_path / "notes").write_text("")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_program_that_is_there_is_no_problem(programs: Path) -> None:
    assert check_work(CommandWork(("lmp", "-in", "x"))) == []
    assert check_work(CommandWork((str(programs / "lmp"),))) == []
    assert check_work(CommandWork(("./lmp",)), [str(programs)]) == []
    assert check_work(PythonWork("anything:at_all")) == []


def test_a_program_that_is_missing_is_named_with_the_nearest(programs: Path) -> None:
    assert check_work(CommandWork(("lmpp",))) == [
        "command 'lmpp': not on PATH; install it, or give its full path; did you mean 'lmp'?"
    ]
    assert check_work(CommandWork(("/no/lmp",))) == [
        "command '/no/lmp': does not exist; name a program that can be run"
    ]
    notes = str(programs / "notes")
    assert check_work(CommandWork((notes,))) == [
        f"command {notes!r}: is not executable; name a program that can be run"
    ]
    assert check_work(CommandWork(("./solver",)), [str(programs)]) == [
        f"command './solver': not found as {programs}/solver; give its full path"
    ]


@pytest.mark.usefixtures("programs")
def test_a_launcher_that_is_missing_is_named() -> None:
    assert check_work(MpiWork("m:f", ("mpiexec.wrong", "-n", "2")))[0] == (
        "launcher 'mpiexec.wrong': not on PATH; install it, or give its full path"
    )


@pytest.mark.mpi
def test_the_default_launcher_is_the_one_beside_the_interpreter() -> None:
    mpiexec = str(Path(sys.executable).with_name("mpiexec"))
    assert default_launcher(4) == (mpiexec, "-n", "4")


def test_without_an_mpi_there_is_no_default_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / name))
    assert default_launcher(2) is None


def test_a_folder_is_no_program(programs: Path) -> None:
    (programs / "tools").mkdir()
    assert check_work(CommandWork((f"{programs}/tools",))) == [
        f"command '{programs}/tools': is a folder; name a program that can be run"
    ]
    (said,) = check_work(CommandWork(("./tools",)), [str(programs)])
    assert said.startswith("command './tools': not found")


def test_a_program_that_cannot_be_looked_at_is_named(programs: Path) -> None:
    (said,) = check_work(CommandWork((f"{programs}/notes/lmp",)))
    assert said == (
        f"command '{programs}/notes/lmp': cannot be looked at: Not a directory; "
        "name a program that can be run"
    )


def test_what_is_on_path_and_no_folder_is_passed_over(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs}/notes:/no/where:{programs}")
    assert "did you mean 'lmp'" in check_work(CommandWork(("lmpp",)))[0]


@pytest.mark.parametrize(
    ("argv", "script"),
    [
        (["/usr/bin/python3.11", "a.py", "1"], "a.py"),
        (["bash", "/x/run.sh"], "/x/run.sh"),
        (["python3", "-m", "solver"], None),
        (["python3"], None),
        (["solver", "input.txt"], None),
        (["python-config", "x"], None),
    ],
)
def test_the_script_of_an_interpreter_is_told_from_other_arguments(
    argv: list[str], script: str | None
) -> None:
    assert script_of(argv) == script


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert unreadable(tmp_path / "a") == unreadable(tmp_path) == ""
    assert unreadable(tmp_path / "b") == "does not exist"
    assert unreadable(tmp_path / "a" / "b") == "cannot be looked at: Not a directory"
