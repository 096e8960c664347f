"""Nodes of a job that are lost: nobody gets them until they are there again.

Slurm may learn only minutes later that a node has crashed. So a node on which srun could start
nothing is lost as well, and whatever was lost has to start something before it counts again.
Standard library only.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence

from executors import slurm
from executors.holders import Allocation, Owner, owner_of, write_owner

LOOK = 20.0
"""Seconds after which it is asked again which nodes are lost."""

_LOOKED = ".looked"
_PROBE = "simgate-step-probe"  # the name of a step that shows that a node can start one
_SILENT = re.compile(r"(?:failed on node|Node failure on) ([^\s:,]+)")
_LOST = Owner(0, 0, "", "", lost=True)


def left(allocation: Allocation) -> tuple[str, ...]:
    """The nodes that are not known to be lost, in the job's order."""
    owners = {name: owner_of(allocation.folder / name) for name in allocation.names}
    return tuple(name for name, owner in owners.items() if owner is None or not owner.lost)


def look(allocation: Allocation) -> tuple[str, ...]:
    """Ask Slurm which nodes are lost, and give back those that are there again; what is left.

    Raises :class:`executors.slurm.SlurmError`.
    """
    allocation.folder.mkdir(parents=True, exist_ok=True)
    (allocation.folder / _LOOKED).touch()
    known = set(allocation.names) - set(left(allocation))
    gone = slurm.unusable(allocation.job, allocation.names)
    for name in set(gone) - known:
        write_owner(allocation.folder / name, _LOST)
    if back := sorted(known - set(gone)):
        for name in set(back) - set(_silent(allocation.job, back)):
            (allocation.folder / name).unlink(missing_ok=True)
    return left(allocation)


def look_now_and_then(allocation: Allocation, count: int) -> tuple[str, ...]:
    """What is left; asks Slurm when that is due, or when it would be fewer than ``count``."""
    with contextlib.suppress(slurm.SlurmError):  # nobody knows: what was known holds
        if _due(allocation) or len(left(allocation)) < count:
            return look(allocation)
    return left(allocation)


def set_aside(
    allocation: Allocation, nodes: Sequence[str], *, suspected: bool = False
) -> tuple[str, ...]:
    """Those of our ``nodes`` that are lost; nobody gets them now.

    ``suspected``: srun said it could not start something on one of them, so they are tried,
    whatever Slurm still thinks of them.
    """
    try:
        gone = slurm.unusable(allocation.job, nodes)
        if suspected and not gone:
            gone = _silent(allocation.job, nodes)
    except slurm.SlurmError:
        return ()  # nobody knows; they count as good
    for name in gone:
        write_owner(allocation.folder / name, _LOST)
    return gone


def _due(allocation: Allocation) -> bool:
    try:
        return (allocation.folder / _LOOKED).stat().st_mtime < time.time() - LOOK
    except FileNotFoundError:
        return True


def _silent(job: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Those of a job's nodes on which srun cannot start anything, having tried.

    Raises :class:`executors.slurm.SlurmError` when nobody says.
    """
    count = len(nodes)
    where = [f"--jobid={job}", f"--job-name={_PROBE}", f"--nodelist={','.join(nodes)}"]
    shape = [f"--nodes={count}", f"--ntasks={count}", "--ntasks-per-node=1", "--overlap"]
    try:
        slurm.call(["srun", *where, *shape, "true"])
    except slurm.SlurmError as error:
        named = _SILENT.findall(str(error))
        if not named:
            raise
        return tuple(name for name in nodes if name in named)
    return ()
