"""What the rules of a run have said, by agent and by round: from the ledger alone.

A candidate is one proposal for one slot, so a slot that was asked for twice counts twice.
Percentages are null where there is nothing to divide by.

==================  ===============================================================================
key                 meaning
==================  ===============================================================================
``name``            the campaign's name; ``run_dir``: the run directory
``candidates``      candidates that the rules, or the parameter space before them, judged
``checked``         whether any rule passed or failed any candidate
``rules``           every rule, most failing first: ``id``, ``type``, ``severity``; ``judged``, the
                    sum of ``passed`` and ``failed``; ``waived``, where it did not apply;
                    ``not_checked``, where it could not tell or the parameter space rejected the
                    candidate before; ``pass_rate``, percent of ``judged``; the same numbers in
                    ``agents``, by agent, and in ``rounds``, a list with ``round`` and ``agent``
``agents``          ``agent`` (``surrogate`` also for what it fills), ``candidates``, ``passed``
                    (the verdict's ``overall_pass``), ``share`` (percent), ``no_candidates``
                    (answers that held none to judge)
``rounds``          the same for each ``round`` and ``agent``, and ``most_failing``: a rule's id,
                    null where none failed
``fail_under``      the least ``share`` that was asked for, or null
``missed``          why the exit code is 1, in words; empty where it is 0
==================  ===============================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from campaign.config import CampaignConfig
from campaign.events import Judged, RuleRecord
from campaign.roundstate import RoundState
from campaign.slots import recalled
from campaign.state import CampaignState
from checks.finding import Finding, Severity, Status
from checks.world import JUDGE, derived_id

FALLBACK = "surrogate"
"""Who proposes what the surrogate draws to fill a slot."""

Where: TypeAlias = tuple[int, str]
"""A round and who proposed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a rule said what."""

    passed: int = 0
    failed: int = 0
    waived: int = 0
    not_checked: int = 0

    @classmethod
    def of(cls, words: Counter[str]) -> Tally:
        """From counts of what :func:`word` gives."""
        return cls(words["passed"], words["failed"], words["waived"], words["not_checked"])

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.waived + other.waived,
            self.not_checked + other.not_checked,
        )

    @property
    def judged(self) -> int:
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        return percent(self.passed, self.judged)


def word(finding: Finding) -> str:
    """What a finding counts as."""
    if finding.status is Status.SKIPPED:
        return "waived" if finding.passed else "not_checked"
    if finding.status is Status.ERROR:
        return "not_checked"
    return "passed" if finding.passed else "failed"


def percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One rule, with what it said in every round of every agent's candidates."""

    id: str
    type: str
    severity: str
    tallies: Mapping[Where, Tally] = field(default_factory=dict)

    def total(self, agent: str | None = None) -> Tally:
        """Over all rounds, of one agent or of all."""
        mine = (tally for (_, who), tally in self.tallies.items() if agent in (None, who))
        return sum(mine, Tally())


@dataclass(frozen=True, slots=True)
class Share:
    """Of the candidates of an agent, those that passed all rules that gate."""

    candidates: int = 0
    passed: int = 0
    no_candidates: int = 0  # answers that held none to judge

    def __add__(self, other: Share) -> Share:
        return Share(
            self.candidates + other.candidates,
            self.passed + other.passed,
            self.no_candidates + other.no_candidates,
        )

    @property
    def percent(self) -> float | None:
        return percent(self.passed, self.candidates)


@dataclass(frozen=True, slots=True)
class RuleReport:
    """What the rules of a run have said; ``rules`` are sorted, most failing first."""

    rules: tuple[RuleLine, ...]
    shares: Mapping[Where, Share]
    agent: str  # the configured one

    @property
    def agents(self) -> Mapping[str, Share]:
        """Over all rounds; the configured agent comes first, and is there always."""
        found = {self.agent: Share()}
        for (_, agent), share in self.shares.items():
            found[agent] = found.get(agent, Share()) + share
        return found

    @property
    def candidates(self) -> int:
        return sum(share.candidates for share in self.shares.values())

    @property
    def checked(self) -> bool:
        return any(rule.total().judged for rule in self.rules)

    def most_failing(self, where: Where) -> str | None:
        """The rule that failed most candidates of an agent in a round."""
        failed = {rule.id: rule.tallies.get(where, Tally()).failed for rule in self.rules}
        most = max(failed, key=failed.__getitem__, default="")
        return most if failed.get(most) else None

    def missed(self, fail_under: float | None) -> list[str]:
        """What is wrong: nothing was checked, or an agent fell short. Empty when all is well."""
        if not self.checked:
            return [f"nothing was checked: {self._unchecked()}"]
        return [] if fail_under is None else list(self._short(fail_under))

    def _unchecked(self) -> str:
        if not self.rules:
            return "the run has no rules; its config gives some under expect"
        if not self.candidates:
            return "no candidate has been judged; a round has to get that far"
        return (
            f"none of {len(self.rules)} rules passed or failed any of {self.candidates} candidates;"
            " they were waived, could not tell, or the parameter space rejected the candidate"
        )

    def _short(self, fail_under: float) -> Iterator[str]:
        for agent, share in self.agents.items():
            if share.percent is None:
                yield f"agent {agent}: no candidate was judged; at least {fail_under:g}% must pass"
            elif share.percent < fail_under:
                yield (
                    f"agent {agent}: {share.passed} of {share.candidates} candidates passed "
                    f"({share.percent:.4g}%); at least {fail_under:g}% must"
                )


