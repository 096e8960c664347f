"""Launchers and programs: what is there, what to say when it is not. Standard library only."""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from executors.base import CommandWork, MpiWork, Work
from executors.shebang import no_interpreter

_INTERPRETER = re.compile(r"(python|pypy|bash|sh|perl|ruby|julia|Rscript|octave|node)[\d.]*")


def default_launcher(ranks: int) -> tuple[str, ...] | None:
    """``mpiexec -n RANKS`` of the MPI installed beside this interpreter; None without one.

    Not the one on PATH: a launcher of another MPI than mpi4py's starts ranks that do not see
    each other.
    """
    for folder in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        launcher = folder / "mpiexec"
        if os.access(launcher, os.X_OK):
            return (str(launcher), "-n", str(ranks))
    return None


def step_launcher(
    launcher: str, options: Sequence[str], ranks: int, nodes: int, own: Sequence[str] = ()
) -> tuple[str, ...]:
    """The words that start ranks on whole nodes; ``own`` is the launcher a task brings.

    Which nodes these are is decided where the task starts, by :mod:`executors.step_main`.
    """
    words = [word for option in options for word in ("--option", option)]
    script = str(Path(__file__).with_name("step_main.py"))
    return (
        sys.executable, script, "--nodes", str(nodes), "--ranks", str(ranks),
        "--launcher", "own" if own else launcher, *words, "--", *own,
    )  # fmt: skip


def check_work(work: Work, folders: Sequence[str] = ()) -> list[str]:
    """What of ``work`` is missing on this machine: launcher, program, mpi4py; empty when nothing.

    ``folders`` are the places beside PATH where a relative path may lead: the campaign's.
    Whether functions can be imported is not looked at.
    """
    match work:
        case CommandWork(argv=argv):
            return _missing("command", argv, folders)
        case MpiWork(launcher=launcher):
            found = _missing("launcher", launcher, folders)
            if importlib.util.find_spec("mpi4py") is None:
                found.append("mpi4py: not installed; pip install 'simgate[mpi]'")
            return found
        case _:
            return []


def _missing(what: str, argv: Sequence[str], folders: Sequence[str]) -> list[str]:
    name = argv[0] if argv else ""
    if "/" in name and not Path(name).is_absolute():
        places = [str(Path(folder, name)) for folder in folders]
        # What a task renders into its own directory cannot be seen before it runs.
        if found := next(filter(shutil.which, places), None):
            why = no_interpreter(found)
            return [f"{what} {name!r}: {why}"] if why else []
        return [f"{what} {name!r}: not found as {' or '.join(places) or name}; give its full path"]
    if shutil.which(name):
        why = no_interpreter(name)
        return [f"{what} {name!r}: {why}"] if why else []
    if Path(name).is_absolute():
        return [f"{what} {name!r}: {_why_not(Path(name))}; name a program that can be run"]
    nearest = difflib.get_close_matches(name, _programs(), n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    return [f"{what} {name!r}: not on PATH; install it, or give its full path{hint}"]


def _why_not(program: Path) -> str:
    why = unreadable(program)
    if why:
        return why
    return "is a folder" if program.is_dir() else "is not executable"


def unreadable(path: Path) -> str:
    """Why a file or folder cannot be read here; empty when it can."""
    try:
        path.stat()
    except FileNotFoundError:
        return "does not exist"
    except OSError as error:
        return f"cannot be looked at: {error.strerror}"
    return "" if os.access(path, os.R_OK) else "cannot be read: Permission denied"


def script_of(argv: Sequence[str]) -> str | None:
    """The script that an interpreter is given as its first argument; None without one."""
    if len(argv) < 2 or not _INTERPRETER.fullmatch(Path(argv[0]).name):
        return None
    return None if argv[1][:1] in ("", "-") else argv[1]


def _programs() -> list[str]:
    names: set[str] = set()
    for folder in os.get_exec_path():
        with contextlib.suppress(OSError):  # not there, no folder, or not for our eyes
            names.update(entry.name for entry in os.scandir(folder))
    return sorted(names)
