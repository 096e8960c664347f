"""Which nodes of a Slurm job a task gets, decided where its workers run.

A claim is a file named after its node, in a folder that all workers of one pool share (they are on
one host). It says who holds the node. Who dies holding one loses it to the next who needs it, and
only once the node is clear: no step of the job, and no process of the dead task here, is left on
it. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from executors import lost, processes, slurm
from executors.holders import Allocation, NodesError, Owner, owner_of, write_owner

POOL, STEP, MARK = "simgate-pool", "simgate-step", "SIMGATE_STEP"
"""How the steps of worker pools and of tasks are named; what marks the processes of a task."""
PATIENCE = 90.0
"""Seconds a claim waits for nodes; longer than clearing one takes."""
CLEARING = 60.0
"""Seconds steps may take to end once they were cancelled."""

_STRANGERS = ".strangers"
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_SLURMS_OWN = ("batch", "extern", "interactive")


@contextlib.contextmanager
def claim(
    allocation: Allocation, count: int, patience: float = PATIENCE
) -> Iterator[tuple[str, ...]]:
    """Hold ``count`` nodes, in the job's order; waits until that many are free.

    Left by an exception, the nodes stay claimed: when their owner ends, whoever claims them next
    clears them first. Raises :class:`NodesError`.
    """
    me = Owner.me()
    chosen, dead = _wait(allocation, count, me, time.monotonic() + patience)
    if dead:
        _kill(dead.values())
        clear(allocation, tuple(dead))
    yield chosen
    for name in chosen:
        if owner_of(allocation.folder / name) == me:  # it may have been set aside
            (allocation.folder / name).unlink()


def cancel(allocation: Allocation, nodes: Sequence[str]) -> None:
    """Ask Slurm to kill what :func:`clear` waits for; no more than a try."""
    with contextlib.suppress(slurm.SlurmError):
        slurm.cancel(_steps_on(allocation, nodes))


def clear(allocation: Allocation, nodes: Sequence[str], seconds: float = CLEARING) -> None:
    """Cancel every step of the job that runs on ``nodes``, and wait until none does.

    Worker pools, Slurm's own steps and those that ran before the first claim are left alone.
    Raises :class:`NodesError` when some still run after ``seconds``.
    """
    deadline, pause = time.monotonic() + seconds, _PAUSE
    while True:
        said = ""
        left: list[str] = []
        try:
            left = _steps_on(allocation, nodes)
            if not left:
                return
            slurm.cancel(left)
        except slurm.SlurmError as error:  # a busy controller answers later
            said = f" ({error})"
        if time.monotonic() > deadline:
            what = f"steps {', '.join(left)} still run" if left else "steps may still run"
            raise NodesError(
                f"{what} on {','.join(nodes)} {seconds:g} s after they were cancelled{said}"
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def give_back(allocation: Allocation, seconds: float) -> None:
    """After the end of all tasks: end whatever of them is left on nodes they still hold.

    Raises :class:`NodesError` when something still runs after ``seconds``.
    """
    owners = {name: owner_of(allocation.folder / name) for name in allocation.names}
    held = {name: owner for name, owner in owners.items() if owner and not owner.lost}
    if not held:
        return
    _kill(held.values())
    clear(allocation, tuple(held), seconds)
    for name in held:
        (allocation.folder / name).unlink(missing_ok=True)


def _wait(
    allocation: Allocation, count: int, me: Owner, deadline: float
) -> tuple[tuple[str, ...], dict[str, Owner]]:
    if count > len(allocation.names):
        raise NodesError(
            f"{count} nodes wanted; the executor has {len(allocation.names)}: "
            f"{','.join(allocation.names)}"
        )
    allocation.folder.mkdir(parents=True, exist_ok=True)
    pause = _PAUSE
    while True:
        usable = lost.look_now_and_then(allocation, count)
        if count > len(usable):
            gone = ",".join(name for name in allocation.names if name not in usable)
            raise NodesError(
                f"{count} nodes wanted; the executor has {len(usable)} left of "
                f"{len(allocation.names)}: {gone} lost"
            )
        with _alone(allocation.folder, deadline):
            if not (allocation.folder / _STRANGERS).exists():
                _begin(allocation)
            held = {name: owner_of(allocation.folder / name) for name in allocation.names}
            chosen, dead = _choose(held, count)
            for name in chosen:
                write_owner(allocation.folder / name, me)
        if chosen:
            return chosen, dead
        if time.monotonic() > deadline:
            raise NodesError(_shortage(held, count))
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _kill(owners: Iterable[Owner]) -> None:
    """End what is left on this host of tasks whose owners are dead."""
    for owner in set(owners):
        processes.kill_marked(f"{MARK}={owner.mark}".encode())


def _choose(
    held: Mapping[str, Owner | None], count: int
) -> tuple[tuple[str, ...], dict[str, Owner]]:
    """Free nodes, then those of the dead; none when these are too few."""
    free = [name for name, owner in held.items() if owner is None]
    dead = {name: owner for name, owner in held.items() if owner and not owner.lost}
    dead = {name: owner for name, owner in dead.items() if not owner.alive}
    taken = [*free, *dead][:count]
    if len(taken) < count:
        return (), {}
    return (
        tuple(name for name in held if name in taken),
        {name: owner for name, owner in dead.items() if name in taken},
    )


def _begin(allocation: Allocation) -> None:
    """Before the first claim: note whose steps run already, to leave them alone.

    Steps of tasks are none of those: a driver that was killed left them, and their nodes count as
    held by the dead.
    """
    strangers = []
    for step, (name, where) in slurm.steps(allocation.job).items():
        if not name.startswith(STEP):
            strangers.append(step)
            continue
        for node in set(slurm.host_names(where)) & set(lost.left(allocation)):
            write_owner(allocation.folder / node, Owner(0, 0, "", ""))
    half = allocation.folder / f"{_STRANGERS}.{os.getpid()}"
    half.write_text(json.dumps(strangers))
    half.replace(allocation.folder / _STRANGERS)


def _steps_on(allocation: Allocation, nodes: Sequence[str]) -> list[str]:
    """Steps on any of ``nodes`` that have to go before a task may come."""
    try:
        strangers = json.loads((allocation.folder / _STRANGERS).read_bytes())
    except FileNotFoundError:
        strangers = []
    found = []
    for step, (name, where) in slurm.steps(allocation.job).items():
        kept = name.startswith(POOL) or step.rpartition(".")[2] in _SLURMS_OWN or step in strangers
        if not kept and set(slurm.host_names(where)) & set(nodes):
            found.append(step)
    return found


def _shortage(held: Mapping[str, Owner | None], count: int) -> str:
    words = []
    for name, owner in held.items():
        if owner is None:
            words.append(f"{name} is free")
        elif owner.lost:
            words.append(f"{name} is lost")
        else:
            words.append(f"{name} is held by process {owner.pid} for {owner.directory}")
    return f"{count} nodes wanted, not so many became free: {'; '.join(words)}"


@contextlib.contextmanager
def _alone(folder: Path, deadline: float) -> Iterator[None]:
    """Nobody else of this host chooses nodes in ``folder`` meanwhile.

    An abstract socket's name is taken by one process at a time and given up with it, on whatever
    file system the folder lies.
    """
    key = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        while True:
            try:
                lock.bind(f"\0simgate-nodes-{os.getuid()}-{key}")
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    raise NodesError(f"{folder}: cannot choose nodes: {error}") from error
            time.sleep(0.005)
        yield
