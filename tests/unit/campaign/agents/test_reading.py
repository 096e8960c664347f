"""Reading an answer: which stage rejects it, what the reason says, and that nothing breaks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from campaign.agents.reading import LONGEST_RATIONALE, Reading, check_ending, read
from checks import Rejected

ANSWERS = Path(__file__).parents[3] / "data" / "answers"
EXPECTED = json.loads((ANSWERS / "expected.json").read_text())
ANSWERED = sorted(name for name, said in EXPECTED.items() if said["stage"] != "failure")

GOOD = '{"rationale": "why", "candidates": [{"x": 0.5}, {"x": 1}]}'
READ = Reading(({"x": 0.5}, {"x": 1}), "why")
TEN_MEGABYTES = 10_000_000


def rejection(text: str | None, *, finish_reason: str = "", refusal: str | None = None) -> Rejected:
    with pytest.raises(Rejected) as caught:
        read(text, finish_reason=finish_reason, refusal=refusal)
    return caught.value


def rejection_of(
    text: str, *, finish_reason: str = "", refusal: str | None = None
) -> Rejected | None:
    try:
        read(text, finish_reason=finish_reason, refusal=refusal)
    except Rejected as rejected:
        return rejected
    return None


def reason(text: str) -> str:
    found = rejection(text)
    assert found.check == "schema"
    return found.reason


@pytest.mark.parametrize("name", ANSWERED)
def test_a_recorded_answer_is_read_or_rejected_at_its_stage(name: str) -> None:
    exchange = json.loads((ANSWERS / name).read_text())
    choice = json.loads(exchange["response"]["body"])["choices"][0]
    text, ended = choice["message"].get("content"), choice["finish_reason"]
    stage = EXPECTED[name]["stage"]
    if stage in ("domain", "accepted"):
        found = read(text, finish_reason=ended)
        count = EXPECTED[name].get("rejects", {}).get("count", 4)
        assert len(found.candidates) == count
        assert all(isinstance(one, dict) and one.keys() == {"x", "y"} for one in found.candidates)
    else:
        assert rejection(text, finish_reason=ended).check == stage


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\ufeff  {GOOD}\r\n",
        f"```json\n{GOOD}\n```",
        f"Sure, here it is:\n\n```\n{GOOD}\n```\nTell me how it goes!",
        rf"In the interval {{0, 1}}, \frac{{1}}{{2}} is half. {GOOD} {{so}} it is",
        f"<think>x in [0, 1]</think>{GOOD}",
    ],
)
def test_one_object_is_read_whatever_prose_is_around_it(text: str) -> None:
    assert read(text) == READ


def test_a_missing_rationale_is_empty() -> None:
    assert read('{"candidates": []}') == Reading((), "")


def test_a_rationale_may_have_lines() -> None:
    assert read('{"candidates": [], "rationale": "a\\n\\tb\\r\\n"}').rationale == "a\n\tb\r\n"


def test_values_are_kept_as_they_stand() -> None:
    found = read('{"candidates": [{"x": true, "y": null, "z": [1, {"a": "\\ud800"}], "n": -0.0}]}')
    assert found.candidates == ({"x": True, "y": None, "z": [1, {"a": "\ud800"}], "n": 0.0},)


def test_further_keys_are_handed_on_where_they_are_allowed() -> None:
    text = '{"candidates": [], "id": "a", "usage": {"n": 1}}'
    assert read(text, beside=("usage", "id", "other")).beside == {"id": "a", "usage": {"n": 1}}
    assert reason(text).startswith("id, usage: unknown key; give one JSON object with rationale")


@pytest.mark.parametrize("ended", ["length", "LENGTH", "max_tokens", "max_output_tokens"])
def test_an_answer_cut_off_is_truncated_even_if_it_can_be_read(ended: str) -> None:
    assert rejection(GOOD, finish_reason=ended).check == "truncation"


@pytest.mark.parametrize("ended", ["stop", "", "eos", "tool_calls", "end_turn"])
def test_any_other_ending_is_judged_by_the_text(ended: str) -> None:
    assert read(GOOD, finish_reason=ended) == READ


def test_what_the_server_filtered_or_the_model_refused_is_named() -> None:
    assert rejection(GOOD, finish_reason="content_filter").check == "filtered"
    refused = rejection(None, refusal="I would rather not say SECRET")
    assert (refused.check, "SECRET" in refused.reason) == ("refusal", False)
    assert rejection("", finish_reason="refusal").check == "refusal"
    assert read(GOOD, refusal=" ") == READ


def test_an_ending_can_be_checked_without_a_text() -> None:
    check_ending("stop")
    with pytest.raises(Rejected, match="cut off"):
        check_ending("length", "no")


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_no_text_is_an_empty_answer(text: str | None) -> None:
    assert rejection(text).check == "empty"


GIVE = "give one JSON object with rationale and candidates"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no", f"the answer holds no JSON object; {GIVE}"),
        ("[1, 2]", f"the answer holds no JSON object; {GIVE}"),
        ("null", f"the answer holds no JSON object; {GIVE}"),
        ("{'candidates': []}", f"the answer holds no JSON object; {GIVE}"),
        (json.dumps(GOOD), f"the answer holds no JSON object; {GIVE}"),
        (f"[{GOOD}]", f"the answer is a list; {GIVE}"),
        (f"{GOOD}\n{GOOD}", f"the answer holds more than one JSON object; {GIVE}"),
        (f"{GOOD} or {{}}", f"the answer holds more than one JSON object; {GIVE}"),
        (GOOD[:-1], f"the answer is no valid JSON at line 1, column 58; {GIVE}"),
        ('{"candidates"\n 5}', f"the answer is no valid JSON at line 2, column 2; {GIVE}"),
        ('{"rationale": "a\nb"}', f"the answer is no valid JSON at line 1, column 17; {GIVE}"),
        ('{"candidates": [{"x": 1, "x": 1}]}', "x: given twice; give each key once"),
        ('{"candidates": [{"x": NaN}]}', "NaN is no JSON; give finite numbers"),
        ('{"candidates": [{"x": -Infinity}]}', "-Infinity is no JSON; give finite numbers"),
        ('{"candidates": [{"x": 1e999}]}', "a number is beyond any float; give finite numbers"),
        (f'{{"n": {"1" * 5000}}}', "a number is too long; give numbers of at most 17 digits"),
        ("{}", "candidates: missing; give a list of objects"),
        ('{"candidates": {"x": 1}}', "candidates: found an object; give a list of objects"),
        (
            '{"candidates": [{}, 0.5]}',
            "candidates[1]: found a number; give an object of parameters",
        ),
        (
            '{"candidates": [null]}',
            "candidates[0]: found null; give an object of parameters",
        ),
        ('{"candidates": [], "rationale": ["a"]}', "rationale: found a list; give text"),
        ('{"candidates": [], "rationale": true}', "rationale: found a boolean; give text"),
        (
            '{"candidates": [], "rationale": "a\\u001b[2J"}',
            "rationale: control characters; give plain text",
        ),
        (
            '{"candidates": [], "rationale": "\\udc00"}',
            "rationale: control characters; give plain text",
        ),
        (
            f'{{"candidates": [], "rationale": "{"a" * (LONGEST_RATIONALE + 1)}"}}',
            "rationale: 2001 characters; give at most 2000",
        ),
        ('{"a": ' + "[" * 30 + "]" * 30 + "}", f"the answer is nested too deeply; {GIVE}"),
        ('{"a":' * 100_000, f"the answer is nested too deeply; {GIVE}"),
    ],
)
def test_the_reason_of_a_malformed_answer_says_what_is_right(text: str, says: str) -> None:
    assert reason(text) == says


def test_a_reason_names_keys_clipped_and_on_one_line_and_nothing_else() -> None:
    assert reason(json.dumps({"k" * 50: "SECRET", "a\nb\ud800": 1, "": 2})) == (
        f"{'k' * 39}…, a\\nb\\ud800, an empty key: unknown key; {GIVE} alone"
    )
    many = reason(json.dumps(dict.fromkeys("abcdefgh")))
    assert many.startswith("a, b, c, d, e and 3 more: unknown key")


@pytest.mark.parametrize(
    "text",
    [
        "{" * TEN_MEGABYTES,
        '{"a":' * (TEN_MEGABYTES // 5),
        '{"a":' + "[" * TEN_MEGABYTES,
        '{"' + '\\"' * (TEN_MEGABYTES // 2),
        '{"a":' + "1" * TEN_MEGABYTES,
        "{ " * (TEN_MEGABYTES // 2),
        "[" * TEN_MEGABYTES,
        '{"candidates": [{}, ' + "{}" * (TEN_MEGABYTES // 2),
    ],
    ids=["braces", "objects", "lists", "escapes", "digits", "spaced", "open", "joined"],
)
def test_ten_hostile_megabytes_are_rejected(text: str) -> None:
    """None of them would end within a day if each brace were tried as a beginning."""
    assert len(reason(text)) < 200


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
NEARLY = st.lists(
    st.sampled_from(
        ['{"', '"}', "{", "}", "[", "]", '"', "\\", ",", ":", "candidates", "rationale", "1e9", " "]
    )
    | st.text(max_size=3)
).map("".join)


@given(
    st.text(st.characters()) | st.binary().map(lambda b: b.decode("latin-1")) | NEARLY,
    st.text(),
    st.none() | st.text(),
)
@example('{"a":' * 2000, "", None)
@example('{"\\ud800', "length\ud800", "\ud800")
def test_nothing_but_a_rejection_is_ever_raised(
    text: str, finish_reason: str, refusal: str | None
) -> None:
    rejected = rejection_of(text, finish_reason=finish_reason, refusal=refusal)
    if rejected is not None:
        assert rejected.check in ("truncation", "filtered", "refusal", "empty", "schema")
        assert rejected.reason.isprintable()
        assert len(rejected.reason) <= 400


@given(JSON, JSON)
def test_whatever_json_stands_in_the_two_fields_is_read_or_rejected(
    rationale: object, candidates: object
) -> None:
    text = json.dumps({"rationale": rationale, "candidates": candidates})
    rejected = rejection_of(text)
    if rejected is None:
        found = read(text)
        assert found.rationale == rationale
        assert list(found.candidates) == candidates
    else:
        assert rejected.check == "schema"
