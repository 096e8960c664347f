"""Candidates from a file, judged by the rules of a campaign without running anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from campaign.grounding import RATIONALE
from campaign.judging import CANDIDATES
from campaign.packing import pack
from campaign.rulebook import RuleBook
from checks.domain import judge as judge_by_space, normalise
from checks.finding import Finding, Status, Verdict

SAID = ("passed", "failed", "skipped", "errors")


@dataclass(frozen=True, slots=True)
class Judged:
    """One record: what the parameter space and the rules said of it.

    Unlike in a run, the rules see a record that the parameter space rejects: who writes rules
    wants to know.
    """

    number: int  # from 1
    record: object
    by_space: tuple[Finding, ...]
    expect: Verdict
    passes: bool

    def as_record(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "record": self.number,
            "passes": self.passes,
            "candidate": pack(self.record),
            "parameters": [
                {"check": one.check, "detail": one.reason}
                for one in self.by_space
                if not one.passed
            ],
            "expect": pack(self.expect.as_record()),
        }


def judge_records(book: RuleBook, records: Sequence[object]) -> list[Judged]:
    """Judge records as one batch, the earlier of two that are alike keeping its place."""
    layers, suite = book.layers, book.layers.suite
    plain = [_without_rationale(record) for record in records]
    by_space: Sequence[tuple[Finding, ...]] = [()] * len(records)
    if layers.bounds:
        plain = [normalise(layers.bounds, candidate) for candidate in plain]
        numbers = range(1, len(records) + 1)
        by_space = judge_by_space(layers.bounds, plain, slots=numbers)
    if suite is None:
        verdicts = [Verdict()] * len(records)
    else:
        whole = suite.judge_proposal(_proposal(records, plain))
        verdicts = [suite.in_order(one, whole) for one in suite.judge_batch([*map(_flat, records)])]
    return [
        Judged(number, record, said, verdict, _passes(book, said, verdict))
        for number, (record, said, verdict) in enumerate(
            zip(records, by_space, verdicts, strict=True), 1
        )
    ]


def tally(book: RuleBook, judged: Sequence[Judged]) -> dict[str, Any]:
    """How many records pass, and how often each check and rule said what."""
    counts: dict[str, Counter[str]] = {}
    for one in judged:
        for finding in (*one.by_space, *one.expect.findings):
            counts.setdefault(finding.check, Counter())[_said(finding)] += 1
    passed = sum(one.passes for one in judged)
    return {
        "records": len(judged),
        "passed": passed,
        "failed": len(judged) - passed,
        "observed": book.observes,
        "rules": [
            {"id": check, **{word: count[word] for word in SAID}} for check, count in counts.items()
        ],
    }


def _said(finding: Finding) -> str:
    if finding.status is Status.SKIPPED:
        return "skipped"
    if finding.status is Status.ERROR:
        return "errors"
    return "passed" if finding.passed else "failed"


def _passes(book: RuleBook, by_space: Sequence[Finding], verdict: Verdict) -> bool:
    return all(one.passed for one in by_space) and (book.observes or verdict.overall_pass)


def _flat(record: object) -> object:
    """A record as the rules read it; ``{parameters: …, rationale: …}`` is taken apart."""
    if isinstance(record, Mapping) and isinstance(record.get("parameters"), Mapping):
        rest = {key: value for key, value in record.items() if key == RATIONALE}
        return {**record["parameters"], **rest} if len(rest) == len(record) - 1 else record
    return record


def _without_rationale(record: object) -> object:
    flat = _flat(record)
    if not isinstance(flat, Mapping):
        return flat
    return {key: value for key, value in flat.items() if key != RATIONALE}


def _proposal(records: Sequence[object], plain: Sequence[object]) -> dict[str, object]:
    """The records as one proposal; it has a rationale if they all have the same."""
    flat = [_flat(record) for record in records]
    reasons = [one.get(RATIONALE) if isinstance(one, Mapping) else None for one in flat]
    same = isinstance(reasons[0], str) and all(reason == reasons[0] for reason in reasons)
    return {**({RATIONALE: reasons[0]} if same else {}), CANDIDATES: list(plain)}
