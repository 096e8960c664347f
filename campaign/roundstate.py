"""One round as its ledger has it, and the calls of its agent; parts of a run's state."""

from __future__ import annotations

from dataclasses import dataclass, field

from campaign import events
from checks.domain import too_many_or_few
from checks.finding import Status


@dataclass(slots=True)
class Calls:
    """The calls that one ask took; ``open`` is the one whose end is not known."""

    made: int = 0
    failed: int = 0  # those that used up a retry; one that ended with its job is among them
    reason: str = ""  # why the last of them failed
    open: events.Called | None = None


@dataclass(slots=True)
class RoundState:
    """One round as far as it got."""

    asked: dict[int, events.Asked] = field(default_factory=dict)  # by generation
    calls: dict[int, Calls] = field(default_factory=dict)  # by generation
    unanswered: dict[int, events.Unanswered] = field(default_factory=dict)  # by generation
    answers: dict[int, events.Answered] = field(default_factory=dict)  # by generation
    fills: dict[int, events.Filled] = field(default_factory=dict)  # by draw
    judged: dict[tuple[int, int], events.Judged] = field(default_factory=dict)  # (generation, draw)
    slots: dict[int, events.SlotEnded] = field(default_factory=dict)
    reverified: dict[int, events.Reverified] = field(default_factory=dict)
    ended: bool = False

    def refused(self, generation: int) -> tuple[str, str]:
        """The stage an answer as a whole was rejected at, and why; empty where none was."""
        asked, answer = self.asked.get(generation), self.answers.get(generation)
        if asked is None or answer is None:
            return "", ""
        if answer.stage:
            return answer.stage, answer.reason
        count = too_many_or_few(len(asked.slots), len(answer.candidates))
        return (count.check, count.reason) if count.status is Status.REJECT else ("", "")
