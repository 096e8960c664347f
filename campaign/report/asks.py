"""Asks that brought a slot no candidate: what became of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from campaign import events
from campaign.report.chronicle import Chronicle
from campaign.roundstate import Calls, RoundState
from campaign.state import CampaignState

OPEN, JUDGING = "open", "judging"
"""Stages of an ask that is not over: nobody has answered yet, or the answer is being judged."""


def fruitless(
    state: CampaignState, told: Chronicle, number: int, slot: int
) -> Iterator[dict[str, Any]]:
    """Every ask of round ``number`` for the slot of which no candidate of it was judged."""
    rounds = state.rounds.get(number, RoundState())
    for generation, asked in sorted(rounds.asked.items()):
        if slot not in asked.slots or (generation, 0) in rounds.judged:
            continue
        answer, place = rounds.answers.get(generation), (number, generation)
        stage, reason = _became(rounds, asked)
        calls = rounds.calls.get(generation, Calls())
        yield {
            "round": number,
            "slot": slot,
            "generation": generation,
            "repair": asked.repair,
            "slots": asked.slots,
            "asked_at": told.asked.get(place),
            "ended_at": told.answered.get(place, told.unanswered.get(place)),
            "stage": stage,
            "reason": reason,
            "calls": calls.made,
            "failed": calls.failed,
            "tokens": answer.tokens if answer else None,
            "finish_reason": answer.finish_reason if answer else "",
        }


def _became(rounds: RoundState, asked: events.Asked) -> tuple[str, str]:
    """The stage an ask ended at, and why."""
    if (none := rounds.unanswered.get(asked.generation)) is not None:
        return none.stage, none.reason
    if asked.generation not in rounds.answers:
        calls = rounds.calls.get(asked.generation)
        return OPEN, calls.reason if calls else ""
    stage, reason = rounds.refused(asked.generation)
    return stage or JUDGING, reason
