"""The cases of tests/cases/conformance/repair.json, each a round through the real gate.

A record's fields are the parameters of a candidate. Its texts are choices, and null, which no
parameter can be, is the empty text. Where what was observed is not to be copied, ``settled.json``
has ours, and the number of the ADR that says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.agents.base import Capabilities, Plain
from campaign.agents.prompt import Brief, Message, brief, messages
from campaign.agents.reading import read
from campaign.config import CampaignConfig
from campaign.events import Answered, Judged, SlotEnded
from campaign.expectations import resolve
from campaign.model import Answer, Ask, Disposition
from checks import Rejected
from checks.domain import STRUCTURAL

CASES = Path(__file__).parents[2] / "cases" / "conformance"
Case = dict[str, Any]

OBSERVED = {"max_iterations": 3, "on_exhausted": "return_last"}
"""What the observed system does where a block says nothing."""

PLACE = "place"  # a parameter that tells apart records of one list, which may be alike there
OTHER = "other"


def load(name: str) -> Any:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))


SETTLED: dict[str, Case] = load("settled")["repair"]


def records(attempt: object) -> list[dict[str, Any]]:
    found = attempt if isinstance(attempt, list) else [attempt]
    return [
        {name: "" if value is None else value for name, value in one.items()}
        for one in found
        if isinstance(one, dict)
    ]


def parameters(case: Case) -> dict[str, Any]:
    values: dict[str, set[Any]] = {}
    for attempt in case["attempts"]:
        for record in records(attempt):
            for name, value in record.items():
                values.setdefault(name, set()).add(value)
    for rule in case["rules"]:
        if "field" in rule:
            values.setdefault(rule["field"], {OTHER})
    return {name: parameter(found) for name, found in values.items()} | {
        PLACE: {"type": "int", "min": 0, "max": 9}
    }


def parameter(values: set[Any]) -> Mapping[str, object]:
    if all(isinstance(value, str) for value in values):
        return {"type": "categorical", "choices": sorted({*values, OTHER, "air"})}
    return {"type": "int", "min": 0, "max": 1000}


def settings(case: Case) -> CampaignConfig:
    policy = case["policy"]
    block = policy if policy.get("repair") == "none" else OBSERVED | policy
    first = case["attempts"][0]
    return running.config(
        description="ORIGINAL PROMPT",
        parameters=parameters(case),
        rounds=1,
        batch_size=len(first) if isinstance(first, list) else 1,
        verifiers=[],
        expect=block | ({"expectations": case["rules"]} if case["rules"] else {}),
        agent={"kind": "python", "function": "agent:propose", "suggest": False},
    )


@dataclass
class Speaking(Plain):
    """Says the attempts of a case in turn, in the words of a model, and keeps what it was sent."""

    case: Case
    told: Brief
    sent: list[tuple[Message, ...]] = field(default_factory=list)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(single_response_v1=True)

    async def propose(self, ask: Ask) -> Answer:
        self.sent.append(messages(self.told, ask))
        response = self.response(self.case["attempts"][len(self.sent) - 1], ask.slots)
        try:
            found = read(response)
        except Rejected as refusal:
            return Answer(stage=str(refusal.check), reason=refusal.reason, response=response)
        return Answer(found.candidates, found.rationale, response=response)

    def response(self, attempt: object, slots: tuple[int, ...]) -> str:
        if isinstance(attempt, str):
            return attempt
        fields = {rule["field"] for rule in self.case["rules"] if "field" in rule}
        fields -= set(self.case["required_fields"])
        given = {
            name for one in self.case["attempts"] for record in records(one) for name in record
        }
        unread = dict.fromkeys(sorted(fields - given), OTHER)
        found = records(attempt)
        candidates = [{**found[slot], **unread, PLACE: slot} for slot in slots]
        return json.dumps({"rationale": "", "candidates": candidates})


def came(case: Case, ran: running.Ran) -> Case:
    """What a run came to, in the words of the corpus."""
    events = [entry.event for entry in ran.entries]
    ended = [one for one in events if isinstance(one, SlotEnded)]
    shipped = [record(case, one) for one in ended if one.disposition != Disposition.TOMBSTONE]
    failed = failing(events)
    exhausted = {one.disposition for one in ended} - {Disposition.ACCEPTED, Disposition.REPAIRED}
    raised = "(policy: fail_run)" in ran.ending.reason
    whole = shipped if isinstance(case["attempts"][0], list) else next(iter(shipped), None)
    return {
        "generations": sum(isinstance(one, Answered) for one in events),
        "exhausted": bool(exhausted) or raised,
        "shipped": whole,
        "tombstone": not raised and not shipped,
        "raised": raised,
        "overall_pass": not failed,
        "failed_error": failed,
    }


def record(case: Case, ended: SlotEnded) -> Case:
    known = {name for attempt in case["attempts"] for one in records(attempt) for name in one}
    return {
        name: None if value == "" else value
        for name, value in ended.parameters.items()
        if name in known
    }


def failing(events: list[Any]) -> list[str]:
    """The ids that the last generation failed with."""
    answered = [one for one in events if isinstance(one, Answered)]
    if answered[-1].stage:
        return ["_structural"]
    verdicts = [one for one in events if isinstance(one, Judged)][-1].verdicts
    found: list[str] = []
    for verdict in verdicts:
        spaces = {one.check for one in verdict.findings if one.status == "reject"}
        if spaces & STRUCTURAL:
            return ["_structural"]
        assert not spaces
        found += verdict.expect["failed"] if verdict.expect else []
    return found


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in load("repair")])
def test_a_round_ends_as_observed_or_as_settled(case: Case, tmp_path: Path) -> None:
    settled = SETTLED.get(case["id"], {})
    assert settled or "disputed" not in case, "a disputed case without a decision"
    config = settings(case)
    expect, refused = resolve(config.model_dump(exclude_defaults=True), tmp_path)
    assert not refused
    agent = Speaking(case, brief(config, None if expect is None else expect.suite))
    ran = running.run(
        tmp_path, config, proposer=agent, functions={"tests:bowl": lambda _: {"loss": 0.0}}
    )
    expected = case["expected"] | settled.get("expected", {})
    prompts = expected.pop("prompts")[: expected["generations"]]
    assert came(case, ran) == expected
    assert len(agent.sent) == len(prompts)
    before: object = None
    for sent, wanted, attempt in zip(agent.sent, prompts, case["attempts"], strict=False):
        text = "\n".join(message["content"] for message in sent)
        assert (sent == agent.sent[0]) == wanted["is_original"]
        assert [part for part in wanted["contains"] if part not in text] == []
        if not wanted["is_original"]:  # the correction alone
            parts = [*(named(case, wanted) if records(before) else ()), *settled.get("said", ())]
            assert [part for part in parts if part not in sent[-1]["content"]] == []
            assert [part for part in wanted["lacks"] if part in sent[-1]["content"]] == []
        before = attempt


def named(case: Case, wanted: Case) -> list[str]:
    """The rules and hints that a correction is observed to name."""
    rules = {rule["id"] for rule in case["rules"]} | {
        rule["hint"] for rule in case["rules"] if "hint" in rule
    }
    return [part for part in wanted["contains"] if part in rules]
