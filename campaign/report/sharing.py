"""Equal parts of a long run's events, held once: most verdicts say the same."""

from __future__ import annotations

import msgspec

from campaign.events import Entry, FindingRecord, JsonObject, Judged, VerdictRecord


class Pool:
    """Gives entries that are equal to those it is given, and share what they can."""

    def __init__(self) -> None:
        self._findings: dict[tuple[tuple[str, str], ...], list[FindingRecord]] = {}
        self._expects: dict[tuple[tuple[str, str, str], ...], JsonObject] = {}

    def shared(self, entry: Entry) -> Entry:
        event = entry.event
        if not isinstance(event, Judged):
            return entry
        verdicts = [self._verdict(one) for one in event.verdicts]
        return Entry(entry.n, entry.t, msgspec.structs.replace(event, verdicts=verdicts))

    def _verdict(self, verdict: VerdictRecord) -> VerdictRecord:
        findings = verdict.findings
        if not any(one.status != "pass" or one.reason or one.metrics for one in findings):
            key = tuple([(one.check, one.layer) for one in findings])
            findings = self._findings.setdefault(key, findings)
        expect = verdict.expect
        if expect and expect["overall_pass"]:
            outcomes = expect["outcomes"]
            if not any(one["skipped"] or one["detail"] or not one["passed"] for one in outcomes):
                names = tuple([(one["id"], one["type"], one["severity"]) for one in outcomes])
                expect = self._expects.setdefault(names, expect)
        return VerdictRecord(verdict.slot, findings, expect, verdict.errors)