def rule_report(state: CampaignState, config: CampaignConfig) -> RuleReport:
    """Count what the rules said in a run, which may be going on."""
    words: dict[str, dict[Where, Counter[str]]] = {}
    levels: dict[str, str] = {}
    shares: dict[Where, Share] = {}
    for number, rounds in sorted(state.rounds.items()):
        shares[number, config.agent.kind] = Share(no_candidates=_unusable(rounds))
        for judged in rounds.judged.values():
            where = (number, FALLBACK if judged.draw else config.agent.kind)
            shares[where] = shares.get(where, Share()) + _share(judged)
            for finding in _said(judged):
                counts = words.setdefault(finding.check, {}).setdefault(where, Counter())
                counts[word(finding)] += 1
                levels[finding.check] = finding.severity.value
    lines = [
        RuleLine(
            name := rule_id(rule),
            str(rule.entry.get("type")),
            levels.get(name, _level(rule)),
            {where: Tally.of(counts) for where, counts in words.get(name, {}).items()},
        )
        for rule in (state.run.rules if state.run else ())
    ]
    return RuleReport(tuple(sorted(lines, key=_failing)), shares, config.agent.kind)


def rule_id(rule: RuleRecord) -> str:
    """What a rule of a ledger is called in verdicts."""
    return str(rule.entry.get("id") or derived_id(rule.entry))


def as_data(report: RuleReport, fail_under: float | None = None) -> dict[str, Any]:
    """The report as JSON holds it, without ``name`` and ``run_dir``."""
    agents = report.agents
    return {
        "candidates": report.candidates,
        "checked": report.checked,
        "rules": [_line(rule, list(agents)) for rule in report.rules],
        "agents": [{"agent": name, **_shared(share)} for name, share in agents.items()],
        "rounds": [
            {
                "round": where[0],
                "agent": where[1],
                **_shared(share),
                "most_failing": report.most_failing(where),
            }
            for where, share in report.shares.items()
        ],
        "fail_under": fail_under,
        "missed": report.missed(fail_under),
    }


def _said(judged: Judged) -> Iterator[Finding]:
    for verdict in judged.verdicts:
        if verdict.expect:
            yield from recalled(verdict).findings


def _share(judged: Judged) -> Share:
    verdicts = [one.expect for one in judged.verdicts if one.expect]
    return Share(len(verdicts), sum(one["overall_pass"] for one in verdicts))


def _unusable(rounds: RoundState) -> int:
    """Answers of the agent that held no candidate for each slot asked for."""
    return sum(
        bool(answer.stage) or len(answer.candidates) != len(rounds.asked[generation].slots)
        for generation, answer in rounds.answers.items()
    )


def _level(rule: RuleRecord) -> str:
    soft = rule.entry.get("type") == JUDGE
    return str(rule.entry.get("severity") or (Severity.INFO if soft else Severity.ERROR).value)


def _failing(rule: RuleLine) -> tuple[int, float]:
    total = rule.total()
    return -total.failed, 100.0 if total.pass_rate is None else total.pass_rate


def _line(rule: RuleLine, agents: Sequence[str]) -> dict[str, Any]:
    return {
        "id": rule.id,
        "type": rule.type,
        "severity": rule.severity,
        **_tallied(rule.total()),
        "agents": {agent: _tallied(rule.total(agent)) for agent in agents},
        "rounds": [
            {"round": number, "agent": agent, **_tallied(tally)}
            for (number, agent), tally in sorted(rule.tallies.items())
        ],
    }


def _tallied(tally: Tally) -> dict[str, Any]:
    names = ("judged", "passed", "failed", "waived", "not_checked", "pass_rate")
    return {name: getattr(tally, name) for name in names}


def _shared(share: Share) -> dict[str, Any]:
    return {
        "candidates": share.candidates,
        "passed": share.passed,
        "share": share.percent,
        "no_candidates": share.no_candidates,
    }
