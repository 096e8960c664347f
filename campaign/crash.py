"""Exceptions nobody expected: which of them counts, and where its traceback is kept."""

from __future__ import annotations

import contextlib
import tempfile
import traceback
from pathlib import Path


def cause(error: BaseException) -> BaseException:
    """The exception a task group wrapped; the first when several tasks of it failed."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def keep(error: BaseException, run_dir: Path | None) -> Path | None:
    """Write the traceback to ``crash.txt`` in the run directory, else to a file of its own.

    Returns the file, None when no disk takes it.
    """
    details = "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        if run_dir is not None and run_dir.is_dir():
            path = run_dir / "crash.txt"
            path.write_text(details, encoding="utf-8", errors="backslashreplace")
            return path
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(
            "w",
            prefix="simgate-crash-",
            suffix=".txt",
            delete=False,
            encoding="utf-8",
            errors="backslashreplace",
        ) as file,
    ):
        file.write(details)
        return Path(file.name)
    return None
