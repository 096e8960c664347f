"""Who pays for pilot jobs: asked before one is submitted, told what it came to.

The executors know no budget and no ledger; whoever opens them may keep both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from executors.ran import Ran


class UnaffordableError(Exception):
    """Nobody pays for another pilot job; the text says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pilot job that is about to be submitted: ``nodes`` for ``walltime`` seconds at most.

    ``name`` is its name at Slurm, which no other job of these executors has.
    """

    name: str
    nodes: int
    walltime: float


class Payer(Protocol):
    """Pays for pilot jobs.

    Every one is an account: reserved before Slurm is asked for it, and settled once when it is
    over, or left open where nobody knows what became of it. Called in the executors' event loop.
    """

    def blocked(self, wanted: Wanted) -> str:
        """Why a pilot job cannot be paid for now, ``""`` when it can."""

    async def reserve(self, wanted: Wanted) -> int:
        """The number of its account. Raises :class:`UnaffordableError`."""

    async def queued(self, account: int, job: str) -> None:
        """Slurm took it, as ``job``."""

    async def began(self, account: int, since: float) -> None:
        """It has its nodes, ``since`` seconds since the epoch."""

    async def settle(self, account: int, ran: Ran) -> None:
        """It is over. Never raises: there is nobody left to tell."""

    def exhausted(self) -> None:
        """A task can never run: there is no pilot job, and none can be paid for."""


class Free:
    """Pays for everything and writes nothing down."""

    def blocked(self, wanted: Wanted) -> str:  # noqa: ARG002
        return ""

    async def reserve(self, wanted: Wanted) -> int:  # noqa: ARG002
        return 0

    async def queued(self, account: int, job: str) -> None: ...

    async def began(self, account: int, since: float) -> None: ...

    async def settle(self, account: int, ran: Ran) -> None: ...

    def exhausted(self) -> None: ...
