"""The events of a ledger that say what nodes cost that were had, whether anything ran or not."""

from __future__ import annotations

from campaign.eventbase import LedgerEvent


class AllocationReserved(LedgerEvent, frozen=True, tag="allocation_reserved"):
    """Nodes of Slurm's for a time: a pilot job about to be submitted, or the driver's own job.

    Its worst case is reserved: nodes times ``walltime``. ``since`` is from when the driver's own
    job is counted: its start, or where an earlier driver in the same job was counted to.
    """

    allocation: int  # counts from 1
    what: str  # pilot | driver
    name: str  # of the job at Slurm
    nodes: int
    walltime: float  # seconds, 0 without a limit
    reserved: float  # node-hours; 0 for a driver's job that a cap ends at once
    job: str = ""  # Slurm's id, of a driver's job
    since: float = 0.0  # seconds since the epoch, of a driver's job


class AllocationQueued(LedgerEvent, frozen=True, tag="allocation_queued"):
    """Slurm took the pilot job."""

    allocation: int
    job: str  # Slurm's id


class AllocationBegan(LedgerEvent, frozen=True, tag="allocation_began"):
    """The pilot job has its nodes, by Slurm's clock since ``since``, and its workers came up."""

    allocation: int
    since: float  # seconds since the epoch


class AllocationEnded(LedgerEvent, frozen=True, tag="allocation_ended"):
    """The nodes were given back; the reservation is replaced by nodes times ``seconds``.

    ``source`` tells whose word that is: ``slurm`` (its controller's: from start to end in whole
    seconds), ``sacct`` (the accounting's), ``clock`` (ours, from the start Slurm told), or
    ``worst case`` (nobody knows any more: all that was reserved).
    """

    allocation: int
    seconds: float
    spent: float  # node-hours
    source: str
    job: str = ""  # Slurm's id, "" for one that was never queued
