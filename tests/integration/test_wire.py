"""What goes over the wire in a repair, and that none of it is anywhere else."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fakeserver as fake
import otlp
import running
from campaign.config import CampaignConfig
from campaign.conventions import DETAILS
from campaign.exporting import Signals
from campaign.feedback import MOST_BYTES
from campaign.ledger import read
from inline import InlineExecutor
from square import GOOD

REPAIRS = 5


def config(url: str, expect: dict[str, Any] | None = None, **agent: Any) -> CampaignConfig:
    asked = {"kind": "openai", "model": "m", "url": url, "suggest": False, "backoff": "0.001s"}
    usual = {"max_iterations": REPAIRS + 1, "structural": "auto"}
    return running.config(rounds=1, agent=asked | agent, expect=expect or usual)


def worse(count: int) -> fake.Behaviour:
    """An answer whose one good candidate is the first; what is wrong differs every time."""
    wrong = [{"x": 0.1 * n, "y": 2.0 + count, "padding" * 300: "z" * 4000} for n in range(1, 4)]
    return fake.answers(lambda _: wrong, rationale=f"try {count} " + "so " * 600)


def messages(body: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = body["messages"]
    return found


def test_a_repair_is_the_ordinary_request_and_two_messages(tmp_path: Path) -> None:  # R1, R2, R3
    script = [worse(count) for count in range(REPAIRS)]
    with fake.FakeServer(*script, fake.answers(lambda _: GOOD)) as server:
        ran = running.run(tmp_path, config(server.url))
        bodies = server.bodies
    assert ran.dispositions == ["repaired"] * 3
    assert len(bodies) == REPAIRS + 1
    base = messages(bodies[0])
    assert [one["role"] for one in base] == ["system", "user"]
    sizes = []
    for count, body in enumerate(bodies[1:]):
        sent = messages(body)
        assert sent[:2] == base
        assert [one["role"] for one in sent[2:]] == ["assistant", "user"]
        said = json.loads(sent[2]["content"])
        assert said["rationale"].startswith(f"try {count} ")
        assert len(sent[3]["content"].encode()) <= MOST_BYTES
        sizes.append(sum(len(one["content"].encode()) for one in sent))
        # Nothing of an earlier answer is left.
        whole = json.dumps(sent)
        assert not any(f"try {other} " in whole for other in range(count))
    assert max(sizes) - min(sizes) < 100, "it does not grow"
    different = [{key: body[key] for key in body if key != "messages"} for body in bodies]
    assert {len(one) for one in different} == {len(different[0])}


def test_a_repair_after_some_passed_asks_for_the_others_alone(tmp_path: Path) -> None:  # R9, R10
    first = [GOOD[0], {"x": 7.0, "y": 0.1}, GOOD[2]]
    with fake.FakeServer(
        fake.answers(lambda _: first), fake.answers(lambda _: [GOOD[1]])
    ) as server:
        ran = running.run(tmp_path, config(server.url))
        bodies = server.bodies
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    slots = ran.state.rounds[1].slots
    assert [slots[slot].parameters for slot in range(3)] == GOOD
    schema = bodies[1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["candidates"]["minItems"] == 1
    told = messages(bodies[1])[3]["content"]
    assert "bounds" in told
    assert "at most 1" in told


def test_an_answer_without_candidates_is_steered_only_where_that_is_wanted(tmp_path: Path) -> None:
    for structural, count in (("auto", 4), ("retry", 2)):
        with fake.FakeServer(fake.says("no json"), fake.answers(lambda _: GOOD)) as server:
            settings = config(server.url, expect={"structural": structural})
            ran = running.run(tmp_path / structural, settings)
            first, second = server.bodies
        assert ran.dispositions == ["repaired"] * 3
        assert len(messages(second)) == count
        assert messages(second)[:2] == messages(first)
        assert second["seed"] != first["seed"], "never the same request twice"


def test_an_answer_that_was_cut_off_is_not_asked_for_in_the_same_length(
    tmp_path: Path,
) -> None:  # R17
    cut = fake.says('{"rationale": "so', finish_reason="length")
    with fake.FakeServer(cut, fake.answers(lambda _: GOOD)) as server:
        running.run(tmp_path, config(server.url))
        first, second = server.bodies
    assert second["max_tokens"] == 2 * first["max_tokens"]


SCRIPT = """
import sys
from pathlib import Path
import fakeserver, running, test_wire
with fakeserver.FakeServer(test_wire.worse(0), fakeserver.answers(lambda _: test_wire.GOOD)) as one:
    running.run(Path(sys.argv[1]), test_wire.config(one.url))
    sys.stdout.buffer.write(b"\\n".join(request.raw for request in one.requests))
