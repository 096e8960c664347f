"""The document an agent is asked by: whole, in the agent's own encoding, safe to send."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import given, strategies as st

from campaign.agents.document import as_line, document, read_text
from campaign.agents.prompt import Brief, messages
from campaign.config import Objective
from campaign.model import Answer, Ask, Correction, Rejection
from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space
from campaign.trial import Trial
from checks import Finding
from checks.finding import Layer, Severity, Status

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "agents.md"
SPACE: Space = {
    "density": FloatParameter(
        type="float", min=0.3, max=0.4, step=0.005, unit="g/cm3", description="Of the start."
    ),
    "steps": IntParameter(type="int", min=100, max=10_000, scale="log"),
    "lattice": CategoricalParameter(type="categorical", choices=("fcc", "bcc")),
}
BRIEF = Brief(
    SPACE,
    Objective(name="pressure", target=1.5, tolerance=0.1),
    description="Find the density of a pressure.",
    shown=3,
)
FINE: Point = {"density": 0.31, "steps": 200, "lattice": "fcc"}
PLACES = (
    Trial({"density": 0.3, "steps": 100, "lattice": "fcc"}, 1.25),
    Trial({"density": 0.35, "steps": 100, "lattice": "bcc"}, 1.75),
    Trial({"density": 0.4, "steps": 100, "lattice": "bcc"}, None, "exit code 1"),
)
LARGE = Rejection(
    1,
    {"density": 0.45, "steps": 300, "lattice": "fcc"},
    (
        Finding("bounds", Layer.SCHEMA, Status.REJECT, "density: 0.45; at most 0.4"),
        Finding("distinct", Layer.DOMAIN, Status.PASS),
        Finding("taste", Layer.DOMAIN, Status.REJECT, "dull", severity=Severity.INFO),
        Finding("odd", Layer.DOMAIN, Status.ERROR, "check raised KeyError: 'x'"),
    ),
)
ASK = Ask(
    round=2,
    generation=2,
    slots=(1,),
    trials=PLACES,
    accepted={0: FINE},
    rejections=(LARGE,),
    suggestions=({"density": 0.335, "steps": 150, "lattice": "bcc"},),
    batch=2,
    correction=Correction(response='{"candidates": []}', text="One candidate is missing."),
)


def sent(ask: Ask) -> object:
    return json.loads(as_line(document(BRIEF, ask)))


def test_the_whole_example_of_the_page_is_what_is_sent() -> None:
    (block,) = re.findall(r"^```json\n(\{\n  \"version\".*?)^```$", PAGE.read_text(), re.M | re.S)
    found = sent(ASK)
    assert isinstance(found, dict)
    for message in found["messages"][:2]:
        message["content"] = "…"  # a page of its own
    assert found == json.loads(block)
    assert list(found) == list(json.loads(block))


def test_every_field_of_the_document_is_described_on_the_page() -> None:
    rows = re.findall(r"^\| `([a-z]+)` \|", PAGE.read_text(), re.M)
    assert rows[: len(document(BRIEF, ASK))] == list(document(BRIEF, ASK))


def test_the_messages_are_those_a_model_would_be_sent() -> None:
    assert document(BRIEF, ASK)["messages"] == [dict(one) for one in messages(BRIEF, ASK)]


def test_only_what_rejects_is_among_the_rejections() -> None:
    (told,) = document(BRIEF, ASK)["rejections"]
    assert [one["check"] for one in told["findings"]] == ["bounds"]


def test_answers_come_back_in_the_parameters_own_units() -> None:
    said = '{"candidates": [{"density": 62, "steps": 200, "lattice": "fcc"}]}'
    assert read_text(SPACE, said).candidates == (FINE,)


def test_an_ask_without_a_past_says_so() -> None:
    found = document(BRIEF, Ask(1, 1, (0, 1)))
    empty = ("observations", "pinned", "rejections", "suggestions")
    assert [found[key] for key in empty] == [[], [], [], []]
    assert (found["correction"], found["count"]) == (None, 2)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_like, st.text())
def test_whatever_was_proposed_the_document_is_one_line_of_plain_json(
    candidate: object, reason: str
) -> None:
    finding = Finding("own", Layer.DOMAIN, Status.REJECT, reason)
    values = {"density": candidate, "steps": candidate, reason: candidate}
    for one in (candidate, values):
        rejection = Rejection(0, one, (finding,))
        line = as_line(document(BRIEF, Ask(1, 2, (0,), rejections=(rejection,))))
        assert (line.count(b"\n"), line.isascii()) == (1, True)
        assert json.loads(line, parse_constant=_refuse)["count"] == 1


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@given(st.text() | json_like.map(json.dumps))
def test_any_text_is_an_answer_or_names_its_stage(text: str) -> None:
    found = read_text(SPACE, text)
    assert found == Answer(
        found.candidates, found.rationale, stage=found.stage, reason=found.reason, response=text,
        spent=found.spent, response_id=found.response_id, finish_reason=found.finish_reason,
    )  # fmt: skip
    assert bool(found.stage) == bool(found.reason)
