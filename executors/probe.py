"""Whether functions can be imported here as a worker would import them; the standard library only.

``check_functions`` runs this file as a script, so that nothing a campaign's module does on import
touches the driver.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence


def check_functions(names: Sequence[str], folder: str, seconds: float = 120.0) -> Mapping[str, str]:
    """Import every ``module:function``, in ``folder`` first; why not, for those that fail."""
    if not names:
        return {}
    argv = [sys.executable, "-P", __file__, folder, *names]
    try:
        ran = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(names, f"importing took more than {seconds:g} s")
    try:
        reasons: Mapping[str, str] = json.loads(ran.stdout)
    except ValueError:
        last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
        said = last[0] if last else f"exit code {ran.returncode}"
        return dict.fromkeys(names, f"importing ended the interpreter: {said}")
    return reasons


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
