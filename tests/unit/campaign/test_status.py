"""Status is data with documented keys."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import campaign.status
import running
from campaign.agents.base import AgentError
from campaign.events import JobEnded, JobStarted
from campaign.ledger import Ledger, NoLedgerError
from campaign.status import KILLED, status
from executors.base import TaskResult, TaskStatus
from speaking import WORST, answer, speaking
from square import GOOD


def documented() -> set[str]:
    rows = re.findall(r"^(``.*?)  ", campaign.status.__doc__ or "", re.MULTILINE)
    return {key for row in rows for key in re.findall(r"``(\w+)``", row)}


def ran(directory: Path, **changes: Any) -> dict[str, Any]:
    running.run(directory, running.config(rounds=1, **changes), proposer=running.agent(GOOD))
    return status(directory)


def test_what_an_agent_that_is_called_used_is_told(tmp_path: Path) -> None:
    asked = {"kind": "python", "function": "tests:any", "suggest": False, "backoff": "0.001s"}
    lost = AgentError("the connection was lost")
    points = [{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}, {"x": 0.3, "y": 0.6}]
    settings = running.config(rounds=1, agent=asked)
    running.run(tmp_path, settings, proposer=speaking(lost, answer(*points)))
    found = status(tmp_path)
    assert found["agent"] == {
        "answers": 1, "calls": 2, "failed": 1, "input_tokens": 5, "output_tokens": 5,
    }  # fmt: skip
    assert found["budgets"]["tokens"]["spent"] == WORST + WORST // 10


def test_the_keys_are_those_documented_and_json_can_hold_them(tmp_path: Path) -> None:
    found = ran(tmp_path, budgets={"node_hours": 1})
    assert set(found) == documented()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["state"] == "done"
    assert found["reason"] == "all 1 rounds are done"
    assert (found["rounds"], found["rounds_max"]) == (1, 1)
    assert found["dispositions"]["accepted"] == 3
    assert found["agent"] is None
    caps = {"node_hours", "verifier_node_hours", "generations", "tokens", "judge_calls"}
    assert set(found["budgets"]) == caps
    for cap in found["budgets"].values():
        assert set(cap) == {"limit", "per", "reserved", "spent"}
    assert found["budgets"]["node_hours"] == {
        "limit": 1,
        "per": "campaign",
        "reserved": 0.0,
        "spent": pytest.approx(6 / 3600),
    }
    assert found["budgets"]["generations"] | {"limit": 0} == {
        "limit": 0,
        "per": "campaign",
        "reserved": 0.0,
        "spent": 1.0,
    }
    assert found["tasks"] == {"running": 0, "done": 6, "failed": 0, "seconds": 6.0}


def test_the_best_is_named_with_its_place(tmp_path: Path) -> None:
    best = ran(tmp_path)["best"]
    assert set(best) == {"candidate", "value", "round", "slot", "incomplete"}
    assert (best["candidate"], best["round"], best["slot"]) == (GOOD[2], 1, 2)
    assert best["value"] == pytest.approx(0.0)


def test_every_slot_is_there_once(tmp_path: Path) -> None:
    slots = ran(tmp_path)["slots"]
    assert [(one["round"], one["slot"]) for one in slots] == [(1, 0), (1, 1), (1, 2)]
    for one in slots:
        assert set(one) == {
            "round",
            "slot",
            "disposition",
            "generation",
            "candidate",
            "value",
            "incomplete",
            "reason",
        }
        assert one["candidate"] in GOOD


def crashes(_: Mapping[str, Any]) -> TaskResult:
    return TaskResult(TaskStatus.ERROR, reason="ZeroDivisionError", seconds=1.0)


def test_without_any_result_there_is_no_best_and_the_run_failed(tmp_path: Path) -> None:
    functions = running.FUNCTIONS | {"tests:bowl": crashes, "tests:rejects": crashes}
    running.run(
        tmp_path, running.config(rounds=1), proposer=running.agent(GOOD), functions=functions
    )
    found = status(tmp_path)
    assert (found["state"], found["best"]) == ("failed", None)
    assert found["tasks"]["failed"] == 6
    assert [one["incomplete"] for one in found["slots"]] == [["stable"]] * 3
    json.dumps(found, allow_nan=False)


def test_a_run_is_running_while_its_driver_lives_and_stopped_when_it_was_killed(
    tmp_path: Path,
) -> None:
    ran(tmp_path)
    with Ledger(tmp_path) as ledger:
        ledger.append(JobStarted(job=2, host="h", pid=1, python="", numpy=""))
        assert status(tmp_path)["state"] == "running"
    assert (status(tmp_path)["state"], status(tmp_path)["reason"]) == ("stopped", KILLED)
    with Ledger(tmp_path) as ledger:
        ledger.append(JobEnded(job=2, outcome="stopped", reason="SIGTERM received"))
    found = status(tmp_path)
    assert (found["state"], found["reason"]) == ("stopped", "SIGTERM received")


def test_a_directory_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoLedgerError, match="holds no run"):
        status(tmp_path)
