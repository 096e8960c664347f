"""Repair requirements on failures: none of them is an answer, and none is sent to be repaired.

Which test shows which requirement stands in docs/adr: what the repair requirements come to.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fakeserver as fake
import folders
import running
from campaign.agents.base import AgentError
from campaign.config import CampaignConfig
from campaign.events import (
    Answered,
    Asked,
    Called,
    CallFailed,
    Judged,
    SlotEnded,
    TaskEnded,
    Unanswered,
)
from campaign.ledger import read
from campaign.model import JobOutcome
from executors.base import TaskResult, TaskStatus
from repairing import OUTSIDE, config
from running import of, run, verifier
from speaking import answer, speaking
from square import GOOD, STEEP

CHECK = """
import json
from concurrent.futures import CancelledError
from pydantic import TypeAdapter
from checks import Rejected, check


@check("own")
def own(value, params):
    if value > 0.9:
        {raises}
    return True, ""
"""
RAISES = {
    "ValueError": "raise ValueError('x')",
    "KeyError": "{}['table']",
    "JSONDecodeError": "json.loads('a table that is broken')",
    "ValidationError": "TypeAdapter(int).validate_python('a table that is broken')",
    "TimeoutError": "raise TimeoutError",
    "Rejected": "raise Rejected('a check answers, it does not raise')",
    "TypeError": "return False",
}


@pytest.mark.parametrize("kind", RAISES)
def test_r13_what_a_check_raises_is_no_rejection_whatever_it_is(tmp_path: Path, kind: str) -> None:
    (tmp_path / "checks").mkdir()
    text = CHECK.replace("{raises}", RAISES[kind])
    (tmp_path / "checks" / "own.py").write_text(text)
    rule = {"id": "mine", "type": "own", "field": "y"}
    agent = speaking(answer(GOOD[0], STEEP, GOOD[1]), answer(GOOD[2]))
    ran = run(tmp_path, config(rule, expect={"max_iterations": 5}), proposer=agent)
    assert len(agent.asks) == 1, "it costs no generation"
    assert ran.dispositions == ["accepted", "fallback", "accepted"]
    assert of(ran, Judged)[0].verdicts[1].errors == ["mine"]
    assert kind in of(ran, Judged)[0].verdicts[1].expect["outcomes"][0]["detail"]


@pytest.mark.parametrize("status", [one for one in TaskStatus if one is not TaskStatus.DONE])
def test_r13_whatever_ends_a_verifier_is_no_rejection(tmp_path: Path, status: TaskStatus) -> None:
    if status is TaskStatus.CANCELLED:
        pytest.skip("only our own driver cancels")
    functions = running.FUNCTIONS | {
        "tests:rejects": lambda one: (
            TaskResult(status, reason="broken", seconds=0.1)
            if one == GOOD[0]
            else {"verdict": "pass"}
        )
    }
    agent = speaking(answer(*GOOD))
    settings = config(policy={"verifier_failure": "reject"}, expect={"max_iterations": 5})
    ran = run(tmp_path, settings, proposer=agent, functions=functions)
    assert len(agent.asks) == 1
    assert ran.dispositions == ["fallback", "accepted", "accepted"]


@pytest.mark.parametrize(
    ("status", "retries", "tries"),
    [(TaskStatus.LOST, 2, 3), (TaskStatus.LOST, 0, 1), (TaskStatus.ERROR, 2, 1)],
)
def test_r15_a_verifier_is_tried_again_by_itself_and_only_for_what_may_pass(
    tmp_path: Path, status: TaskStatus, retries: int, tries: int
) -> None:
    functions = running.FUNCTIONS | {
        "tests:second": lambda _: TaskResult(status, reason="gone", seconds=0.1)
    }
    settings = config(
        batch_size=1,
        verifiers=[
            verifier("first"),
            verifier("second", "tests:second", retries=retries),
            verifier("third"),
        ],
    )
    ran = run(tmp_path, settings, proposer=speaking(answer(GOOD[0])), functions=functions)
    made = Counter(one.task for one in of(ran, TaskEnded))
    assert made == {"first": 1, "second": tries, "third": 1, "simulation": 1}
    assert of(ran, SlotEnded)[0].unanswered == ["second"]


def test_r15_a_try_that_succeeds_is_the_last(tmp_path: Path) -> None:
    left: list[Any] = [TaskResult(TaskStatus.LOST, seconds=0.1)] * 2 + [{"verdict": "pass"}]
    functions = running.FUNCTIONS | {"tests:second": lambda _: left.pop(0)}
    verifiers = [verifier("first"), verifier("second", "tests:second", retries=5)]
    settings = config(batch_size=1, verifiers=verifiers)
    ran = run(tmp_path, settings, proposer=speaking(answer(GOOD[0])), functions=functions)
    assert left == []
    assert of(ran, SlotEnded)[0].unanswered == []


def served(server: fake.FakeServer, **agent: Any) -> CampaignConfig:
    asked = {"kind": "openai", "model": "m", "url": server.url, "suggest": False}
    asked |= {"backoff": "0.001s"}
    return running.config(rounds=1, agent=asked | agent, expect={"max_iterations": 3})


def bad(count: int) -> fake.Behaviour:
    return fake.answers(lambda _: [OUTSIDE | {"x": 0.01 * count + 0.1 * n} for n in range(3)])


def test_r16_a_failed_call_changes_nothing_of_what_is_said(tmp_path: Path) -> None:
    good = fake.answers(lambda _: GOOD)
    with fake.FakeServer(fake.fails(500), bad(1), fake.drops(), fake.busy(), good) as server:
        ran = run(tmp_path, served(server))
        sent = [request.raw for request in server.requests]
    assert ran.dispositions == ["repaired"] * 3
    assert sent[0] == sent[1]
    assert sent[2] == sent[3] == sent[4]
    assert sent[0] != sent[2]
    assert ran.state.usage.counter("generations").spent == 2
    failed = [(one.generation, one.status, one.request_id) for one in of(ran, CallFailed)]
    assert failed == [(1, 500, "req-failed"), (2, 0, ""), (2, 429, "req-failed")]


def test_r16_an_agent_without_an_answer_is_told_from_one_whose_answers_fail(
    tmp_path: Path,
) -> None:
    policy = {"structural_failure": "tombstone", "semantic_rejection": "tombstone"}
    gone = run(
        tmp_path / "gone",
        config(policy=policy, agent={"retries": 1}),
        proposer=speaking(AgentError("HTTP 502", status=502, request_id="r-7")),
    )
    wrong = run(
        tmp_path / "wrong", config(policy=policy), proposer=speaking(answer(*[OUTSIDE] * 3))
    )
    assert {one.reason for one in of(gone, SlotEnded)} == {
        f"slot {slot}: transport: HTTP 502" for slot in range(3)
    }
    assert all(": bounds: " in one.reason for one in of(wrong, SlotEnded)[:1])
    assert (len(of(gone, Unanswered)), len(of(gone, Answered))) == (1, 0)
    assert (len(of(wrong, Unanswered)), len(of(wrong, Answered))) == (0, 2)
    assert [one.request_id for one in of(gone, CallFailed)] == ["r-7"] * 2


@pytest.mark.parametrize("retries", [0, 2])
def test_r18_no_more_calls_reach_the_server_than_were_declared(
    tmp_path: Path, retries: int
) -> None:
    failing = [fake.fails(503), fake.resets(), fake.fails(500), fake.drops()]
    script = [behaviour for count in range(1, 4) for behaviour in (*failing[:retries], bad(count))]
    with fake.FakeServer(*script) as server:
        ran = run(tmp_path, served(server, retries=retries))
        calls = server.calls
    assert ran.dispositions == ["fallback"] * 3
    assert calls == len(of(ran, Called)) <= 3 * (1 + retries)
    assert len(of(ran, Asked)) == 3


def test_r18_a_server_that_only_fails_is_called_as_often_as_was_declared(tmp_path: Path) -> None:
    with fake.FakeServer(fake.fails(500)) as server:
        ran = run(tmp_path, served(server, retries=3))
        assert server.calls == len(of(ran, Called)) == 4


SPINS = """
def bowl(candidate):
    return {"loss": candidate["x"]}


