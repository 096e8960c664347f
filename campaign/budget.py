"""Caps on what a campaign may spend: reserved before, settled after, never refilled.

The counters are part of the state, so they follow from the ledger; a kill, a resume or a
requeue refills nothing. A cap ``per: job`` counts from the start of the present job.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign.config import Budgets, Cap, HoursCap

ALLOCATED = "allocated"
"""The counter of what nodes cost that were had; the caps it is held against say so."""


@dataclass(slots=True)
class Counter:
    """What one cap counts, in its own unit; ``at_job`` is ``spent`` when the job started."""

    open: int = 0  # reservations not yet settled
    reserved: float = 0.0
    spent: float = 0.0
    at_job: float = 0.0

    def used(self, per: str) -> float:
        """What was spent that counts under a cap: of the campaign, or of the present job."""
        return self.spent - (self.at_job if per == "job" else 0.0)


@dataclass(slots=True)
class Usage:
    """The counters of a run, by the name of their cap."""

    counters: dict[str, Counter] = field(default_factory=dict)

    def counter(self, cap: str) -> Counter:
        """A cap's counter to read; looking at one that nothing has used changes nothing."""
        return self.counters.get(cap) or Counter()

    def reserve(self, cap: str, amount: float) -> None:
        counter = self._used(cap)
        counter.open += 1
        counter.reserved += amount

    def settle(self, cap: str, reserved: float, spent: float) -> None:
        counter = self._used(cap)
        counter.open -= 1
        # Sums of floats leave a rest; what nothing holds is nothing.
        counter.reserved = counter.reserved - reserved if counter.open > 0 else 0.0
        counter.spent += spent

    def _used(self, cap: str) -> Counter:
        if cap not in self.counters:
            self.counters[cap] = Counter()
        return self.counters[cap]

    def new_job(self) -> None:
        for counter in self.counters.values():
            counter.at_job = counter.spent

    def remaining(self, name: str, cap: Cap) -> float:
        """What may still be reserved under a cap; negative when it was overdrawn."""
        counter = self.counter(counted_by(name, cap))
        return cap.limit - counter.used(cap.per) - counter.reserved


def counted_by(name: str, cap: Cap | None) -> str:
    """The counter that a cap of that name is held against."""
    return ALLOCATED if isinstance(cap, HoursCap) and cap.count == "allocation" else name


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A cap that a spend would pass."""

    cap: str
    limit: float
    spent: float
    reserved: float
    wanted: float
    per: str

    def __str__(self) -> str:
        held = f" and {self.reserved:.4g} reserved" if self.reserved else ""
        return (
            f"budgets.{self.cap}: {self.spent:.4g} of {self.limit:.4g} spent{held}; "
            f"the next step may need {self.wanted:.4g}"
        )


def blocking(usage: Usage, budgets: Budgets, wanted: dict[str, float]) -> Exhausted | None:
    """The first cap that would be passed by reserving ``wanted`` (cap name -> amount)."""
    for name, amount in wanted.items():
        cap = budgets.cap(name)
        if cap is not None and amount > usage.remaining(name, cap) + 1e-12:
            counter = usage.counter(counted_by(name, cap))
            used = counter.used(cap.per)
            return Exhausted(name, cap.limit, used, counter.reserved, amount, cap.per)
    return None
