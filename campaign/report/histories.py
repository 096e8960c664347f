"""Every candidate's history in one line, and what stands behind it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from campaign.config import CampaignConfig
from campaign.contract import objective_value, refusal
from campaign.events import TaskEnded, VerdictRecord
from campaign.lines import plain
from campaign.model import SIMULATION
from campaign.observations import distance
from campaign.report.candidates import Seen
from campaign.slots import recalled
from campaign.state import CampaignState
from checks.finding import Status

SHOWN = 2000
BEST = 200  # of them the best of the run, the others the last


@dataclass(frozen=True, slots=True)
class Said:
    """One finding that is not a plain pass, or a try of a task."""

    by: str
    layer: str
    status: str
    detail: str = ""
    seconds: float | None = None
    node_hours: float | None = None
    host: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """One candidate with everything that was said of it."""

    seen: Seen
    value: float | None
    node_hours: float
    said: tuple[Said, ...]


def histories(
    state: CampaignState, config: CampaignConfig, candidates: Sequence[Seen]
) -> tuple[History, ...]:
    """Those that are shown: all of them, or of many the best and the last, in their order."""
    return tuple(history(state, config, one) for one in _chosen(state, config, candidates))


def history(state: CampaignState, config: CampaignConfig, one: Seen) -> History:
    """What there is to tell of one candidate."""
    tasks = [*(each.name for each in config.verifiers), SIMULATION]
    tries = [
        ended
        for task in tasks
        if one.content and (found := state.tasks.get((task, one.content))) is not None
        for ended in found.ended
    ]
    value = _value(state, config, one)
    said = (*findings(state, one), *map(_tried, tries))
    return History(one, value, sum(ended.spent for ended in tries), said)


def findings(state: CampaignState, one: Seen, *, passes: bool = False) -> Iterator[Said]:
    """What the checks in the driver said of a candidate; what passed is left out by default."""
    judged = state.rounds[one.round].judged[one.generation, one.draw]
    for verdict in judged.verdicts:
        if verdict.slot == one.slot:
            yield from _findings(verdict, observed=judged.observed, passes=passes)


def _findings(verdict: VerdictRecord, *, observed: bool, passes: bool) -> Iterator[Said]:
    for record in verdict.findings:
        if passes or record.status != "pass":
            yield Said(record.check, record.layer, record.status, plain(record.reason))
    for finding in recalled(verdict).findings if verdict.expect else ():
        if passes or finding.status is not Status.PASS:
            blocks = finding.gates and not observed
            word = finding.status.value if blocks else f"{finding.status.value}, not gating"
            yield Said(finding.check, finding.layer.value, word, plain(finding.reason))


def _tried(ended: TaskEnded) -> Said:
    refused = refusal(ended)
    word = "reject" if refused else ended.status
    layer = SIMULATION if ended.task == SIMULATION else "verifier"
    detail = plain(refused or ended.reason)
    return Said(ended.task, layer, word, detail, ended.seconds, ended.spent, ended.host)


def _value(state: CampaignState, config: CampaignConfig, one: Seen) -> float | None:
    ended = state.result(SIMULATION, one.content) if one.content else None
    return objective_value(ended, config.objective.name)


def _chosen(
    state: CampaignState, config: CampaignConfig, candidates: Sequence[Seen]
) -> Sequence[Seen]:
    if len(candidates) <= SHOWN:
        return candidates
    off: Mapping[int, float] = {
        place: distance(config.objective, value)
        for place, one in enumerate(candidates)
        if (value := _value(state, config, one)) is not None
    }
    best = set(heapq.nsmallest(BEST, off, key=off.__getitem__))
    others = [place for place in range(len(candidates)) if place not in best]
    return [candidates[place] for place in sorted([*best, *others[len(best) - SHOWN :]])]