def stable(candidate):
    return {"verdict": "pass"}


def spins(candidate):
    while True:
        pass
"""


def test_r19_a_verifier_that_never_returns_ends_at_its_walltime_and_others_speak(
    tmp_path: Path,
) -> None:
    task = {"kind": "python", "walltime": "10s"}
    spinning = task | {"name": "spins", "function": "model:spins", "walltime": "0.5s"}
    stable = task | {"name": "stable", "function": "model:stable"}
    folder = folders.folder(
        tmp_path / "campaign", rounds=1, batch_size=1, verifiers=[spinning, stable]
    )
    (folder / "model.py").write_text(SPINS)
    run_dir = tmp_path / "run"
    done = folders.simgate("run", folder, "--run-dir", run_dir)
    assert done.exit_code == 0, done.output
    events = [entry.event for entry in read(run_dir)]
    ends = {one.task: one.status for one in events if isinstance(one, TaskEnded)}
    assert ends == {"spins": "walltime", "stable": "done", "simulation": "done"}
    (slot,) = [one for one in events if isinstance(one, SlotEnded)]
    assert (slot.disposition, slot.unanswered) == ("accepted", ["spins"])


def test_r19_a_check_that_cannot_tell_silences_no_other(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "own.py").write_text(CHECK.replace("{raises}", "raise TimeoutError"))
    rules = [
        {"id": "mine", "type": "own", "field": "y"},
        {"id": "low", "type": "expression", "params": {"condition": "y <= 0.5"}},
    ]
    agent = speaking(answer(GOOD[0], STEEP, GOOD[1]), answer({"x": 0.3, "y": 0.5}))
    ran = run(tmp_path, config(*rules), proposer=agent)
    (judged, *_) = of(ran, Judged)
    assert judged.verdicts[1].errors == ["mine"]
    assert judged.verdicts[1].expect["failed"] == ["mine", "low"]
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    assert ran.ending.outcome is JobOutcome.DONE
