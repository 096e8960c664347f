"""The candidates of a run as they were judged: which together, beside what, after what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from campaign.config import CampaignConfig, SurrogateAgent
from campaign.events import VerdictRecord
from campaign.judging import LOST, UNSTATED, Rationale
from campaign.model import Disposition
from campaign.roundstate import RoundState
from campaign.space import Point
from campaign.state import CampaignState


@dataclass(frozen=True, slots=True)
class Sitting:
    """Candidates that were judged together.

    ``pinned`` are the candidates of the round that had passed before, by slot, ``history`` those
    of the earlier rounds. What the agent said of them is in no ledger.
    """

    round: int
    generation: int  # 0: drawn to fill what no proposal had
    draw: int
    candidates: Mapping[int, object]  # by slot, as the ledger has them
    verdicts: Sequence[VerdictRecord]
    observed: bool
    pinned: Mapping[int, Point]
    history: Sequence[Point]  # grows from round to round; not to be kept
    rationale: Rationale


def sittings(state: CampaignState, config: CampaignConfig) -> Iterator[Sitting]:
    """Every sitting of a run, in the order they were held."""
    unspoken = isinstance(config.agent, SurrogateAgent)
    history: list[Point] = []
    for number, rounds in sorted(state.rounds.items()):
        for generation, draw in sorted(rounds.judged, key=lambda place: (place[1], place[0])):
            candidates = _candidates(rounds, generation, draw)
            judged = rounds.judged[generation, draw]
            yield Sitting(
                number,
                generation,
                draw,
                candidates,
                judged.verdicts,
                judged.observed,
                _pinned(rounds, generation, candidates),
                history,
                UNSTATED if draw or unspoken else LOST,
            )
        history += [slot.parameters for slot in rounds.slots.values() if slot.candidate]


def _candidates(rounds: RoundState, generation: int, draw: int) -> dict[int, object]:
    if draw:
        filled = rounds.fills[draw]
        return dict(zip(filled.slots, filled.candidates, strict=True))
    slots, answer = rounds.asked[generation].slots, rounds.answers[generation]
    return dict(zip(slots, answer.candidates, strict=True))


def _pinned(
    rounds: RoundState, generation: int, candidates: Mapping[int, object]
) -> dict[int, Point]:
    """What had passed by then: of earlier generations, and before a draw all that is not drawn."""
    return {
        slot: ended.parameters
        for slot, ended in sorted(rounds.slots.items())
        if slot not in candidates
        and ended.disposition != Disposition.TOMBSTONE
        and (not generation or 0 < ended.generation < generation)
    }
