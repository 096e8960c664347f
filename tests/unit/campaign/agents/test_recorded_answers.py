"""What the parameters' own checks say of a small model's recorded answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaign.agents.reading import read
from campaign.grid import decode
from campaign.judging import bounds
from campaign.space import FloatParameter, Point, Space
from checks.domain import judge, key
from checks.finding import Finding, Status

ANSWERS = Path(__file__).parents[3] / "data" / "answers"
EXPECTED = json.loads((ANSWERS / "expected.json").read_text())
READ = sorted(name for name, said in EXPECTED.items() if said["stage"] in ("domain", "accepted"))
EVALUATED: tuple[Point, ...] = ({"x": 0.5, "y": 0.0}, {"x": 0.1, "y": -1.5}, {"x": 0.9, "y": 1.2})


def called(finding: Finding) -> str:
    if finding.check == "distinct" and "tried before" in finding.reason:
        return "distinct_from_history"
    return {"bounds": "within_bounds"}.get(finding.check, finding.check)


@pytest.mark.parametrize("name", READ)
def test_a_recorded_answer_is_rejected_in_the_slots_that_are_wrong(name: str) -> None:
    exchange = json.loads((ANSWERS / name).read_text())
    asked = json.dumps(exchange["request"]["body"])
    step = 0.001 if '"integer"' in asked else None
    space: Space = {
        "x": FloatParameter(type="float", min=0, max=1, step=step),
        "y": FloatParameter(type="float", min=-2, max=2, step=step),
    }
    seen = {key(bounds(space), one) for one in EVALUATED if "evaluated:" in asked}
    text = json.loads(exchange["response"]["body"])["choices"][0]["message"]["content"]
    candidates = [decode(space, one) for one in read(text).candidates]
    found: dict[str, set[int]] = {}
    for slot, findings in enumerate(judge(bounds(space), candidates, seen=seen)):
        for one in findings:
            if one.status is Status.REJECT:
                found.setdefault(called(one), set()).add(slot)
    rejects = dict(EXPECTED[name].get("rejects", {}))
    assert len(candidates) == rejects.pop("count", 4)
    assert found == {check: set(slots) for check, slots in rejects.items()}
