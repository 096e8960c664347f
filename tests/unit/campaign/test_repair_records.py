"""Repair requirements on what is recorded, what is left alone, and how a run is ended.

Which test shows which requirement stands in docs/adr: what the repair requirements come to.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import fakeserver as fake
import running
from campaign.agents.base import AgentError
from campaign.config import CampaignConfig
from campaign.events import Answered, Called, CallFailed, JobEnded, Judged, SlotEnded
from campaign.ledger import read
from campaign.model import Answer, Ask, JobOutcome
from campaign.state import fold
from campaign.stop import Stop
from executors.base import TaskResult, TaskStatus
from inline import InlineExecutor
from repairing import EMPTY, LEVEL, OUTSIDE, UNSTABLE, config
from running import of, run
from speaking import WORST, SpeakingAgent, answer, speaking
from square import GOOD, STEEP


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_r37_each_answer_is_recorded_with_what_was_sent_for_it(tmp_path: Path) -> None:
    said = [answer(OUTSIDE, *GOOD[:2], rationale="first"), "no json at all", answer(GOOD[2])]
    with fake.FakeServer(*map(fake.says, said)) as server:
        asked = {"kind": "openai", "model": "m", "url": server.url, "suggest": False}
        settings = running.config(rounds=1, agent=asked, expect={"max_iterations": 3})
        ran = run(tmp_path, settings)
        sent = [request.raw for request in server.requests]
    answered = of(ran, Answered)
    assert [(one.request, one.response) for one in answered] == [
        (sha256(request), sha256(text.encode())) for request, text in zip(sent, said, strict=True)
    ]
    assert [one.stage for one in answered] == ["", "schema", ""]
    assert [one.response_id for one in answered] == [f"chatcmpl-{n}" for n in (1, 2, 3)]
    assert all(one.tokens == one.input_tokens + one.output_tokens > 0 for one in answered)
    assert all(one.seconds >= 0 for one in answered)
    judged = {(one.round, one.generation): one.verdicts for one in of(ran, Judged)}
    assert sorted(judged) == [(1, 1), (1, 3)], "with what the checks said of its candidates"
    assert [one.check for one in judged[1, 1][0].findings if one.status == "reject"] == ["bounds"]


@dataclass
class Watching(SpeakingAgent):
    """Keeps a copy of every ask as it was put, and of every answer as it was given."""

    as_asked: list[Ask] = field(default_factory=list)
    given: list[Answer] = field(default_factory=list)
    as_given: list[Answer] = field(default_factory=list)

    async def propose(self, ask: Ask) -> Answer:
        self.as_asked.append(copy.deepcopy(ask))
        said = await super().propose(ask)
        self.given.append(said)
        self.as_given.append(copy.deepcopy(said))
        return said


PATHS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "accepted": ([answer(*GOOD)], {}),
    "repaired": ([answer(STEEP, UNSTABLE, GOOD[0]), answer(*GOOD[1:])], {}),
    "fallback": ([answer(OUTSIDE, EMPTY, GOOD[0]), "no json"], {}),
    "returned": (
        [answer(STEEP, UNSTABLE, GOOD[0]), answer(STEEP, UNSTABLE)],
        {"expect": {"on_exhausted": "return_last"}},
    ),
    "tombstone": ([answer(STEEP, *GOOD[:2]), answer(STEEP)], {"expect": {"on_exhausted": "fail"}}),
    "failed": ([answer(STEEP, *GOOD[:2]), answer(STEEP)], {"expect": {"on_exhausted": "raise"}}),
    "unanswered": ([AgentError("away")], {}),
}


@pytest.mark.parametrize("path", PATHS)
def test_r38_nothing_that_was_handed_over_is_changed(tmp_path: Path, path: str) -> None:
    lines, changes = PATHS[path]
    settings = config(LEVEL, **changes)
    before = settings.model_dump()
    agent = Watching(lines)
    ran = run(tmp_path, settings, proposer=agent)
    assert path in ran.dispositions or path in (ran.ending.outcome, "unanswered")
    assert settings.model_dump() == before
    assert agent.asks == agent.as_asked
    assert agent.given == agent.as_given


def test_r38_what_an_agent_does_to_its_answer_later_changes_no_candidate(tmp_path: Path) -> None:
    mine = [dict(point) for point in GOOD]

    def spoilt(_: Ask) -> str:
        for point in mine:
            point["x"] = 99.0
        return answer({"x": 0.15, "y": 0.15})

    first = Answer((mine[0], mine[1], {"x": 7.0, "y": 0.1}), response=answer(*mine))
    ran = run(tmp_path, config(), proposer=speaking(first, spoilt))
    assert ran.dispositions == ["accepted", "accepted", "repaired"]
    slots = ran.state.rounds[1].slots
    assert [slots[slot].parameters for slot in (0, 1)] == GOOD[:2]
    assert mine[0]["x"] == 99.0


CANARY = "canary-4711"
FAIL = {"semantic_rejection": "fail_run", "structural_failure": "fail_run"}
BROKEN = running.FUNCTIONS | {
    "tests:rejects": lambda _: TaskResult(TaskStatus.ERROR, reason="broken", seconds=0.1)
}


def told(*candidates: object) -> str:
    return answer(*candidates, rationale=CANARY)


def stage(name: str) -> Answer:
    return Answer(stage=name, reason=f"it ended as {name}", response=CANARY)


CAUSES: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "a check": ([told(OUTSIDE), told(OUTSIDE | {"x": 0.2})], {}, "bounds: y: 1.5"),
    "a rule": ([told(STEEP), told(STEEP | {"x": 0.3})], {}, "level: condition"),
    "a verifier": ([told(UNSTABLE), told(UNSTABLE | {"y": 0.0})], {}, "stable: x: 0.9"),
    "no progress": ([told(STEEP)], {"expect": {"max_iterations": 5}}, "no_progress: "),
    "no json": ([f"{CANARY} {{"], {}, "schema: "),
    "truncation": ([stage("truncation")], {}, "truncation: it ended as truncation"),
    "refusal": ([stage("refusal")], {}, "refusal: "),
    "filtered": ([stage("filtered")], {}, "filtered: "),
    "empty": ([stage("empty")], {}, "empty: "),
    "no answer": ([AgentError("HTTP 500")], {"agent": {"retries": 0}}, "transport: HTTP 500"),
    "a cap": (
        [told(STEEP)],
        {"budgets": {"generations": 1}},
        "budget: budgets.generations: 1 of 1",
    ),
    "a cap at once": (
        [told(STEEP)],
        {"budgets": {"tokens": 1}},
        "budget: budgets.tokens: 0 of 1 spent",
    ),
    "a failure": (
        [told(GOOD[0])],
        {"policy": {"verifier_failure": "fail_run"}},
        "verifier stable: error: broken (on_failure: fail_run)",
    ),
}


@pytest.mark.parametrize("other", ["fail_run", "tombstone"])
@pytest.mark.parametrize("cause", CAUSES)
def test_r39_a_run_that_ends_by_policy_names_the_cause_and_quotes_no_words(
    tmp_path: Path, cause: str, other: str
) -> None:
    lines, changes, named = CAUSES[cause]
    unread = {"no json", "truncation", "refusal", "filtered", "empty", "no answer", "a cap at once"}
    policy = FAIL | {("semantic_rejection" if cause in unread else "structural_failure"): other}
    changes = {**changes, "policy": policy | changes.get("policy", {})}
    settings = config(LEVEL, batch_size=1, **changes)
    functions = BROKEN if cause == "a failure" else running.FUNCTIONS
    ran = run(tmp_path, settings, proposer=speaking(*lines), functions=functions)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert named in ran.ending.reason
    assert ran.ending.reason.endswith("fail_run)")
    assert "\n" not in ran.ending.reason
    if cause != "a failure":
        assert " generations are used; " in ran.ending.reason
    (ended,) = of(ran, JobEnded)
    assert ended.reason == ran.ending.reason
    assert CANARY not in (tmp_path / "ledger.jsonl").read_text()


@dataclass
class Hanging(SpeakingAgent):
    """Answers its lines, and to the ask after them never."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def propose(self, ask: Ask) -> Answer:
        if len(self.asks) < len(self.lines):
            return await super().propose(ask)
        self.asks.append(ask)
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


