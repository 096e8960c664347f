"""What a driver may still spend: the ledger's counters, and what is on its way to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from campaign.budget import Exhausted, blocking
from campaign.config import Budgets
from campaign.events import Event
from campaign.recorder import Recorder


class Purse:
    """Reserves so that no cap is passed, however many reserve at once."""

    def __init__(self, budgets: Budgets, recorder: Recorder) -> None:
        self._budgets = budgets
        self._recorder = recorder
        self._held: defaultdict[str, float] = defaultdict(float)  # on its way to the ledger
        self._holds = 0

    def blocked(self, wanted: Mapping[str, float]) -> Exhausted | None:
        """The first cap that would be passed by spending ``wanted``, by the name of its cap."""
        whole = {cap: amount + self._held[cap] for cap, amount in wanted.items()}
        return blocking(self._recorder.state.usage, self._budgets, whole)

    async def reserve(self, event: Event, wanted: Mapping[str, float]) -> Exhausted | None:
        """Record the event that reserves ``wanted``, unless a cap forbids it."""
        blocked = self.blocked(wanted)
        if blocked is None:
            with self.holding(wanted):
                await self._recorder.record(event)
        return blocked

    @contextmanager
    def holding(self, amounts: Mapping[str, float]) -> Iterator[None]:
        """Count amounts as spoken for until the event that reserves them is in the state."""
        self._holds += 1
        for cap, amount in amounts.items():
            self._held[cap] += amount
        try:
            yield
        finally:
            self._holds -= 1
            for cap, amount in amounts.items():
                self._held[cap] -= amount
            if not self._holds:
                self._held.clear()  # sums of floats leave a rest; what nothing holds is nothing
