"""The client of a model's server, against a server that behaves and misbehaves on the wire."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import pickle
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from campaign.agentconfig import JudgeConfig
from campaign.agents.base import AgentError, LoadingError
from campaign.agents.chat import ChatClient, url_problems
from campaign.agents.wire import Completion, Reply, completion, refused, retry_after
from campaign.model import Spent
from fakeserver import (
    Behaviour,
    FakeServer,
    babbles,
    busy,
    canned,
    dies,
    drips,
    drops,
    fails,
    floods,
    hangs,
    html,
    loading,
    recorded,
    resets,
    says,
)

ANSWERS = Path(__file__).parents[3] / "data" / "answers"
KEY = "sk-canary-0123456789abcdef"
ASKED = {"messages": [{"role": "user", "content": "hi"}]}


def client(place: Path, url: str | None = None, **more: Any) -> ChatClient:
    settings = {"model": "m", "url": url, "timeout": "20s"} | more
    return ChatClient(JudgeConfig.model_validate(settings), place, place / "run")


def asked(one: ChatClient, body: Mapping[str, object] = ASKED) -> Completion:
    return asyncio.run(one.complete(body))


def failure(place: Path, *script: Behaviour, **more: Any) -> AgentError:
    """What the first call of a server with this script fails with."""
    with FakeServer(*script) as server, pytest.raises(AgentError) as caught:
        asked(client(place, server.url, **more))
    assert server.calls <= 1
    return caught.value


def test_an_answer_comes_with_its_tokens_its_id_and_the_hash_of_what_was_sent(
    tmp_path: Path,
) -> None:
    with FakeServer(says("hello")) as server:
        answer = asked(client(tmp_path, server.url))
    sent = server.requests[0]
    assert answer.content == answer.text == "hello"
    assert (answer.finish_reason, answer.response_id) == ("stop", "chatcmpl-1")
    assert answer.spent == Spent(server.input_tokens, server.output_tokens)
    assert answer.request == hashlib.sha256(sent.raw).hexdigest()
    assert sent.path == "/v1/chat/completions"
    assert sent.body == ASKED
    assert "authorization" not in sent.headers


def test_a_server_on_a_unix_socket_is_asked_in_the_same_way(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with FakeServer(says("hello"), socket=tmp_path / "run" / "s") as server:
        answer = asked(client(tmp_path, socket="{run_dir}/s"))
        assert asyncio.run(client(tmp_path, socket="run/s").status("/health")) == 200
    assert answer.content == "hello"
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.looks == ["/health"]


def test_proxies_of_the_environment_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with FakeServer(says("hello")) as server:
        assert asked(client(tmp_path, server.url)).content == "hello"


def test_a_path_and_a_query_of_the_url_are_kept(tmp_path: Path) -> None:
    with FakeServer(says("hello")) as server:
        asked(client(tmp_path, f"http://{server.address}/deep/v1/?version=2"))
    assert server.requests[0].path == "/deep/v1/chat/completions?version=2"


def test_the_request_is_the_configured_one_and_its_own_fields_win(tmp_path: Path) -> None:
    one = client(tmp_path, "http://h/v1", top_p=0.5, body={"cache_prompt": False, "model": "x"})
    assert one.body([{"role": "user", "content": "hi"}], 7) == {
        "cache_prompt": False,
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.0,
        "top_p": 0.5,
        "max_tokens": 7,
    }


def test_an_absent_content_and_a_refusal_are_an_answer(tmp_path: Path) -> None:
    with FakeServer(says(None), says(None, refusal="I will not")) as server:
        one = client(tmp_path, server.url)
        assert (asked(one).content, asked(one).refusal) == (None, "I will not")


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -5, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 2**60},
    ],
)
def test_tokens_that_are_not_told_or_cannot_be_count_as_unknown(
    tmp_path: Path, usage: dict[str, int] | None
) -> None:
    with FakeServer(says("hello", usage=usage)) as server:
        assert asked(client(tmp_path, server.url)).spent is None


NO_ANSWER: dict[str, tuple[Behaviour, str]] = {
    "html": (html(), "without a completion"),
    "empty": (canned(b""), "without a completion"),
    "no choices": (canned('{"choices":[]}'), "without a completion"),
    "another shape": (canned('{"choices":[{"message":{"content":7}}]}'), "without a completion"),
    "an error with 200": (canned('{"error":{"type":"overloaded"}}'), r"HTTP 200 \(overloaded\)"),
    "nested": (canned(b"[" * 300_000), "without a completion"),
    "half a surrogate": (
        canned(rb'{"choices":[{"message":{"content":"\ud800"}}]}'),
        "without a completion",
    ),
    "no UTF-8": (canned(b'{"choices":[{"message":{"content":"\xff"}}]}'), "without a completion"),
    "compressed": (canned(b"x", headers={"content-encoding": "gzip"}), "compressed"),
    "204": (canned(b"", 204), "HTTP 204"),
    "dropped": (drops(), "ended before the answer was whole"),
    "dropped in its head": (drops(b"HTTP/1.1 200 O"), "ended before the answer was whole"),
    "reset": (resets(), "ended before the answer was whole"),
    "no HTTP": (babbles(), "spoke no HTTP"),
    "dead": (dies(), "ended before the answer was whole"),
    "flood": (floods(), "more than 4194304 bytes"),
    "flood of unknown length": (floods(told=False), "more than 4194304 bytes"),
}


@pytest.mark.parametrize("name", NO_ANSWER)
def test_what_is_no_answer_may_be_asked_for_again_and_may_have_cost_tokens(
    tmp_path: Path, name: str
) -> None:
    behaviour, said = NO_ANSWER[name]
    error = failure(tmp_path, behaviour)
    assert (type(error), error.retryable, error.unspent) == (AgentError, True, False)
    with pytest.raises(AgentError, match=said):
        raise error


@pytest.mark.parametrize("behaviour", [hangs(), drips()], ids=["hangs", "drips"])
def test_an_answer_has_to_be_whole_by_its_deadline(tmp_path: Path, behaviour: Behaviour) -> None:
    error = failure(tmp_path, behaviour, timeout="0.2s")
    assert "no answer within 0.2 s" in error.what
    assert (error.retryable, error.unspent) == (True, False)


def test_a_call_that_is_cancelled_ends_its_connection(tmp_path: Path) -> None:
    begun, gone = asyncio.Event(), asyncio.Event()

    async def cancelled(server: FakeServer) -> None:
        call = asyncio.ensure_future(client(tmp_path, server.url).complete(ASKED))
        await begun.wait()
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        await gone.wait()
        assert server.calls == 1

    async def run() -> None:
        loop = asyncio.get_running_loop()

        def behave(exchange: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            exchange.listens(None)
            loop.call_soon_threadsafe(gone.set)

        with FakeServer(behave) as server:
            await asyncio.wait_for(cancelled(server), 30)

    asyncio.run(run())


def test_a_server_that_is_not_there_cost_nothing(tmp_path: Path) -> None:
    with FakeServer() as server:
        url = server.url
    for one in (client(tmp_path, url), client(tmp_path, socket="no.socket")):
        with pytest.raises(AgentError, match="cannot be reached") as caught:
            asked(one)
        assert (caught.value.retryable, caught.value.unspent) == (True, True)


def test_tls_with_a_server_that_has_none_cannot_be_reached(tmp_path: Path) -> None:
    with (
        FakeServer(says("hello")) as server,
        pytest.raises(AgentError, match=r"cannot be reached.*SSL") as caught,
    ):
        asked(client(tmp_path, server.https_url))
    assert (caught.value.retryable, caught.value.unspent, server.calls) == (True, True, 0)


@pytest.mark.parametrize(
    ("status", "retryable", "unspent"),
    [
        (301, False, True),
        (400, False, True),
        (401, False, True),
        (403, False, True),
        (404, False, True),
        (408, True, False),
        (409, True, True),
        (422, False, True),
        (429, True, True),
        (500, True, False),
        (502, True, False),
        (503, True, True),
        (504, True, False),
    ],
)
def test_a_status_says_whether_to_ask_again_and_whether_tokens_were_spent(
    tmp_path: Path, status: int, retryable: bool, unspent: bool
) -> None:
    error = failure(tmp_path, fails(status, "some_error", headers={"location": "/elsewhere"}))
    assert (error.status, error.request_id) == (status, "req-failed")
    assert (type(error), error.retryable, error.unspent) == (AgentError, retryable, unspent)
    assert f"HTTP {status} (some_error); " in error.what


def test_a_server_that_loads_its_model_is_told_from_one_that_is_busy(tmp_path: Path) -> None:
    error = failure(tmp_path, loading())
    assert (type(error), error.retryable, error.unspent) == (LoadingError, True, True)
    assert error.what.endswith("HTTP 503 (unavailable_error); the model is still loading")


def test_a_busy_server_may_name_the_time_to_wait(tmp_path: Path) -> None:
    assert failure(tmp_path, busy()).retry_after == 0
    assert failure(tmp_path, busy(7)).retry_after == 7
    assert failure(tmp_path, busy("soon")).retry_after == 0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1.5", 1.5),
        ("-3", 0),
        ("1e9", 0),
        ("nan", 0),
        ("", 0),
        (formatdate(1_000_030, usegmt=True), 30),
        (formatdate(999_000, usegmt=True), 0),
        ("Fri, 99 Foo 2026 99:99:99 GMT", 0),
    ],
)
def test_a_time_to_wait_is_seconds_or_a_date(value: str, seconds: float) -> None:
    assert retry_after(value, now=1_000_000) == seconds


FAILURES = {
    name: case
    for name, case in json.loads((ANSWERS / "expected.json").read_text()).items()
    if case["stage"] == "failure"
}


@pytest.mark.parametrize("name", FAILURES)
def test_every_recorded_failure_of_a_real_server_is_no_answer(tmp_path: Path, name: str) -> None:
    error = failure(tmp_path, recorded(ANSWERS / name))
    assert error.status == FAILURES[name]["status"]
    assert isinstance(error, LoadingError) == error.retryable == (error.status == 503)
    assert error.unspent


def test_a_recorded_answer_of_a_real_server_is_read(tmp_path: Path) -> None:
    case = ANSWERS / "bench_A_s01_r0.json"
    body = json.loads(json.loads(case.read_text())["response"]["body"])
    with FakeServer(recorded(case)) as server:
        answer = asked(client(tmp_path, server.url))
    usage = body["usage"]
    assert answer.content == body["choices"][0]["message"]["content"]
    assert answer.spent == Spent(usage["prompt_tokens"], usage["completion_tokens"])
    assert answer.response_id == body["id"]


def test_the_words_of_a_server_are_not_repeated() -> None:
    echo = json.dumps({"error": {"message": "what we said", "type": f"{KEY}", "code": "a b\x1b"}})
    error = refused(Reply(400, {"x-request-id": KEY}, echo.encode()), "h", secret=KEY)
    assert (
        error.what == "h: HTTP 400; the server takes no such request; see what it writes to its log"
    )
    assert error.request_id == ""


def test_ids_are_clipped_and_of_one_word() -> None:
    body = {"id": "x" * 999, "choices": [{"message": {}, "finish_reason": "stop\nstop"}]}
    answer = completion(Reply(200, {}, json.dumps(body).encode()), "h")
    assert (len(answer.response_id), answer.finish_reason) == (128, "")


@pytest.mark.parametrize("source", ["env", "file"])
def test_a_key_is_read_when_a_call_is_made_and_sent_as_bearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    with FakeServer(says("hello")) as server:
        one = client(tmp_path, server.url, key={source: "THE_KEY"})
        monkeypatch.setenv("THE_KEY", KEY)
        (tmp_path / "THE_KEY").write_text(f"{KEY}\n")
        asked(one)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("content", [None, "", "two words", "schlüssel", "two\nlines"])
@pytest.mark.parametrize("source", ["env", "file"])
def test_a_key_that_is_none_is_refused_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, source: str
) -> None:
    monkeypatch.delenv("THE_KEY", raising=False)
    if content is not None:
        monkeypatch.setenv("THE_KEY", content)
        (tmp_path / "THE_KEY").write_text(content)
    error = failure(tmp_path, says("hello"), key={source: "THE_KEY"})
    assert (error.retryable, error.unspent) == (False, True)
    assert error.what.startswith("key: the ")
    assert "'THE_KEY'" in error.what
    assert not content or content not in error.what


def test_the_key_shows_in_no_error_repr_pickle_or_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("THE_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    echo = {"x-request-id": KEY, "set-cookie": KEY, "retry-after": KEY, "location": KEY}
    script = (
        says("hello"),
        fails(401, KEY, KEY, echo),
        fails(302, KEY, KEY, echo),
        canned(f'{{"error":{{"type":"{KEY}"}}}}', headers=echo),
        says(f'{{"rationale":"{KEY}"}}'),
        says("hello", response_id=KEY, finish_reason=KEY),
        babbles(),
        drops(f"HTTP/1.1 200 OK\r\n{KEY}".encode()),
        resets(),
    )
    said = []
    with FakeServer(*script) as server:
        one = client(tmp_path, server.url, key={"env": "THE_KEY"})
        for _ in script:
            try:
                said += [repr(answer := asked(one)), str(pickle.dumps(answer))]
            except AgentError as error:
                said += [
                    repr(error.__context__),
                    repr(error),
                    str(pickle.dumps(error)),
                    str(vars(error)),
                ]
                said += traceback.format_exception(error)
        said += [repr(one), str(pickle.dumps(one)), one.without_key(f"key={KEY}")]
    assert server.calls == len(script)
    assert all(one.headers["authorization"] == f"Bearer {KEY}" for one in server.requests)
    late = failure(tmp_path, hangs(), key={"env": "THE_KEY"}, timeout="0.2s")
    said += [str(pickle.dumps(late)), *traceback.format_exception(late)]
    said += [record.getMessage() for record in caplog.records]
    assert not [text for text in said if KEY in text]
    assert late.__context__ is None  # httpx's own exceptions hold the request
    assert not [record for record in caplog.records if record.name.startswith("http")]


def test_what_others_log_of_their_own_calls_stays(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpcore.http11").debug("somebody else's")
    assert "somebody else's" in caplog.text


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://h/v1", "not http:// or https://"),
        ("http:///v1", "not http:// or https://"),
        ("localhost:8080/v1", "not http:// or https://"),
        ("http://h:99999/v1", "no URL"),
        ("http://[::1/v1", "no URL"),
        ("http://me:secret@h/v1", "holds a user's name or password"),
        ("http://h/a b", "holds blanks"),
    ],
)
def test_a_url_that_cannot_be_one_is_refused_without_being_quoted(
    tmp_path: Path, url: str, said: str
) -> None:
    with pytest.raises(AgentError, match=said) as caught:
        asked(client(tmp_path, url))
    assert (caught.value.retryable, caught.value.unspent) == (False, True)
    assert "secret" not in caught.value.what


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/v1", "https://[::1]/", "http://node-1"])
def test_a_url_that_may_be_one_has_no_problems(url: str) -> None:
    assert list(url_problems(url)) == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "none of the two of url and socket"),
        ({"url": "http://h", "socket": "s"}, "both of url and socket"),
        ({"socket": "s" * 120}, "a path of"),
        ({"socket": "{home}/s"}, "unknown placeholder '{home}'"),
    ],
)
def test_an_address_that_cannot_be_right_is_refused(
    tmp_path: Path, more: dict[str, str], said: str
) -> None:
    with pytest.raises(AgentError) as caught:
        asked(client(tmp_path, **more))
    assert said in caught.value.what
    assert not caught.value.retryable


def test_a_server_that_listens_and_says_nothing_is_not_there_for_a_look(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert asyncio.run(client(tmp_path, url, timeout="0.2s").status("/health")) == 0


def test_httpx_is_imported_by_the_first_call_only() -> None:
    code = "import campaign.cli, campaign.agents.openai, sys; print('httpx' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "False\n"