def interrupted(
    run_dir: Path, settings: CampaignConfig, end: Callable[[Stop, asyncio.Task[Any]], None]
) -> Hanging:
    """A run whose second call hangs, ended by ``end``."""

    async def main() -> Hanging:
        stop, agent = Stop(), Hanging([answer(GOOD[0], OUTSIDE, GOOD[1])])
        executor = InlineExecutor(running.FUNCTIONS)
        job = asyncio.ensure_future(running.job(run_dir, settings, executor, lambda: stop, agent))
        await agent.begun.wait()
        end(stop, job)
        await asyncio.wait({job})
        assert job.cancelled() == (stop.reason == "")
        return agent

    return asyncio.run(main())


ENDED: dict[str, tuple[Callable[[Stop, asyncio.Task[Any]], None], str, list[str]]] = {
    "by a signal": (
        lambda stop, _: stop.signal("SIGTERM", 0.0), "cancelled: SIGTERM received", ["stopped"]
    ),
    "by being cancelled": (lambda _, job: _cancel(job), "cancelled with its driver", []),
}  # fmt: skip


def _cancel(job: asyncio.Task[Any]) -> None:
    job.cancel()


@pytest.mark.parametrize("how", ENDED)
def test_r40_a_driver_that_ends_in_a_call_records_that_once_and_keeps_what_is_done(
    tmp_path: Path, how: str
) -> None:
    end, reason, outcomes = ENDED[how]
    settings = config(agent={"retries": 1}, expect={"max_iterations": 2})
    agent = interrupted(tmp_path, settings, end)
    assert len(agent.asks) == 2
    events = [entry.event for entry in read(tmp_path)]
    assert len([one for one in events if isinstance(one, Called)]) == 2, "no call after"
    (failed,) = [one for one in events if isinstance(one, CallFailed)]
    assert (failed.generation, failed.reason, failed.tokens) == (2, reason, WORST)
    assert failed.free
    assert [one.outcome for one in events if isinstance(one, JobEnded)] == outcomes
    kept = {one.slot: one.disposition for one in events if isinstance(one, SlotEnded)}
    assert kept == {0: "accepted", 2: "accepted"}

    later = speaking(AgentError("away", unspent=True), answer(GOOD[2]))
    ran = run(tmp_path, settings, proposer=later)
    assert [one.slots for one in later.asks] == [(1,)] * 2, "it used up no retry"
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    assert ran.state.usage.counter("tokens").spent == WORST + 2 * WORST // 10
    assert fold(ran.entries) == ran.state


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_r40_an_interrupt_goes_through_and_leaves_a_run_to_go_on_with(
    tmp_path: Path, interrupt: type[BaseException]
) -> None:
    def interrupts(_: Ask) -> str:
        raise interrupt

    agent = speaking(answer(GOOD[0], OUTSIDE, GOOD[1]), interrupts)
    with pytest.raises(interrupt):
        run(tmp_path, config(), proposer=agent)
    assert len(agent.asks) == 2
    ran = run(tmp_path, config(), proposer=speaking(answer(GOOD[2])))
    assert ran.dispositions == ["accepted", "repaired", "accepted"]
    assert len(of(ran, CallFailed)) <= 1


def test_r40_a_call_that_its_driver_cancelled_is_over(tmp_path: Path) -> None:
    over: list[str] = []

    class Tidy(Hanging):
        async def propose(self, ask: Ask) -> Answer:
            try:
                return await super().propose(ask)
            except asyncio.CancelledError:
                over.append(json.dumps(ask.slots))
                raise

    async def main() -> None:
        agent = Tidy([answer(GOOD[0], OUTSIDE, GOOD[1])])
        executor = InlineExecutor(running.FUNCTIONS)
        job = asyncio.ensure_future(running.job(tmp_path, config(), executor, Stop, agent))
        await agent.begun.wait()
        job.cancel()
        await asyncio.wait({job})
        assert over == ["[1]"]

    asyncio.run(main())
