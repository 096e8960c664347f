"""The words before a program that runs on whole nodes of a Slurm job.

``step_main.py --nodes K --ranks R --launcher NAME (--option WORD)... -- PROGRAM``
claims K nodes, starts PROGRAM on them and hands on its exit code, 128+n for a signal n. What
PROGRAM prints passes through untouched. NAME is ``srun``, ``mpiexec``, ``auto`` for the first under
which mpi4py gets a communicator of R ranks (tried once, then kept beside the claims), or ``own``:
PROGRAM begins with a launcher of the task's, in which ``{nodelist}`` and ``{hostlist}`` become
``n1,n2`` and ``n1:2,n2:2``. However a task ends, its
nodes are given back only when nothing of it runs on them. A fault that is not PROGRAM's ends with
``REFUSED`` or ``LOST`` and says why in the file ``mpi-error-launcher.json``.

``step_main.py --probe --nodes K --ranks R`` prints what ``auto`` would choose, or what each
launcher said. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

if __name__ == "__main__":  # started by its path: what it imports lies in the folder above
    sys.path[0] = str(Path(__file__).parent.parent)

from executors import lost, nodes, processes, slurm
from executors.holders import Allocation, NodesError
from executors.mpi_main import ERROR_FILE
from executors.step import Refused, Request, command, environment, parse

REFUSED, LOST = 64, 75
"""Exit codes: the request cannot be met; the nodes or Slurm failed it (see sysexits.h)."""
TOLD, LATE = 128 + signal.SIGTERM, 124
"""Exit codes: we were told to end; the program had no more time (as of timeout(1))."""
PROBE_PATIENCE = 20.0
"""Seconds one launcher gets to start a program when launchers are tried."""

_NOT_THERE = re.compile(
    rb"srun: error: (?:Node failure on .*|Task launch for .* failed on node .*|.* launch failed.*)"
)
_TAIL = 4096  # bytes of a log in which these words are looked for
_FOREVER = 1e8  # seconds
_GRACE = 0.5  # seconds a launcher has to end by itself after SIGTERM, or after its steps
_ENDS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_CANDIDATES: tuple[tuple[str, ...], ...] = (
    ("srun", "--mpi=pmi2"),
    ("srun", "--mpi=pmix"),
    ("mpiexec",),
)


class Told(Exception):
    """We were told to end while launchers were tried; all of them have ended."""


class Step:
    """The child that starts the ranks, from its start to the end of all of them."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], output: IO[bytes] | None = None
    ) -> None:
        """Start it. Raises ``OSError``. Signals that end us are taken by :meth:`wait` from now."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS | {signal.SIGCHLD})
        self.told = False  # to end, by who started us
        me = os.getpid()
        self._child = subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: _become_child(me),  # safe: we have one thread
        )

    def wait(self, seconds: float = _FOREVER) -> int:
        """Its exit code; ``TOLD`` when we were told to end, ``LATE`` after ``seconds``."""
        until = time.monotonic() + seconds
        while (code := self._child.poll()) is None:
            left = until - time.monotonic()
            seen = signal.sigtimedwait(_ENDS | {signal.SIGCHLD}, max(0.0, left))
            if seen is None and left <= 0:
                self._end()
                return LATE
            if seen is not None and seen.si_signo != signal.SIGCHLD:
                self.told = True
                self._end()
                return TOLD
        self.settle()
        return code if code >= 0 else 128 - code

    def _end(self) -> None:
        """Ask for an end; what does not heed it is ended by who clears the nodes."""
        processes.signal_descendants(os.getpid(), signal.SIGTERM)
        self.settle()

    def settle(self) -> None:
        """Let what is ending on this host end, for a little while."""
        until = time.monotonic() + _GRACE
        while processes.signal_descendants(os.getpid(), 0) and time.monotonic() < until:
            time.sleep(0.01)

    def sweep(self) -> None:
        """Nothing of it is left on this host, whatever its launcher started here itself."""
        processes.kill_descendants(os.getpid())
        self._child.wait()


def run(request: Request, allocation: Allocation) -> int:
    """Run the request on nodes of its own; the exit code to leave with."""
    with nodes.claim(allocation, request.nodes) as names:
        request = _decided(request, allocation, names)
        argv = command(request, allocation.job, names)
        step = Step(argv, environment(os.environ, request, allocation.job, names))
        code, said = step.wait(), _said_of_nodes()
        if code == 0 and request.launcher == "srun" and not said:
            return code  # srun ends after its step
        gone = lost.set_aside(allocation, names, suspected=True) if said else ()
        # Steps on a lost node end when Slurm has that node again, which may be never.
        _clear(step, allocation, [name for name in names if name not in gone])
        gone = gone or lost.set_aside(allocation, names)
        if step.told or (not gone and (code or not said)):
            return code
    if not gone:  # srun counts a rank that went with its node as one that ended well
        raise NodesError(f"a node failed while the program ran: {said}")
    raise NodesError(f"node {', '.join(gone)}: out of reach, or taken from the job")


def _said_of_nodes() -> str:
    """What an srun of ours told the log of the task of a node that it did not get at, or lost."""
    try:
        with Path("stderr").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL))
            said = log.read()
    except OSError:
        return ""
    found = _NOT_THERE.search(said)
    return found[0].decode(errors="replace") if found else ""


def probe(request: Request, allocation: Allocation) -> int:
    """Print the first launcher that works; without one, say what each said."""
    with nodes.claim(allocation, request.nodes) as names:
        words, said = _first_working(request, allocation, names)
    print(*(words or said), sep=" " if words else "\n", file=sys.stdout if words else sys.stderr)
    return 0 if words else 1


def _decided(request: Request, allocation: Allocation, names: Sequence[str]) -> Request:
    """The request with a launcher that works here, where it asks for one."""
    if request.launcher != "auto":
        return request
    kept = allocation.folder / ".launcher"
    try:
        words = json.loads(kept.read_bytes())
    except FileNotFoundError:
        words, said = _first_working(request, allocation, names)
        if not words:
            what = f"no launcher gives mpi4py {request.ranks} ranks; name one"
            raise Refused("\n".join((what, *said))) from None
        half = kept.with_name(f".launcher.{os.getpid()}")
        half.write_text(json.dumps(words))
        half.replace(kept)
    return replace(request, launcher=words[0], options=(*words[1:], *request.options))


def _first_working(
    request: Request, allocation: Allocation, names: Sequence[str]
) -> tuple[tuple[str, ...], list[str]]:
    """The first launcher under which ranks find each other, and what those before it said."""
    said: list[str] = []
    for words in _CANDIDATES:
        options, program = (*words[1:], *request.options), _program(request.ranks)
        test = replace(request, launcher=words[0], options=options, program=program)
        answer = _attempt(test, allocation, names)
        if answer is None:
            return words, said
        said.append(f"{' '.join(words)}: {answer}")
    return (), said


def _program(ranks: int) -> tuple[str, ...]:
    text = (
        "from mpi4py import MPI\n"
        f"assert MPI.COMM_WORLD.size == {ranks}, f'communicator of size {{MPI.COMM_WORLD.size}}'"
    )
    return (sys.executable, "-m", "mpi4py", "-c", text)


def _attempt(request: Request, allocation: Allocation, names: Sequence[str]) -> str | None:
    """Why a program did not run on ``names``, ``None`` when it did."""
    env = environment(os.environ, request, allocation.job, names)
    with tempfile.TemporaryFile() as output:
        try:
            step = Step(command(request, allocation.job, names), env, output)
        except (OSError, Refused) as error:
            return str(error)
        code = step.wait(PROBE_PATIENCE)
        _clear(step, allocation, names)
        if step.told:
            raise Told
        output.seek(0)
        said = _gist(output.read().decode(errors="replace"))
    if code == 0:
        return None
    why = f"no end within {PROBE_PATIENCE:g} s" if code == LATE else f"exit code {code}"
    return f"{why}: {said}"


def _gist(text: str) -> str:
    """The last things said, each once, without the bodies of tracebacks."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(" ")]
    return " / ".join(list(dict.fromkeys(lines))[-6:])[-1000:]


