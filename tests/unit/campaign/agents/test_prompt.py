"""What an agent is sent: the words word for word, and what holds for whatever is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies as st

from campaign.agents.prompt import (
    PLACEHOLDERS,
    Brief,
    Message,
    brief,
    check_template,
    examples,
    messages,
    schema,
    whole,
)
from campaign.agents.reading import read
from campaign.config import CampaignConfig
from campaign.grid import decode, wired
from campaign.model import Ask, Correction
from campaign.space import Point
from campaign.trial import Trial
from checks.suite import Suite, compile_suite

PROMPTS = Path(__file__).parents[3] / "data" / "prompts"

PLATE: dict[str, Any] = {
    "version": 1,
    "name": "plate",
    "description": "Choose the fins of a heated plate.\nIt may weigh 25 kg per square metre.\n",
    "parameters": {
        "height": {
            "type": "float", "min": 10, "max": 50, "step": 0.5, "unit": "mm",
            "description": "Height of a fin\nabove the plate.",
        },
        "rate": {"type": "float", "min": 1e-6, "max": 1, "scale": "log", "unit": "kg/s"},
        "fins": {"type": "int", "min": 1, "max": 20},
        "alloy": {"type": "categorical", "choices": ["Al 6061", "Cu", 7, True]},
    },
    "objective": {"name": "peak", "direction": "minimize"},
    "rounds": 3,
    "batch_size": 3,
    "agent": {"kind": "openai", "model": "m", "url": "http://127.0.0.1:1/v1"},
    "simulation": {"kind": "python", "function": "model:run", "walltime": "10s"},
}  # fmt: skip
RULES = [
    {
        "id": "light",
        "type": "expression",
        "params": {"condition": "height * fins <= 300", "row_condition": "alloy == 'Cu'"},
        "hint": "take fewer\nfins",
    },
    {
        "id": "few",
        "type": "value_between",
        "field": "fins",
        "params": {"min": 2, "max": 12, "exclusive_min": False},
    },
    {"id": "why", "type": "word_count_between", "field": "rationale", "params": {"min": 3},
     "severity": "warn"},
    {"id": "told", "type": "llm_judge", "field": "rationale",
     "params": {"rule": "The reason names a cause.", "votes": 3}},
]  # fmt: skip
POINT: Point = {"height": 12.5, "rate": 0.1, "fins": 3, "alloy": "Al 6061"}
TRIALS = (
    Trial(POINT, 71.25),
    Trial({**POINT, "fins": 4}, None, "diverged after `3` steps\x1b[2J\n<|im_end|>"),
    Trial({**POINT, "height": 50.0}, 69.0000000001),
    Trial({**POINT, "alloy": True}, 80.0),
)


def config(**changes: Any) -> CampaignConfig:
    agent = PLATE["agent"] | changes.pop("agent", {})
    return CampaignConfig.model_validate(PLATE | changes | {"agent": agent})


def suite() -> Suite:
    fields = [*PLATE["parameters"], "rationale"]
    return compile_suite(RULES, fields=fields, judge=())


def first_ask(**changes: Any) -> Ask:
    return replace(
        Ask(2, 1, (0, 1, 2), TRIALS, suggestions=({**POINT, "fins": 9},), batch=3), **changes
    )


ORDINARY = first_ask()
REPAIR = first_ask(
    generation=2,
    slots=(1,),
    accepted={0: POINT, 2: {**POINT, "fins": 5}},
    correction=Correction('{"rationale": "\u00e9\\n", "candidates": []}\n ', "- slot 1: no.\n"),
)


def written(found: tuple[Message, ...]) -> str:
    return "".join(f"=== {one['role']}\n{one['content']}\n" for one in found)


def user(found: tuple[Message, ...]) -> str:
    return found[1]["content"]


@pytest.mark.parametrize(("name", "ask"), [("ordinary", ORDINARY), ("correction", REPAIR)])
def test_a_request_is_word_for_word_as_recorded(name: str, ask: Ask) -> None:
    recorded = (PROMPTS / f"{name}.txt").read_text(encoding="utf-8")
    assert written(messages(brief(config(), suite()), ask)) == recorded


def test_a_correction_adds_exactly_two_messages_to_the_first_request_of_its_round() -> None:
    made = brief(config(), suite())
    first, repair = messages(made, ORDINARY), messages(made, REPAIR)
    assert REPAIR.correction is not None
    assert repair[:-2] == first
    assert repair[-2:] == (
        {"role": "assistant", "content": REPAIR.correction.response},
        {"role": "user", "content": REPAIR.correction.text},
    )


POINTS = st.fixed_dictionaries(
    {
        "height": st.integers(20, 100).map(lambda k: k * 0.5),
        "rate": st.floats(1e-6, 1),
        "fins": st.integers(1, 20),
        "alloy": st.sampled_from(["Al 6061", "Cu", 7, True]),
    }
)
ASKS = st.builds(
    Ask,
    round=st.integers(1, 9),
    generation=st.just(1),
    slots=st.integers(1, 8).map(lambda n: tuple(range(n))),
    trials=st.lists(
        st.builds(Trial, POINTS, st.none() | st.floats(-1e9, 1e9), st.text()), max_size=25
    ).map(tuple),
    suggestions=st.lists(POINTS, max_size=3).map(tuple),
)
BRIEF = brief(config(), suite())


@given(ASKS, st.text(), st.text(), st.data())
def test_whatever_was_asked_first_a_correction_repeats_it_byte_for_byte(
    ask: Ask, response: str, text: str, data: st.DataObject
) -> None:
    kept = data.draw(st.sets(st.sampled_from(ask.slots), max_size=len(ask.slots) - 1))
    repair = replace(
        ask,
        generation=2,
        slots=tuple(slot for slot in ask.slots if slot not in kept),
        accepted=dict.fromkeys(sorted(kept), POINT),
        batch=len(ask.slots),
        correction=Correction(response, text),
    )
    first = messages(BRIEF, replace(ask, batch=len(ask.slots)))
    assert messages(BRIEF, repair) == (
        *first,
        {"role": "assistant", "content": response},
        {"role": "user", "content": text},
    )
    assert messages(BRIEF, whole(repair)) == first


@pytest.mark.slow
def test_the_same_ask_gives_the_same_bytes_in_every_process() -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_prompt as t; "
        "sys.stdout.buffer.write("
        "t.written(t.messages(t.brief(t.config(), t.suite()), t.REPAIR)).encode())"
    )
    here = str(Path(__file__).parent)
    found = {
        subprocess.run(
            [sys.executable, "-c", script, here],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in (1, 2)
    }
    assert found == {written(messages(BRIEF, REPAIR)).encode()}


def test_without_a_correction_the_open_slots_are_asked_for_beside_what_is_accepted() -> None:
    again = messages(BRIEF, replace(REPAIR, correction=None))
    text = user(again)
    assert len(again) == 2
    assert "Propose exactly 1 new candidate." in text
    assert "Accepted already for this batch, not to be proposed again:\n- height = 25," in text


@pytest.mark.parametrize(
    ("history", "shown", "seen", "unseen"),
    [
        ("none", 10, [], ["peak =", "height = 25, rate"]),
        (
            "best",
            10,
            [
                "Candidates simulated (best first):\n- height = 100, rate = 0.1, fins = 3, "
                'alloy = "Al 6061": peak = 69.0000000001\n',
                "Candidates that failed (the latest last):\n",
                r"fins = 4, alloy = "
                r'"Al 6061": `diverged after ',
            ],
            ["\x1b", "<|im_end|>", "<|"],
        ),
        ("best", 1, ["(1 of 3, best first)", "69.0"], ["71.25", "that failed"]),
        ("best", 5, ["(best first)", "80.0", "that failed"], [" of 3"]),
        ("recent", 1, ["(1 of 3, the latest last)", "80.0"], ["69.0", "that failed"]),
        ("recent", 4, ["(the latest last):\n- height = 25", "71.25"], ["best first"]),
    ],
)
def test_no_more_observations_are_told_than_are_to_be_shown(
    history: str, shown: int, seen: list[str], unseen: list[str]
) -> None:
    made = brief(config(agent={"history": history, "shown": shown}), None)
    text = user(messages(made, first_ask(suggestions=())))
    assert [part for part in seen if part not in text] == []
    assert [part for part in unseen if part in text] == []


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        ({"name": "p", "direction": "maximize"}, "make p as high as possible."),
        ({"name": "p", "target": 0.55, "tolerance": 0.03}, "bring p to 0.55, within 0.03."),
    ],
)
def test_the_aim_is_in_words(objective: dict[str, object], says: str) -> None:
    assert says in user(messages(brief(config(objective=objective), None), ORDINARY))


def test_rules_that_only_watch_are_recommendations() -> None:
    watched = brief(config(expect={"repair": "none", "expectations": RULES[:2]}), suite())
    assert watched.rules.startswith("Recommendations:\n- light: height * fins <= 300, when")


def test_the_size_does_not_grow_with_the_rounds() -> None:
    trials = tuple(
        Trial({**POINT, "fins": 10**k, "rate": 1 / (3 + k)}, (-1) ** k / 3 if k % 2 else None,
              "\U0001f600" * 10_000)
        for k in range(300)
    )  # fmt: skip
    many = {slot: {**POINT, "alloy": "\U0001f600" * 10_000} for slot in range(5000)}
    ask = first_ask(trials=trials, accepted=many, suggestions=tuple(many.values()))
    made = brief(config(agent={"shown": 30}), suite())
    size = len(written(messages(made, ask)).encode())
    own = len(json.dumps(PLATE)) + len(json.dumps(RULES))
    names = len("height rate fins alloy Al 6061")
    assert size <= 2000 + 4 * 200 + own + (30 + 100 + 100) * (1000 + 4 * 200 + names)
    assert "- and 4900 more" in user(messages(made, ask))


def test_a_prompt_holds_no_candidate_that_could_be_copied() -> None:
    """Where nothing was tried, suggested or accepted, no JSON object stands in it."""
    bare = written(messages(BRIEF, Ask(1, 1, (0, 1))))
    assert "{" not in bare
    assert examples(bare, config().parameters) == ()


SCHEMA = schema(config().parameters, 2)


def test_the_schema_asks_for_the_rationale_first_and_for_the_wired_values() -> None:
    assert json.dumps(SCHEMA) == (
        '{"type": "object", "properties": {'
        '"rationale": {"type": "string", "maxLength": 500}, '
        '"candidates": {"type": "array", "minItems": 2, "maxItems": 2, '
        '"items": {"type": "object", "properties": {'
        '"height": {"type": "integer", "minimum": 20, "maximum": 100}, '
        '"rate": {"type": "number", "minimum": 1e-06, "maximum": 1.0}, '
        '"fins": {"type": "integer", "minimum": 1, "maximum": 20}, '
        '"alloy": {"enum": ["Al 6061", "Cu", 7, true]}}, '
        '"required": ["height", "rate", "fins", "alloy"], "additionalProperties": false}}}, '
        '"required": ["rationale", "candidates"], "additionalProperties": false}'
    )
    assert schema(wired(config().parameters), 2) == SCHEMA
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_an_answer_that_fits_the_schema_is_read_and_decoded() -> None:
    one = {"height": 25, "rate": 0.1, "fins": 3, "alloy": "Cu"}
    answer = {"rationale": "w", "candidates": [one, one | {"alloy": True}]}
    jsonschema.validate(answer, SCHEMA)
    decoded = decode(config().parameters, read(json.dumps(answer)).candidates[0])
    assert decoded == {"height": 12.5, "rate": 0.1, "fins": 3, "alloy": "Cu"}


EVERY = "\n".join(f"{name}: {{{name}}}" for name in PLACEHOLDERS)


def test_a_template_replaces_the_user_message_alone() -> None:
    made = brief(config(), None, f"{EVERY} {{{{}}}}")
    system, text = messages(made, first_ask(suggestions=(), trials=()))
    assert system == messages(BRIEF, ORDINARY)[0]
    assert text["content"].startswith("description: Choose the fins of a heated plate.\n")
    for line in ("rules: none", "observations: none", "pinned: none", "count: 3"):
        assert line in text["content"].splitlines()
    assert text["content"].endswith(f"shape: {made.shape} {{}}")


def test_what_stands_in_for_a_placeholder_is_no_template_itself() -> None:
    made = Brief(config().parameters, config().objective, "{count} }{", template="{description}")
    assert user(messages(made, ORDINARY)) == "{count} }{"


KNOWN = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (EVERY, []),
        (
            "no placeholder",
            ["{count} is missing; the model has to be told how many candidates to propose"],
        ),
        (" \n", ["the file is empty; write what the model is to be asked"]),
        ("{counts} {rules}", [f"unknown placeholder {{counts}}; the placeholders are {KNOWN}"]),
        ("{}", [f"unknown placeholder {{}}; the placeholders are {KNOWN}"]),
        ("{count!r}", ["{count} with a format; write the placeholder alone"]),
        ("{count.real}", [f"unknown placeholder {{count.real}}; the placeholders are {KNOWN}"]),
    ],
)
def test_a_template_with_anything_else_in_braces_is_refused(text: str, problems: list[str]) -> None:
    assert check_template(text) == problems


def test_a_template_with_unbalanced_braces_is_refused() -> None:
    (problem,) = check_template('like {"x": 1')
    assert problem.startswith("unbalanced braces in") or problem.startswith("unknown placeholder")
    (problem,) = check_template("so }")
    assert problem.startswith("unbalanced braces in 'so }'")


def test_the_examples_of_a_template_are_its_whole_candidates_in_their_units() -> None:
    one = '{"height": 25, "rate": 0.5, "fins": 3, "alloy": "Cu"}'
    other = '{"alloy": true, "fins": 4.0, "rate": 1, "height": 100}'
    outside = '{"height": 5, "rate": 0.5, "fins": 3, "alloy": "Cu"}'
    partly = '{"height": 30, "rate": 0.5}'
    text = (
        f"Like {one}, or {{so}} {outside} {partly} {one}:\n"
        f'{{"rationale": "", "candidates": [{other}, {one}]}} {{count}} {{"cut": '
    )
    template = text.replace("{", "{{").replace("}", "}}").replace("{{count}}", "{count}")
    assert check_template(template) == []
    assert examples(template, config().parameters) == (
        {"height": 12.5, "rate": 0.5, "fins": 3, "alloy": "Cu"},
        {"alloy": True, "fins": 4, "rate": 1.0, "height": 50.0},
    )
