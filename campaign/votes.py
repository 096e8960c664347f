"""The votes of the judge that a run has paid for; a part of its state."""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign.events import VoteAsked, Voted


@dataclass(slots=True)
class Votes:
    """By the key of their question; changed by the ledger's events alone."""

    made: int = 0  # calls, those without a vote included
    numbers: dict[str, int] = field(default_factory=dict)  # the last call's, of each question
    cast: dict[str, list[bool]] = field(default_factory=dict)
    open: dict[tuple[str, int], VoteAsked] = field(default_factory=dict)

    def asked(self, event: VoteAsked) -> None:
        self.made += 1
        self.numbers[event.key] = event.vote
        self.open[event.key, event.vote] = event

    def voted(self, event: Voted) -> VoteAsked:
        """Take a vote; returns how it was asked for."""
        if event.passed is not None:
            self.cast.setdefault(event.key, []).append(event.passed)
        return self.open.pop((event.key, event.vote))

    def abandon(self) -> list[VoteAsked]:
        """Those that were asked for by a job that is gone."""
        left = list(self.open.values())
        self.open.clear()
        return left
