"""The accounts of one executor label's pilot jobs, one after the other; see ``purse``.

Everything here runs in the event loop; what blocks is sent to a thread.
"""

from __future__ import annotations

from executors.background import in_thread
from executors.kernel import Kernel
from executors.purse import Purse, UnaffordableError


class Account:
    """What a label's present pilot job is charged to; for a label without any it does nothing."""

    def __init__(self, label: str, kernel: Kernel, purse: Purse | None) -> None:
        self._label, self._kernel, self._purse = label, kernel, purse
        self._open: int | None = None

    def blocked(self) -> str:
        """Why another pilot job cannot be paid for now, ``""`` when it can."""
        if self._purse is None:
            return ""
        return self._purse.blocked(self._kernel.wanted(self._label))

    async def open(self) -> str:
        """Before the next pilot job is submitted; why nobody pays for it, else ``""``."""
        if self._purse is None:
            return ""
        try:
            self._open = await self._purse.reserve(self._kernel.wanted(self._label))
        except UnaffordableError as refusal:
            return str(refusal)
        return ""

    async def queued(self) -> None:
        """It was submitted."""
        if self._purse is not None and self._open is not None:
            await self._purse.queued(self._open, self._kernel.sites[self._label].pilot())

    async def began(self) -> None:
        """Its workers have come up."""
        number = self._open
        if self._purse is None or number is None:
            return
        since = await in_thread(self._kernel.sites[self._label].began)
        if since and self._open == number:
            await self._purse.began(number, since)

    async def settle(self) -> None:
        """It was ended; where nobody knows what became of it, its account stays open."""
        number, self._open = self._open, None
        if self._purse is None or number is None:
            return
        ran = await in_thread(self._kernel.ran, self._label)
        if ran is not None:
            await self._purse.settle(number, ran)
