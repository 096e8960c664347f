"""Every candidate a run saw: what became of it, and what stopped it first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from campaign.config import CampaignConfig
from campaign.contract import DONE, refusal, rejects
from campaign.events import SlotEnded, VerdictRecord
from campaign.fates import GUARD, Fate, Past
from campaign.gateconfig import policies
from campaign.judging import Judgement
from campaign.model import Disposition
from campaign.sittings import sittings
from campaign.slots import Slot, recalled
from campaign.space import content_hash
from campaign.state import CampaignState
from checks.finding import Finding, Layer, Status


@dataclass(frozen=True, slots=True)
class Stopped:
    """Where in the gate a candidate was stopped first, by which check, and why.

    ``rejected`` is False where a check or verifier could not tell and policy lets nothing such
    pass: no rejection, and nobody's saving.
    """

    layer: str  # shape, schema, domain, verifier or guard
    by: str
    reason: str = ""
    rejected: bool = True


class Seen(msgspec.Struct, frozen=True):  # there are many, and a struct is made in no time
    """One candidate of one generation or draw, in one slot.

    ``fate`` is a disposition where the slot ended with it. ``content`` is "" for what is no
    mapping, and so names nothing that could be run.
    """

    round: int
    slot: int
    generation: int  # 0: drawn to fill the slot
    draw: int
    parameters: object  # as the ledger has it
    content: str
    fate: str
    stopped: Stopped | None = None


@dataclass(frozen=True, slots=True)
class Unusable:
    """An answer without candidates for the slots asked: rejected as a whole, at a stage."""

    round: int
    generation: int
    asked: tuple[int, ...]  # the slots
    stage: str
    reason: str

    @property
    def slots(self) -> int:
        return len(self.asked)


def seen(state: CampaignState, config: CampaignConfig) -> Iterator[Seen]:
    """Every candidate that was judged, in the order it was."""
    lenient = policies(config).check_error == "warn_continue"
    names = {id(point): content for content, point in state.points.items()}
    for sitting in sittings(state, config):
        for verdict in sitting.verdicts:
            said = _in_process(verdict, observed=sitting.observed, lenient=lenient)
            candidate = sitting.candidates[verdict.slot]
            content = names.get(id(candidate)) or _name(candidate)
            past = Past(state, config, sitting.round, verdict.slot, sitting.generation, content)
            yield _seen(past, sitting.draw, candidate, said)


def unusable(state: CampaignState) -> Iterator[Unusable]:
    """Every answer that held no candidate for each slot asked for."""
    for number, rounds in sorted(state.rounds.items()):
        for generation in sorted(rounds.answers):
            stage, reason = rounds.refused(generation)
            if stage:
                asked = tuple(rounds.asked[generation].slots)
                yield Unusable(number, generation, asked, stage, reason)


def _name(candidate: object) -> str:
    return content_hash(candidate) if isinstance(candidate, dict) else ""


def _seen(past: Past, draw: int, candidate: object, said: Stopped | None) -> Seen:
    end = past.end
    stopped = said or _later(past, end)
    if end is not None:
        fate = end.disposition
        if fate == Disposition.TOMBSTONE:
            stopped = Stopped(GUARD, GUARD, end.reason)
    elif stopped is None:
        fate = Fate.PASSED.value
    else:
        fate = (Fate.REJECTED if stopped.rejected else Fate.NOT_CHECKED).value
    place = (past.round, past.slot, past.generation, draw)
    return Seen(*place, candidate, past.content, fate, stopped)


def _in_process(verdict: VerdictRecord, *, observed: bool, lenient: bool) -> Stopped | None:
    """What the in-process checks did with a candidate; most pass, and cost only a look."""
    passed = {one.status for one in verdict.findings} <= {"pass"}
    if passed and (not verdict.expect or (verdict.expect["overall_pass"] and not verdict.errors)):
        return None
    slot = Slot(0)
    findings = tuple(
        Finding(one.check, Layer(one.layer), Status(one.status), one.reason)
        for one in verdict.findings
    )
    expect = recalled(verdict) if verdict.expect else None
    slot.judged({}, Judgement(findings, expect), observing=observed)
    standing = slot.standing
    if not standing or (slot.doubted and lenient):
        return None
    told = [one for one in standing if one.status is Status.REJECT]
    first = (told or standing)[0]
    return Stopped(first.layer.value, first.check, first.reason, bool(told))


def _later(past: Past, end: SlotEnded | None) -> Stopped | None:
    """What the verifiers did with a candidate that was put to them."""
    again = None if end is None else past.state.rounds[past.round].reverified.get(past.slot)
    if again is not None and again.rejected_by:
        return Stopped(Layer.VERIFIER.value, again.rejected_by, again.reason)
    blocked: Stopped | None = None
    for verifier in past.config.verifiers:
        ended = past.state.result(verifier.name, past.content)
        if rejects(ended):
            return Stopped(Layer.VERIFIER.value, verifier.name, refusal(ended))
        if ended is not None and ended.status != DONE and blocked is None and end is None:
            reason = ": ".join(filter(None, (ended.status, ended.reason)))
            blocked = Stopped(Layer.VERIFIER.value, verifier.name, reason, rejected=False)
    return blocked