"""


def test_two_processes_send_the_same_bytes(tmp_path: Path) -> None:  # R5, R41
    said = []
    for hashes in ("1", "2"):
        path = os.pathsep.join([*sys.path, str(Path(__file__).parent)])
        env = os.environ | {"PYTHONHASHSEED": hashes, "PYTHONPATH": path}
        run_dir = str(tmp_path / hashes)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, run_dir], env=env, capture_output=True, check=True
        )
        said.append(done.stdout)
    assert said[0] == said[1]
    assert said[0].count(b"\n") == 1


SECRET, KEY = "canary-rationale-4711", "canary-key-0815"
SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


def observed(run_dir: Path, settings: CampaignConfig) -> running.Ran:
    """A run whose telemetry is kept."""
    lost: list[str] = []

    async def job() -> running.Ran:
        run_dir.mkdir()
        signals = Signals(run_dir / "telemetry", 1, lost.append, lost.append)
        try:
            return await running.job(run_dir, settings, InlineExecutor(running.FUNCTIONS))
        finally:
            await signals.close()

    ran = asyncio.run(job())
    assert not lost
    return ran


@pytest.mark.parametrize("switch", ["NO_CONTENT", None])
def test_what_the_agent_wrote_and_its_key_are_nowhere(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    switch: str | None,
) -> None:  # R36
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.delenv(SWITCH, raising=False)
    if switch is not None:
        monkeypatch.setenv(SWITCH, switch)
    caplog.set_level(logging.DEBUG)
    wrong = [{"x": 7.0, "y": 0.1}, *GOOD[1:]]
    script = [
        fake.says(f"{SECRET} no json"),
        fake.fails(500, SECRET, SECRET),
        fake.answers(lambda _: wrong, rationale=SECRET),
        fake.fails(401, "authentication_error", f"{SECRET} {KEY}"),
    ]
    run_dir = tmp_path / "run"
    with fake.FakeServer(*script) as server:
        settings = config(server.url, key={"env": "MODEL_KEY"})
        ran = observed(run_dir, settings)
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [f"Bearer {KEY}"] * 4, "the key went where it belongs"
    assert "401" in ran.ending.reason
    written = b"".join(path.read_bytes() for path in run_dir.rglob("*") if path.is_file())
    seen = [
        written.decode(errors="replace"),
        "\n".join(f"{one.getMessage()} {one.exc_text} {one.args}" for one in caplog.records),
        repr(ran.ending) + str(ran.ending),
        repr(ran.state),
        repr(pickle.dumps(read(run_dir))),
        repr(settings),
    ]
    for text in seen:
        assert SECRET not in text
        assert KEY not in text
    assert len(written) > 1000
    calls = [span for span in otlp.spans(run_dir) if span.name == "chat m"]
    reasons = [otlp.attributes(span.attributes).get("error.type") for span in calls]
    assert reasons == [None, "500", None, "401"]


@pytest.mark.parametrize(
    ("switch", "on_spans", "on_events"),
    [
        ("span_only", True, False),
        (" EVENT_ONLY ", False, True),
        ("SPAN_AND_EVENT", True, True),
        ("true", False, False),
    ],
)
def test_what_the_agent_wrote_is_in_the_telemetry_alone_where_the_switch_wants_it(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    switch: str,
    on_spans: bool,
    on_events: bool,
) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setenv(SWITCH, switch)
    caplog.set_level(logging.DEBUG)
    run_dir = tmp_path / "run"
    wrong = fake.answers(lambda _: [{"x": 7.0, "y": 0.1}] * 3, rationale=SECRET)
    with fake.FakeServer(wrong, fake.answers(lambda _: GOOD, rationale=SECRET)) as server:
        ran = observed(run_dir, config(server.url, key={"env": "MODEL_KEY"}))
    assert ran.dispositions == ["repaired"] * 3
    files = {path: path.read_text(errors="replace") for path in run_dir.rglob("*.*")}
    holding = {path.name.partition("-")[0] for path, text in files.items() if SECRET in text}
    wanted = {"traces": on_spans, "logs": on_events}
    assert holding == {signal for signal, holds in wanted.items() if holds}
    assert not [path for path, text in files.items() if KEY in text]
    assert SECRET not in caplog.text + repr(ran.state)
    spans = [one for one in otlp.spans(run_dir) if one.name == "chat m"]
    events = [one for one in otlp.events(run_dir) if one.event_name == DETAILS]
    told = [otlp.attributes(one.attributes).get("gen_ai.output.messages") for one in spans]
    assert [SECRET in (one or "") for one in told] == [on_spans] * 2
    assert len(events) == 2 * on_events
    assert {one.span_id for one in events} <= {one.span_id for one in spans}
    if on_events:
        (said,) = otlp.attributes(events[0].attributes)["gen_ai.output.messages"]
        assert said["role"] == "assistant"
        assert SECRET in said["parts"][0]["content"]
