"""What a run would have come to under other rules, as data with documented keys.

====================  =============================================================================
key                   meaning
====================  =============================================================================
``name``              the campaign's name; ``run_dir``: the run directory; ``config``: the file
                      with the other rules; ``state``: that of the run, as in ``status``
``candidates``        candidates judged again: one for each slot of each generation and draw
``counts``            of them, ``same``, ``would_pass`` (were rejected), ``would_fail`` (had
                      passed; also those the guard would now filter) and ``unknown``
``changes``           every candidate that would fare otherwise: ``round``, ``slot``,
                      ``generation`` (0: drawn to fill the slot, by ``draw``), ``parameters``;
                      ``was``, what came of it in the run: its slot's disposition, or ``filtered``,
                      ``rejected``, ``not_checked``, ``passed`` (and nothing after that); ``now``:
                      ``passed``, ``rejected``, ``not_checked`` (a rule could not tell) or
                      ``filtered``; each with ``…_by``, a check, rule or verifier, and
                      ``…_detail``; ``value`` of the objective or null; ``node_hours`` spent on it
``unknown``           the same of candidates that hang on a rule that cannot be judged again
``rules``             every rule of either config, and the checks of the parameter space that
                      rejected something: ``id``, ``reworded`` (other content under the same id),
                      ``run`` and ``now``, each null or with ``passed``, ``failed``, ``waived`` and
                      ``not_checked`` candidates
``recalled``          rules whose verdict in the run was taken again, as it cannot be had anew
``not_judged``        rules that cannot be judged again, and of which the run has no verdict
``blind``             checks of a whole record that were not shown the rationale
``node_hours``        ``saved``: spent on candidates that would have been stopped before;
                      ``more``: an estimate for candidates that would now pass; ``displaced``:
                      spent on later candidates of a slot that an earlier one would have ended;
                      each with ``total``, ``candidates`` (by content) and ``by_task``
``estimates``         by task, what ``more`` rests on: ``node_hours`` for one candidate, the mean
                      of ``n`` in this run, or with ``n`` 0 the worst case of its config
``reopened``          slots that ended with a candidate that would now fail: the run would have
                      asked again or filled them, at a cost that is in none of the numbers
``best``              whether the run's best candidate would still pass: ``true``, ``false``, or
                      null where there is none or nobody can tell
``notes``             what the numbers leave out, in words
====================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.contract import objective_value
from campaign.fates import OUT, Fate, Said
from campaign.gateconfig import observes, policies
from campaign.model import SIMULATION
from campaign.observations import best
from campaign.rejudge import Case, Replay, rejudge
from campaign.rejudgecost import Bill, Hours, bill, spent
from campaign.state import CampaignState


@dataclass(frozen=True, slots=True)
class Comparison:
    """A replay with what it comes to."""

    state: CampaignState
    config: CampaignConfig
    other: CampaignConfig
    replay: Replay
    bill: Bill

    @property
    def changes(self) -> list[Case]:
        return [case for case in self.replay.cases if case.changed]

    @property
    def unknown(self) -> list[Case]:
        return [case for case in self.replay.cases if case.now.fate is Fate.UNKNOWN]

    @property
    def counts(self) -> dict[str, int]:
        changes = self.changes
        passing = sum(would_pass(case) for case in changes)
        unknown = len(self.unknown)
        return {
            "same": len(self.replay.cases) - len(changes) - unknown,
            "would_pass": passing,
            "would_fail": len(changes) - passing,
            "unknown": unknown,
        }

    def value(self, case: Case) -> float | None:
        """The objective of a candidate that was simulated."""
        ended = self.state.result(SIMULATION, case.content)
        return objective_value(ended, self.config.objective.name)

    def best(self) -> Case | None:
        """The candidate of the run's best observation."""
        found = best(self.state, self.config)
        if found is None:
            return None
        at = (found.round, found.slot.slot, found.slot.candidate)
        cases = [c for c in self.replay.cases if (c.round, c.slot, c.content) == at]
        return cases[-1] if cases else None


def compare(state: CampaignState, config: CampaignConfig, other: LoadedConfig) -> Comparison:
    """Judge a run again. Raises ``ConfigError`` when ``other`` is about different parameters."""
    replay = rejudge(state, config, other)
    cost = bill(state, config, other.config, replay.cases)
    return Comparison(state, config, other.config, replay, cost)


