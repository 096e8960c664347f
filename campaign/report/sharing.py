"""Equal parts of a long run's events, held once: most verdicts and most tries say the same."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import force_setattr

from campaign.events import Entry, FindingRecord, JsonObject, Judged, TaskEnded, VerdictRecord

_KINDS = 8  # of lists of findings, and of verdicts of rules, that are worth being compared with
_PASS = {"verdict": "pass"}
_NO_ERRORS: list[str] = []
_Part = TypeVar("_Part", list[FindingRecord], JsonObject)


class Pool:
    """Makes entries that nobody else has seen yet share with earlier ones what is equal.

    Events are values, so that nobody can tell; a copy of each would take longer than reading it.
    """

    def __init__(self) -> None:
        self._words: dict[str, str] = {}
        self._findings: list[list[FindingRecord]] = []
        self._expects: list[JsonObject] = []

    def shared(self, entry: Entry) -> Entry:
        event = entry.event
        if isinstance(event, TaskEnded):
            self._try(event)
        elif isinstance(event, Judged):
            for verdict in event.verdicts:
                self._verdict(verdict)
        return entry

    def _try(self, ended: TaskEnded) -> None:
        word = self._words.setdefault
        force_setattr(ended, "task", word(ended.task, ended.task))
        force_setattr(ended, "status", word(ended.status, ended.status))
        force_setattr(ended, "host", word(ended.host, ended.host))
        if ended.value == _PASS:
            force_setattr(ended, "value", _PASS)

    def _verdict(self, verdict: VerdictRecord) -> None:
        if verdict.errors:
            return
        force_setattr(verdict, "errors", _NO_ERRORS)
        if {one.status for one in verdict.findings} <= {"pass"}:
            force_setattr(verdict, "findings", _one_of(self._findings, verdict.findings))
        if verdict.expect.get("overall_pass"):
            force_setattr(verdict, "expect", _one_of(self._expects, verdict.expect))


def _one_of(known: list[_Part], part: _Part) -> _Part:
    """The part itself, or an equal one among the first that were seen."""
    for one in known:
        if one == part:
            return one
    if len(known) < _KINDS:
        known.append(part)
    return part
