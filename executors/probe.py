"""Whether functions can be imported here as a worker would import them; the standard library only.

A :class:`Probe` runs this file as a script, so that nothing a campaign's module does on import
touches the driver.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Self


class Probe:
    """Imports every ``module:function`` of ``names``, in ``folder`` first, beside its maker.

    A context manager: on leaving nothing of it runs any more.
    """

    def __init__(self, names: Sequence[str], folder: str) -> None:
        self.names = tuple(names)
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        if self.names:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, folder, *self.names],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def reasons(self, seconds: float = 120.0) -> Mapping[str, str]:
        """Why a function cannot be used, for those that cannot; waits for the imports, once."""
        process, self._process = self._process, None
        if process is None:
            return {}
        with process:
            try:
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return dict.fromkeys(self.names, f"importing took more than {seconds:g} s")
        try:
            found: Mapping[str, str] = json.loads(out)
        except ValueError:
            last = err.decode(errors="replace").strip().splitlines()[-1:]
            said = last[0] if last else f"exit code {process.returncode}"
            return dict.fromkeys(self.names, f"importing ended the interpreter: {said}")
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


def trouble(function: str) -> str:
    """Why ``module:function`` cannot be called, "" when it can. Imports the module."""
    module, _, name = function.partition(":")
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        return str(error)
    except BaseException as error:  # whatever a campaign's own module does at import is its answer
        return f"module {module!r} cannot be imported: {type(error).__name__}: {error}"
    return "" if callable(found) else f"a {type(found).__name__}; a function is wanted"


def main(folder: str, functions: list[str]) -> None:
    sys.path.insert(0, folder)
    answer = os.dup(1)
    os.dup2(2, 1)  # what an import prints is not our answer
    reasons = {function: reason for function in functions if (reason := trouble(function))}
    with os.fdopen(answer, "w") as out:
        json.dump(reasons, out)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
