"""The calls of an agent: made again where no answer came, never for free, never too often."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.agents.base import AgentError, LoadingError
from campaign.config import CampaignConfig
from campaign.events import Answered, Called, CallFailed, Entry, JobStarted, Unanswered
from campaign.ledger import Ledger
from campaign.model import Answer, JobOutcome
from executors.base import TaskResult, TaskStatus
from speaking import WORST, Line, SpeakingAgent, answer, speaking
from square import GOOD

BAD = [{"x": 0.1, "y": 2.0}, {"x": 0.2, "y": 3.0}, {"x": 0.3, "y": 4.0}]
DOWN = AgentError("the server is away", unspent=True)
CUT = AgentError("the connection was lost")


def config(*, agent: Mapping[str, Any] | None = None, **changes: Any) -> CampaignConfig:
    asked = {"kind": "python", "function": "tests:any", "backoff": "0.001s", "suggest": False}
    return running.config(**{"rounds": 1, "agent": asked | dict(agent or {})} | changes)


def events(entries: list[Entry], kind: type) -> list[Any]:
    return [entry.event for entry in entries if isinstance(entry.event, kind)]


def test_a_call_without_an_answer_is_made_again_and_costs_no_generation(tmp_path: Path) -> None:
    agent = speaking(DOWN, CUT, answer(*GOOD))
    ran = running.run(tmp_path, config(), proposer=agent)
    assert ran.dispositions == ["accepted"] * 3
    assert ran.state.usage.counter("generations").spent == 1
    assert [one.attempt for one in events(ran.entries, Called)] == [1, 2, 3]
    # What was surely not used is free, what may have been is charged in full.
    assert [one.tokens for one in events(ran.entries, CallFailed)] == [0, WORST]
    assert ran.state.usage.counter("tokens").spent == WORST + WORST // 10
    assert ran.state.usage.counter("tokens").reserved == 0


def test_a_failed_call_says_when_the_next_one_is_made(tmp_path: Path) -> None:
    ran = running.run(tmp_path, config(agent={"retries": 2}), proposer=speaking(CUT))
    assert [one.wait for one in events(ran.entries, CallFailed)] == [0.001, 0.002, 0.0]


def test_usage_that_is_not_told_is_charged_as_reserved(tmp_path: Path) -> None:  # R22
    ran = running.run(tmp_path, config(), proposer=speaking(answer(*GOOD), counted=False))
    assert ran.state.usage.counter("tokens").spent == WORST


def test_an_agent_that_never_answers_leaves_the_round_to_the_surrogate(tmp_path: Path) -> None:
    agent = speaking(CUT)
    ran = running.run(tmp_path, config(agent={"retries": 1}), proposer=agent)
    assert len(agent.asks) == 2
    assert ran.dispositions == ["fallback"] * 3
    assert ran.ending.outcome is JobOutcome.DONE
    (gave_up,) = events(ran.entries, Unanswered)
    assert gave_up.reason == "the connection was lost"
    assert ran.state.usage.counter("generations").spent == 0
    assert ran.state.usage.counter("generations").reserved == 0


def test_no_answer_is_not_a_candidate_that_policy_could_return(tmp_path: Path) -> None:
    policy = {"semantic_rejection": "fail_run", "structural_failure": "tombstone"}
    settings = config(agent={"retries": 0}, policy=policy)
    ran = running.run(tmp_path, settings, proposer=speaking(DOWN))
    assert ran.dispositions == ["tombstone"] * 3


def test_what_can_never_work_ends_the_run_at_once(tmp_path: Path) -> None:
    refused = AgentError("HTTP 401: the key is wrong", retryable=False, status=401, unspent=True)
    agent = speaking(refused)
    ran = running.run(tmp_path, config(), proposer=agent)
    assert ran.ending.outcome is JobOutcome.FAILED
    assert ran.ending.reason == "agent: HTTP 401: the key is wrong"
    assert len(agent.asks) == 1
    (failed,) = events(ran.entries, CallFailed)
    assert (failed.status, failed.tokens) == (401, 0)
    again = running.run(tmp_path, config(), proposer=speaking(answer(*GOOD)))
    assert again.dispositions == ["accepted"] * 3


def test_a_server_that_is_still_loading_uses_up_no_retry(tmp_path: Path) -> None:
    loading = LoadingError("loading", status=503, unspent=True)
    lines: list[Line] = [*[loading] * 5, answer(*GOOD)]
    agent = {"kind": "openai", "model": "m", "url": "http://127.0.0.1:1/v1", "retries": 0}
    asked = config(agent={"retries": 0})
    patient = running.config(rounds=1, agent=agent | {"backoff": "0.001s", "suggest": False})
    ran = running.run(tmp_path / "a", patient, proposer=speaking(*lines))
    assert ran.dispositions == ["accepted"] * 3
    assert [one.free for one in events(ran.entries, CallFailed)] == [True] * 5
    impatient = running.run(tmp_path / "b", asked, proposer=speaking(*lines))
    assert impatient.dispositions == ["fallback"] * 3  # an agent without a word on loading


def test_a_server_that_wants_more_than_an_hour_gives_no_answer(tmp_path: Path) -> None:
    busy = AgentError("HTTP 429", status=429, retry_after=7200.0, unspent=True)
    agent = speaking(busy)
    ran = running.run(tmp_path, config(), proposer=agent)
    assert len(agent.asks) == 1
    (gave_up,) = events(ran.entries, Unanswered)
    assert gave_up.reason == "HTTP 429; it asks to wait 7200 s"
    assert ran.dispositions == ["fallback"] * 3


def test_no_call_starts_that_could_pass_the_cap_on_tokens(tmp_path: Path) -> None:  # R21
    settings = config(budgets={"tokens": 2 * WORST - 1}, rounds=3)
    agent = speaking(answer(*GOOD), answer(*({"x": 0.4, "y": y} for y in (0.1, 0.2, 0.3))))
    ran = running.run(tmp_path, settings, proposer=agent)
    # 10 spent and 100 reserved twice; the third would need 120 of 199, and so on until 100 is left.
    tokens = ran.state.usage.counter("tokens")
    assert tokens.spent <= 2 * WORST - 1
    assert ran.ending.outcome is JobOutcome.DONE

    tight = running.run(tmp_path / "b", config(budgets={"tokens": WORST - 1}), proposer=agent)
    assert tight.dispositions == ["fallback"] * 3
    assert tight.state.usage.counter("tokens").spent == 0


def test_a_repeated_response_ends_the_asking(tmp_path: Path) -> None:  # R27, R29
    first = Answer(tuple(BAD), response=answer(*BAD), response_id="same")
    second = Answer(({"x": 0.9, "y": 2.5}, *BAD[1:]), response=answer(*BAD), response_id="same")
    agent = speaking(first, second, answer(*GOOD))
    settings = config(expect={"max_iterations": 5})
    ran = running.run(tmp_path, settings, proposer=agent)
    assert len(agent.asks) == 2
    assert ran.dispositions == ["fallback"] * 3


# The three budgets, each used up by itself (R14).
TRANSPORT, ANSWERS, VERIFIER = "transport", "answers", "verifier"


@pytest.mark.parametrize(("spent", "read"), list(product([TRANSPORT, ANSWERS, VERIFIER], repeat=2)))
def test_using_up_one_budget_leaves_the_others_as_they_were(
    tmp_path: Path, spent: str, read: str
) -> None:
    crash = TaskResult(TaskStatus.LOST, reason="gone", seconds=1.0)
    checks = [running.verifier("stable", retries=2, on_failure="reject")]
    settings = config(
        agent={"retries": 2}, expect={"max_iterations": 2}, verifiers=checks, batch_size=1
    )
    scripts: dict[str, list[Line]] = {
        TRANSPORT: [DOWN],
        ANSWERS: [answer(BAD[0]), answer(BAD[1])],
        VERIFIER: [answer(GOOD[0])],
    }
    functions = dict(running.FUNCTIONS)
    if spent == VERIFIER:
        functions["tests:passes"] = lambda at: crash if at == GOOD[0] else {"verdict": "pass"}
    agent = speaking(*scripts[spent])
    ran = running.run(tmp_path, settings, proposer=agent, functions=functions)
    failed = sum(not one.free for one in events(ran.entries, CallFailed))
    lost = [
        one.attempt
        for task in ran.state.tasks.values()
        for one in task.ended
        if one.status == TaskStatus.LOST
    ]
    counters = {
        TRANSPORT: (failed, 3, 0),
        ANSWERS: (len(events(ran.entries, Answered)), 2, 1 if spent == VERIFIER else 0),
        VERIFIER: (len(lost), 3, 0),
    }
    found, used_up, untouched = counters[read]
    assert found == (used_up if spent == read else untouched)


def resumed(entries: list[Entry], count: int, run_dir: Path) -> None:
    """A run directory as it stands when its driver is killed after ``count`` events."""
    run_dir.mkdir()
    with Ledger(run_dir) as ledger:
        for entry in entries[:count]:
            ledger.append(entry.event)


@pytest.mark.slow
def test_a_kill_at_any_event_neither_refills_nor_charges_twice(tmp_path: Path) -> None:  # R24
    settings = config(
        agent={"retries": 2},
        expect={"max_iterations": 3},
        budgets={"tokens": 20 * WORST, "generations": 9},
        rounds=2,
    )
    lines: list[Line] = [DOWN, answer(*BAD), CUT, answer(*GOOD), CUT, CUT, CUT]
    whole = running.run(tmp_path / "whole", settings, proposer=speaking(*lines))
    for count in range(2, len(whole.entries)):
        run_dir = tmp_path / f"cut-{count}"
        resumed(whole.entries, count, run_dir)
        before = events(whole.entries[:count], Called)
        ended = events(whole.entries[:count], CallFailed) + events(whole.entries[:count], Answered)
        agent = speaking(*(lines[len(ended) :] or [lines[-1]]))
        ran = running.run(run_dir, settings, proposer=agent)
        assert ran.ending.outcome is JobOutcome.DONE
        calls = events(ran.entries, Called)
        assert len(calls) == len(before) + len(agent.asks)
        by_ask: dict[tuple[int, int], list[int]] = {}
        for one in calls:
            by_ask.setdefault((one.round, one.generation), []).append(one.attempt)
        # Tries count on from those of the job before, and no ask has more than its own.
        assert all(tries == list(range(1, len(tries) + 1)) for tries in by_ask.values())
        assert all(len(tries) <= 3 for tries in by_ask.values())
        open_ones = len(before) - len(ended)
        charged = sum(one.tokens for one in events(ran.entries, CallFailed))
        charged += sum(one.tokens for one in events(ran.entries, Answered))
        tokens = ran.state.usage.counter("tokens")
        assert tokens.spent == charged + open_ones * WORST
        assert (tokens.open, tokens.reserved) == (0, 0.0)
        assert len(events(ran.entries, JobStarted)) == 2


def test_words_of_the_agent_are_in_no_ledger(tmp_path: Path) -> None:
    secret = "quux-4711"
    lines = [answer(*BAD, rationale=secret), f"no json, {secret}", answer(*GOOD, rationale=secret)]
    agent: SpeakingAgent = speaking(*lines)
    running.run(tmp_path, config(expect={"max_iterations": 3}), proposer=agent)
    assert len(agent.asks) == 3
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path