def would_pass(case: Case) -> bool:
    """Of a change: whether it is for the better."""
    return case.now.fate is Fate.PASSED or (case.was.fate in OUT and case.now.fate not in OUT)


def as_data(found: Comparison) -> dict[str, Any]:
    """It all as JSON holds them, without ``name``, ``run_dir``, ``config``, ``state``."""
    replay, cost = found.replay, found.bill
    top = found.best()
    return {
        "candidates": len(replay.cases),
        "counts": found.counts,
        "changes": [_case(found, case) for case in found.changes],
        "unknown": [_case(found, case) for case in found.unknown],
        "rules": [
            {
                "id": one.check,
                "reworded": one.reworded,
                "run": None if one.run is None else asdict(one.run),
                "now": None if one.now is None else asdict(one.now),
            }
            for one in replay.checks
        ],
        "recalled": list(replay.recalled),
        "not_judged": list(replay.unknown),
        "blind": list(replay.blind),
        "node_hours": {
            name: _hours(hours)
            for name, hours in (
                ("saved", cost.saved),
                ("more", cost.more),
                ("displaced", cost.displaced),
            )
        },
        "estimates": {one.task: {"node_hours": one.node_hours, "n": one.n} for one in cost.bases},
        "reopened": cost.reopened,
        "best": None if top is None or top.now.fate is Fate.UNKNOWN else not _falls(top),
        "notes": list(notes(found)),
    }


def notes(found: Comparison) -> Iterator[str]:
    """What is to be known beside the numbers."""
    replay, cost, counts = found.replay, found.bill, found.counts
    top = found.best()
    if top is not None and _falls(top):
        yield f"the best candidate of the run would not have passed: {words(top.now)}"
    if cost.reopened:
        yield (
            f"slots that would have been asked for again or filled: {cost.reopened}; what that "
            "costs is in none of the numbers"
        )
    if counts["would_pass"]:
        yield (
            "of what would now pass, verifiers may yet reject some; and what came later for the "
            "same slot would not have been proposed"
        )
    if replay.recalled:
        yield f"not judged again, the run's verdict taken: {', '.join(replay.recalled)}"
    if replay.unknown:
        yield f"not judged again, and the run has no verdict: {', '.join(replay.unknown)}"
    if replay.blind:
        yield f"judged without the agent's rationale: {', '.join(replay.blind)}"
    yield from _policies(found)


def _policies(found: Comparison) -> Iterator[str]:
    policy = policies(found.other)
    if observes(found.other):
        yield "repair: none: what the rules would have said is counted, and rejects nothing"
    if policy.semantic_rejection == "return_last" and found.counts["would_fail"]:
        yield (
            "policy: return_last: the last rejected candidate of a slot would be run all the "
            "same, so its simulation is not counted as saved"
        )
    if policy.check_error == "fail_run":
        stops = [case for case in found.replay.cases if case.now.fate is Fate.NOT_CHECKED]
        if stops:
            yield (
                f"policy: check_error: fail_run: the run would have failed in round "
                f"{stops[0].round}, where {stops[0].now.by} could not tell"
            )


def words(said: Said) -> str:
    """What became of a candidate, in words: ``rejected by level``."""
    word = said.fate.value.replace("_", " ")
    return f"{word} by {said.by}" if said.by else word


def _falls(case: Case) -> bool:
    return case.changed and not would_pass(case)


def _case(found: Comparison, case: Case) -> dict[str, Any]:
    return {
        "round": case.round,
        "slot": case.slot,
        "generation": case.generation,
        "draw": case.draw,
        "parameters": case.parameters,
        "was": case.ended.fate.value,
        "was_by": case.ended.by,
        "was_detail": case.ended.detail,
        "now": case.now.fate.value,
        "now_by": case.now.by,
        "now_detail": case.now.detail,
        "value": found.value(case),
        "node_hours": spent(found.state, found.config, case.content),
    }


def _hours(hours: Hours) -> dict[str, Any]:
    return {
        "total": hours.total,
        "candidates": hours.candidates,
        "by_task": dict(hours.by_task),
    }