def _clear(step: Step, allocation: Allocation, names: Sequence[str]) -> None:
    """End all there is of a task.

    Its launchers come before the last of its steps, since they could start more of them; but a
    step whose srun was killed takes seconds to end, so a launcher first sees its steps end.
    """
    nodes.cancel(allocation, names)
    step.settle()
    step.sweep()
    nodes.clear(allocation, names)


def _become_child(parent: int) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS | {signal.SIGCHLD})
    # Asked, not killed: a launcher that is killed leaves its ranks behind.
    processes.die_with_parent(parent, signal.SIGTERM)


def _failed(code: int, status: str, reason: str) -> int:
    """Tell the task's log, and in a file who reads its directory, what was not its program's."""
    print(f"simgate: {reason}", file=sys.stderr, flush=True)
    if sys.argv[1:2] != ["--probe"]:  # that has no directory of a task's
        said = json.dumps({"status": status, "reason": reason})
        Path(ERROR_FILE.format(rank="launcher")).write_text(said)
    return code


def main() -> int:
    """Do what the command line says."""
    processes.become_subreaper()
    try:
        request = parse(sys.argv[1:])
        allocation = Allocation.from_environment(os.environ)
        return probe(request, allocation) if request.probe else run(request, allocation)
    except Told:
        return TOLD
    except Refused as error:
        return _failed(REFUSED, "error", str(error))
    except OSError as error:
        return _failed(REFUSED, "error", f"cannot start: {error}")
    except (NodesError, slurm.SlurmError) as error:
        return _failed(LOST, "lost", str(error))


if __name__ == "__main__":
    sys.exit(main())
