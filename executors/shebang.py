"""The interpreter that a script's first line names. Standard library only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_LONGEST = 256  # bytes of a first line that Linux reads


def no_interpreter(program: str) -> str:
    """What is wrong with the first line of a script that is there; empty when nothing is."""
    path = shutil.which(program) or program
    try:
        with Path(path).open("rb") as file:
            line = file.readline(_LONGEST)
    except OSError:
        return ""
    words = line.removeprefix(b"#!").strip(b" \t\n").split(b" ")
    interpreter = os.fsdecode(words[0].split(b"\t")[0])
    if not line.startswith(b"#!") or not interpreter or Path(interpreter).exists():
        return ""
    ends = "; end its lines by \\n alone" if interpreter.endswith("\r") else ""
    return f"its first line names the interpreter {interpreter!r}, which is not there{ends}"
