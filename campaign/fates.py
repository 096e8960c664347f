"""What became of a candidate in a run, and what would under other rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from campaign.config import CampaignConfig
from campaign.contract import DONE, rejects
from campaign.events import SlotEnded
from campaign.guard import filtered
from campaign.model import Disposition
from campaign.slots import Slot
from campaign.state import CampaignState
from campaign.verify import finding
from checks.finding import Finding, Status

GUARD = "guard"


class Fate(StrEnum):
    """What becomes of a candidate that has not, or not yet, ended a slot."""

    PASSED = "passed"
    REJECTED = "rejected"
    NOT_CHECKED = "not_checked"  # something could not tell, and the policy lets nothing such pass
    FILTERED = "filtered"  # by the guard: verified and not simulated
    UNKNOWN = "unknown"  # it hangs on a rule that cannot be judged again


OUT = (Fate.REJECTED, Fate.NOT_CHECKED)


@dataclass(frozen=True, slots=True)
class Said:
    """What became of a candidate, by which check, rule or verifier, and why."""

    fate: Fate | Disposition
    by: str = ""
    detail: str = ""

    @classmethod
    def of(cls, fate: Fate, found: Finding) -> Said:
        return cls(fate, found.check, found.reason)


def in_process(slot: Slot, check_error: str, unknown: Collection[str] = ()) -> Said:
    """What the gate does with a candidate before it costs anything; ``unknown`` names rules."""
    standing = slot.standing
    known = [one for one in standing if not (one.kind and one.check in unknown)]
    for one in known:
        if one.status is not Status.ERROR:
            return Said.of(Fate.REJECTED, one)
    if len(known) < len(standing):
        return Said.of(Fate.UNKNOWN, next(one for one in standing if one not in known))
    if not known or check_error == "warn_continue":
        return Said(Fate.PASSED)
    return Said.of(Fate.NOT_CHECKED, known[0])


class Past(msgspec.Struct, frozen=True):  # one for each candidate of a run
    """A candidate where it stood in a run; ``content`` is its hash, "" for what is no mapping."""

    state: CampaignState
    config: CampaignConfig
    round: int
    slot: int
    generation: int
    content: str

    @property
    def end(self) -> SlotEnded | None:
        """The end of the slot, if it ended with this candidate."""
        end = self.state.rounds[self.round].slots.get(self.slot)
        mine = end is not None and bool(self.content) and end.candidate == self.content
        return end if end and mine and end.generation in (0, self.generation) else None

    def ended(self, was: Said) -> Said:
        """What came of the candidate, of which ``was`` was said in process."""
        if (end := self.end) is not None:
            later = self.state.rounds[self.round].reverified.get(self.slot)
            if later is not None and later.rejected_by:
                return Said(Fate.REJECTED, later.rejected_by, later.reason)
            if end.disposition == Disposition.TOMBSTONE:
                return Said(Fate.FILTERED, GUARD, end.reason)
            return replace(was, fate=Disposition(end.disposition))
        return was if was.fate in OUT else self._verified()

    def guarded(self, slot: Slot, config: CampaignConfig) -> Said:
        """What the guard of ``config`` does with a candidate that passed everything before it."""
        if config.simulation.guard is None or not isinstance(slot.candidate, dict):
            return Said(Fate.PASSED)
        slot.findings = (*slot.findings, *self._answers())
        why = filtered(config.simulation.guard, slot.candidate, slot.verdict)
        return Said(Fate.FILTERED, GUARD, why) if why else Said(Fate.PASSED)

    def _verified(self) -> Said:
        said = Said(Fate.PASSED)
        for verifier in self.config.verifiers:
            ended = self.state.result(verifier.name, self.content)
            if rejects(ended):
                assert ended is not None
                return Said(Fate.REJECTED, verifier.name, str(ended.value["reason"]))
            if ended is not None and ended.status != DONE and said.fate is Fate.PASSED:
                reason = ": ".join(filter(None, (ended.status, ended.reason)))
                said = Said(Fate.NOT_CHECKED, verifier.name, reason)
        return said

    def _answers(self) -> Iterator[Finding]:
        """What the verifiers had said when the slot ended, or ever, where it did not."""
        open_ = () if self.end is None else self.end.unanswered
        for verifier in self.config.verifiers:
            ended = self.state.result(verifier.name, self.content)
            if ended is not None:
                said = finding(ended)
                yield replace(said, status=Status.ERROR) if verifier.name in open_ else said
