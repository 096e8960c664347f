"""Programs called like Slurm's, which say what a test wants and note what they were asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = ("sacct", "sbatch", "scancel", "scontrol", "squeue", "srun")
_PROGRAM = """#!/bin/sh
cd {folder} || exit
echo "$*" >>{name}.asked
cat {name}.out
cat {name}.err >&2
exit "$(cat {name}.code)"
"""


@dataclass(frozen=True)
class PretendSlurm:
    """What each program says; at first nothing, with success."""

    folder: Path

    def says(self, program: str, text: str = "", *, error: str = "", code: int = 0) -> None:
        (self.folder / f"{program}.out").write_text(text)
        (self.folder / f"{program}.err").write_text(error)
        (self.folder / f"{program}.code").write_text(str(code))

    def asked(self, program: str) -> list[str]:
        """The arguments of every call, in order."""
        path = self.folder / f"{program}.asked"
        return path.read_text().splitlines() if path.exists() else []

    def job(self, number: str, state: str, end: str) -> None:
        """What scontrol knows of a job; ``end`` as Slurm writes it."""
        self.says("scontrol", f"JobId={number} JobName=x JobState={state} EndTime={end}\n")


def pretend_slurm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    """Put the programs first on PATH."""
    folder.mkdir()
    slurm = PretendSlurm(folder)
    for name in PROGRAMS:
        slurm.says(name)
        (folder / name).write_text(_PROGRAM.format(folder=folder, name=name))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return slurm
