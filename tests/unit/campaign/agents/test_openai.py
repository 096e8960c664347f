"""The agent behind OpenAI's format: one call for one ask, read without trust."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from campaign.agentconfig import OpenAIAgent as Settings
from campaign.agents import prompt
from campaign.agents.base import AgentError, Capabilities
from campaign.agents.chat import ChatClient
from campaign.agents.openai import OpenAIAgent, agent, request_seed
from campaign.model import Answer, Ask, Correction, Spent
from campaign.problems import ConfigError
from campaign.render import Place
from fakeserver import (
    Behaviour,
    FakeServer,
    answers,
    busy,
    canned,
    fails,
    hangs,
    loading,
    only_formats,
    recorded,
    says,
)
from running import config

ANSWERS = Path(__file__).parents[3] / "data" / "answers"
ASK = Ask(1, 1, (0, 1), batch=2)
POINTS = [{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.4}]


def two(_: dict[str, Any]) -> list[dict[str, float]]:
    return POINTS


def proposer(url: str, place: Path = Path("/nowhere"), **more: Any) -> OpenAIAgent:
    parameters = more.pop("parameters", None)
    plain = {"kind": "openai", "model": "m", "url": url} | more
    campaign = config(agent=plain, **({} if parameters is None else {"parameters": parameters}))
    assert isinstance(campaign.agent, Settings)
    return agent(campaign.agent, campaign, Place(place, place / "run", campaign.seed), None)


def proposed(one: OpenAIAgent, ask: Ask = ASK) -> Answer:
    return asyncio.run(one.propose(ask))


def test_an_ask_is_one_call_whose_answer_holds_a_candidate_for_each_slot() -> None:
    with FakeServer(answers(two, rationale="why not")) as server:
        answer = proposed(proposer(server.url))
    assert server.calls == 1
    assert list(answer.candidates) == POINTS
    assert (answer.rationale, answer.stage, answer.reason) == ("why not", "", "")
    assert answer.response == json.dumps({"rationale": "why not", "candidates": POINTS})
    assert answer.spent == Spent(server.input_tokens, server.output_tokens)
    assert (answer.response_id, answer.finish_reason) == ("chatcmpl-1", "stop")
    assert answer.request == hashlib.sha256(server.requests[0].raw).hexdigest()


def test_the_request_holds_the_prompt_the_schema_the_seed_and_what_was_configured() -> None:
    with FakeServer(answers(two)) as server:
        one = proposer(server.url, temperature=0.8, max_tokens=100, body={"cache_prompt": False})
        proposed(one)
    assert server.bodies == [
        {
            "model": "m",
            "messages": list(prompt.messages(one.brief, ASK)),
            "temperature": 0.8,
            "max_tokens": 100,
            "cache_prompt": False,
            "seed": request_seed(3, 1, 1),
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "proposal",
                    "strict": True,
                    "schema": prompt.schema(one.brief.space, 2),
                },
            },
        }
    ]


def test_candidates_on_a_grid_travel_in_whole_steps_and_come_back_in_their_unit() -> None:
    stepped = {
        "x": {"type": "float", "min": 0.0, "max": 1.0, "step": 0.001},
        "y": {"type": "float", "min": 0.0, "max": 1.0},
    }
    with FakeServer(answers(lambda _: [{"x": 205, "y": 0.5}])) as server:
        answer = proposed(proposer(server.url, parameters=stepped), replace(ASK, slots=(0,)))
    assert answer.candidates == ({"x": 0.205, "y": 0.5},)
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
    x = schema["properties"]["candidates"]["items"]["properties"]["x"]
    assert (x["type"], x["minimum"], x["maximum"]) == ("integer", 0, 1000)


def test_a_correction_is_sent_as_it_stands_and_asks_for_the_open_slots_only() -> None:
    response = '{"rationale": "é\\u2028`", "candidates": []}\r\n'
    first = replace(ASK, slots=(0, 1, 2), batch=3)
    corrected = replace(first, generation=2, slots=(1,), correction=Correction(response, "wrong\n"))
    with FakeServer(answers(lambda _: POINTS[:1])) as server:
        one = proposer(server.url)
        proposed(one, first)
        proposed(one, corrected)
    before, after = (body["messages"] for body in server.bodies)
    assert after == [
        *before,
        {"role": "assistant", "content": response},
        {"role": "user", "content": "wrong\n"},
    ]
    schema = server.bodies[1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["candidates"]["maxItems"] == 1


def test_no_two_asks_of_a_campaign_have_the_same_seed_and_a_retry_has_its_own_again() -> None:
    seeds = {request_seed(3, number, k) for number in range(1, 101) for k in range(1, 11)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert request_seed(4, 1, 1) != request_seed(3, 1, 1)
    with FakeServer(busy(), answers(two)) as server:
        one = proposer(server.url)
        with pytest.raises(AgentError):
            proposed(one)
        proposed(one)
        proposed(one, replace(ASK, generation=2))
    failed, retried, again = (request.raw for request in server.requests)
    assert failed == retried != again


def test_an_answer_that_was_cut_off_is_asked_for_with_twice_as_many_tokens() -> None:
    with FakeServer(answers(two)) as server:
        one = proposer(server.url, max_tokens=100)
        for count in (0, 1, 3, 50):
            proposed(one, replace(ASK, cut_off=count))
    assert [body["max_tokens"] for body in server.bodies] == [100, 200, 800, 6400]


STAGES: dict[str, tuple[Behaviour, str]] = {
    "cut off": (says('{"candidates": [', finish_reason="length"), "truncation"),
    "filtered": (says("", finish_reason="content_filter"), "filtered"),
    "refused": (says(None, refusal="I will not"), "refusal"),
    "null": (says(None), "empty"),
    "blank": (says(" \n"), "empty"),
    "prose": (says("I would try the middle."), "schema"),
    "a list": (says("[]"), "schema"),
}


@pytest.mark.parametrize("name", STAGES)
def test_an_answer_without_candidates_names_its_stage_and_keeps_what_was_said(name: str) -> None:
    behaviour, stage = STAGES[name]
    with FakeServer(behaviour) as server:
        answer = proposed(proposer(server.url))
    assert (answer.stage, answer.candidates) == (stage, ())
    assert answer.reason
    assert answer.spent == Spent(server.input_tokens, server.output_tokens)
    assert answer.response_id == "chatcmpl-1"


def test_the_response_is_what_the_model_said_and_none_where_it_said_nothing() -> None:
    with FakeServer(says("[]"), says(None, refusal="no"), says(""), says(None)) as server:
        one = proposer(server.url)
        assert [proposed(one).response for _ in range(4)] == ["[]", "no", "", None]


def test_every_recorded_answer_of_a_real_model_ends_at_the_stage_it_should() -> None:
    expected = json.loads((ANSWERS / "expected.json").read_text())
    cases = {name: case["stage"] for name, case in expected.items() if case["stage"] != "failure"}
    with FakeServer(*(recorded(ANSWERS / name) for name in cases)) as server:
        one = proposer(server.url)
        found = {name: proposed(one).stage for name in cases}
    wanted = {
        name: "" if stage in ("domain", "accepted") else stage for name, stage in cases.items()
    }
    assert found == wanted


def test_what_a_call_may_use_at_most_covers_all_it_sends_and_all_it_may_get() -> None:
    long = replace(ASK, correction=Correction("é" * 5000, "wrong " * 1000), cut_off=2)
    for ask in (ASK, long):
        with FakeServer(answers(two)) as server:
            one = proposer(server.url, max_tokens=100, body={"note": "x" * 300})
            proposed(one, ask)
        body = server.bodies[0]
        said = sum(len(message["content"].encode()) for message in body["messages"])
        schema = len(json.dumps(body["response_format"]["json_schema"]["schema"]))
        assert one.worst(ask) >= said + schema + 300 + body["max_tokens"]
        assert one.worst(ask) <= said + schema + 300 + body["max_tokens"] + 1000


def test_a_format_that_the_server_refuses_is_left_out_by_a_further_call_and_for_good() -> None:
    with FakeServer(only_formats(then=answers(two))) as server:
        one = proposer(server.url)
        for gone in ("json_schema", "json_object"):
            with pytest.raises(AgentError, match=f"asked again without {gone}") as caught:
                proposed(one)
            assert (caught.value.retryable, caught.value.unspent) == (True, True)
            assert caught.value.status == 400
        assert list(proposed(one).candidates) == POINTS
        assert list(proposed(one).candidates) == POINTS
    formats = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert formats == ["json_schema", "json_object", None, None]


def test_a_request_that_is_refused_in_every_format_is_not_the_formats_fault() -> None:
    overflow = recorded(ANSWERS / "error_context_overflow.json")
    script = (only_formats("json_object", then=answers(two)),) * 2
    with FakeServer(*script, overflow, overflow, *script) as server:
        one = proposer(server.url)
        with pytest.raises(AgentError, match="again without json_schema"):
            proposed(one)
        proposed(one)
        with pytest.raises(AgentError, match=r"exceed_context_size_error.*without json_object"):
            proposed(one)
        with pytest.raises(AgentError, match="exceed_context_size_error") as caught:
            proposed(one)
        assert not caught.value.retryable
        proposed(one)
    formats = [body.get("response_format", {}).get("type") for body in server.bodies]
    assert formats == ["json_schema", "json_object", "json_object", None, "json_object"]


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "none"])
def test_a_format_that_was_chosen_is_the_only_one(structured: str) -> None:
    with FakeServer(fails(400, "invalid_request_error")) as server:
        one = proposer(server.url, structured=structured)
        for _ in range(2):
            with pytest.raises(AgentError) as caught:
                proposed(one)
            assert not caught.value.retryable
    sent = {body.get("response_format", {}).get("type", "none") for body in server.bodies}
    assert sent == {structured}


@pytest.mark.parametrize(
    "behaviour", [busy(), loading(), fails(500), fails(401), canned("nonsense")]
)
def test_no_other_failure_changes_the_format(behaviour: Behaviour) -> None:
    with FakeServer(behaviour, answers(two)) as server:
        one = proposer(server.url)
        with pytest.raises(AgentError):
            proposed(one)
        proposed(one)
    formats = [body["response_format"]["type"] for body in server.bodies]
    assert formats == ["json_schema", "json_schema"]


def test_a_time_out_is_no_answer() -> None:
    with (
        FakeServer(hangs()) as server,
        pytest.raises(AgentError, match="no answer within") as caught,
    ):
        proposed(proposer(server.url, timeout="0.2s"))
    assert (caught.value.retryable, caught.value.unspent) == (True, False)


def test_it_declares_all_that_a_repair_needs() -> None:
    assert proposer("http://h").capabilities == Capabilities(True, True, True, True)


def test_candidates_in_the_users_own_words_are_known_as_examples(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(
        'Like {{"x": 0.25, "y": 0.5}} but better: {parameters} {count} {shape}'
    )
    with FakeServer(answers(two)) as server:
        one = proposer(server.url, tmp_path, prompt="words.txt")
        proposed(one)
    assert one.examples == ({"x": 0.25, "y": 0.5},)
    assert 'Like {"x": 0.25, "y": 0.5} but better' in server.bodies[0]["messages"][1]["content"]
    assert proposer("http://h").examples == ()


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read"), (b"\xff", "UTF-8"), (b"{nonsense}", "nonsense")],
)
def test_words_that_cannot_be_used_any_more_are_named(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        proposer("http://h", tmp_path, prompt="words.txt")


def test_the_client_is_of_the_campaigns_folders() -> None:
    client = proposer("http://h", Path("/campaign")).client
    assert (client.folder, client.run_dir) == (Path("/campaign"), Path("/campaign/run"))
    assert isinstance(client, ChatClient)
