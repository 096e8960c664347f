"""Commands and MPI programs: how they are started, and what their end means.

Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from executors import processes, values
from executors.base import TaskStatus
from executors.claim import Claim, Outcome
from executors.mpi_main import ERROR_FILE, INPUT_FILE, VALUE_FILE
from executors.shebang import no_interpreter

_ROOT = str(Path(__file__).parent.parent)
# One rank that fails must end them all: mpi4py's own runner aborts the communicator for that.
_MPI_PROGRAM = (
    "-m",
    "mpi4py",
    "-c",
    f"import sys; sys.path.insert(0, {_ROOT!r}); from executors.mpi_main import main; main()",
)


def start(request: dict[str, Any], directory: str) -> subprocess.Popen[bytes] | Outcome:
    """Start the program of ``request`` in its directory, or say why it cannot be started."""
    place = Path(directory)
    argv = list(request["argv"])
    if request["kind"] == "mpi":
        names = ("function", "arguments", "candidate", "ranks", "path")
        (place / INPUT_FILE).write_text(json.dumps({name: request[name] for name in names}))
        argv += [sys.executable, *_MPI_PROGRAM]
    argv[0] = _executable(argv[0], place, request["path"])
    environment = {**os.environ, **request["env"]}
    me = os.getpid()
    try:
        with (place / "stdout").open("ab") as out, (place / "stderr").open("ab") as err:
            return subprocess.Popen(
                argv,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=lambda: processes.die_with_parent(me),  # safe: the guard has one thread
            )
    except FileNotFoundError:
        why = no_interpreter(argv[0]) or "name one on PATH, or give its full path"
        reason = f"command not found: {argv[0]!r}; {why}"
    except PermissionError:
        reason = f"command not executable: {argv[0]!r}; chmod +x it, or name its interpreter"
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = f"command cannot be started: {argv[0]!r}: {error}"
    return Outcome(TaskStatus.ERROR, reason)


def outcome(request: dict[str, Any], code: int, claim: Claim) -> Outcome:
    """What the end of a program with exit ``code`` means under its output contract."""
    if request["kind"] == "mpi":
        return _mpi_outcome(code, claim)
    if (reported := _reported(code, claim, "launcher")) is not None:  # not the program's fault
        return reported
    output = request["output"]
    mapped = output.get("exit_codes")
    if mapped is not None:
        if str(code) in mapped:
            return Outcome(TaskStatus.DONE, value=_verdict(mapped[str(code)], code, claim))
        known = ", ".join(mapped)
        return failed(code, "", claim, f"; output.exit_codes says what {known} mean")
    if code != 0:
        return failed(code, "", claim, _last_words(claim))
    if "json" in output:
        return _answer(Path(claim.path, output["json"]), code, claim)
    return Outcome(TaskStatus.DONE, exit_code=code)


def failed(code: int, before: str, claim: Claim, after: str = "") -> Outcome:
    """An exit nobody mapped, with the end of its log."""
    try:
        said = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    except ValueError:
        said = f"killed by signal {-code}"
    return Outcome(TaskStatus.ERROR, before + said + after, exit_code=code, log_tail=claim.tail())


def _last_words(claim: Claim) -> str:
    line = claim.last_line("stderr") or claim.last_line("stdout")
    return f": {line[:500]}" if line else ""


def _verdict(said: str, code: int, claim: Claim) -> bytes:
    if said == "pass":
        return b'{"verdict":"pass"}'
    reason = claim.last_line("stdout") or claim.last_line("stderr") or f"exit code {code}"
    return json.dumps({"verdict": "reject", "reason": reason[:500]}).encode()


def _answer(path: Path, code: int, claim: Claim) -> Outcome:
    try:
        return Outcome(TaskStatus.DONE, value=values.read_file(path), exit_code=code)
    except values.NotAnAnswer as error:
        return Outcome(TaskStatus.UNREADABLE, str(error), exit_code=code, log_tail=claim.tail())


def _mpi_outcome(code: int, claim: Claim) -> Outcome:
    if (reported := _reported(code, claim, "*")) is not None:
        return reported
    if code != 0:
        return failed(code, "", claim, _last_words(claim))
    return _answer(Path(claim.path, VALUE_FILE), code, claim)


def _reported(code: int, claim: Claim, rank: str) -> Outcome | None:
    """A failing rank leaves its reason in a file; the first of them caused the others' end."""
    for report in sorted(Path(claim.path).glob(ERROR_FILE.format(rank=rank))):
        try:
            said = json.loads(report.read_bytes())
            status, reason = TaskStatus(said["status"]), str(said["reason"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # cut off while it was written: the exit code remains
        return Outcome(status, reason, exit_code=code, log_tail=claim.tail())
    return None


def _executable(name: str, place: Path, folders: list[str]) -> str:
    """A path with a slash is looked for in the task's directory, then beside the campaign."""
    if "/" not in name or Path(name).is_absolute():
        return name
    for folder in (place, *map(Path, folders)):
        if (folder / name).exists():
            return str((folder / name).absolute())
    return name
