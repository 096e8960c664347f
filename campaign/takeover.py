"""In a Slurm job: when the lock of the driver before may be taken for a dead one's.

That driver was killed with its job, on another host, or it is a submit that has not yet written
down the job it gave to Slurm. The lock says nothing for two minutes; Slurm knows at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from campaign.ledger import LedgerError, read
from campaign.lock import BEAT, LEASE, Holder, alive_holder, bury
from campaign.state import fold
from executors import slurm

_LOOK = 0.2  # seconds between two looks at the lock
_ASK = 25  # looks between two questions to Slurm


async def until_free(run_dir: Path) -> None:
    """Wait for the lock while its holder may be dead; outside a Slurm job return at once."""
    if not slurm.current_job():
        return
    for turn in range(int((LEASE + 2 * BEAT) / _LOOK)):
        holder = alive_holder(run_dir)
        if holder is None:
            return
        if turn % _ASK == 0 and await asyncio.to_thread(_died_with_its_job, run_dir, holder):
            bury(run_dir, holder)
        await asyncio.sleep(_LOOK)


def _died_with_its_job(run_dir: Path, holder: Holder) -> bool:
    """Whether the holder is the driver that the ledger names, and its Slurm job is over."""
    with contextlib.suppress(LedgerError):
        job = fold(read(run_dir)).job
        if job is not None and (job.host, job.pid) == (holder.host, holder.pid):
            return bool(job.slurm) and slurm.is_over(job.slurm)
    return False
