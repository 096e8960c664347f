"""The accounts of one executor label's pilot jobs, one after the other; see ``payer``.

Everything here runs in the event loop; what blocks is sent to a thread.
"""

from __future__ import annotations

from executors.background import in_thread
from executors.kernel import Kernel
from executors.payer import Payer, UnaffordableError
from executors.ran import NEVER


class Account:
    """What a label's present pilot job is charged to; for a label without any it does nothing."""

    def __init__(self, label: str, kernel: Kernel, payer: Payer | None) -> None:
        self._label, self._kernel, self._payer = label, kernel, payer
        self._open: int | None = None
        self._name = ""  # of the job it is for

    def blocked(self) -> str:
        """Why another pilot job cannot be paid for now, ``""`` when it can."""
        if self._payer is None:
            return ""
        return self._payer.blocked(self._kernel.wanted(self._label))

    async def open(self) -> str:
        """Before the next pilot job is submitted; why nobody pays for it, else ``""``."""
        if self._payer is None:
            return ""
        wanted = self._kernel.wanted(self._label)
        try:
            self._open, self._name = await self._payer.reserve(wanted), wanted.name
        except UnaffordableError as refusal:
            return str(refusal)
        return ""

    async def queued(self) -> None:
        """It was submitted."""
        if self._payer is not None and self._open is not None:
            await self._payer.queued(self._open, self._kernel.sites[self._label].pilot())

    async def began(self) -> None:
        """Its workers have come up."""
        number = self._open
        if self._payer is None or number is None:
            return
        since = await in_thread(self._kernel.sites[self._label].began)
        if since and self._open == number:
            await self._payer.began(number, since)

    async def settle(self) -> None:
        """It was ended; where nobody knows what became of it, its account stays open."""
        number, self._open = self._open, None
        if self._payer is None or number is None:
            return
        site = self._kernel.sites.get(self._label)
        ran = NEVER if site is None else await in_thread(site.ran, self._name)
        if ran is not None:
            await self._payer.settle(number, ran)
