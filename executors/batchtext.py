"""What goes into a batch script of Slurm's: pure text."""

from __future__ import annotations

import math
import re

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


def clock(seconds: float) -> str:
    """A time limit as Slurm writes it: ``00:10:00`` or ``2-00:00:00``."""
    days, rest = divmod(math.ceil(seconds), 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


def sbatch_word(word: str) -> str:
    """A word for an ``#SBATCH`` line, which knows quotes and backslashes but no shell.

    Raises ``ValueError`` for a line break.
    """
    if "\n" in word:
        raise ValueError(f"{word!r}: a line break fits in no #SBATCH line")
    if _PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def unexpanded(path: str) -> str:
    """A path as a file name pattern of Slurm's that stands for itself.

    A backslash anywhere switches the patterns off; without one, ``%`` is doubled.
    """
    return path.replace("\\", "\\\\") if "\\" in path else path.replace("%", "%%")
