"""What verifiers answer, as findings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.contract import simulation_contract, verifier_contract
from campaign.events import TaskEnded
from campaign.stop import StoppedError
from campaign.verify import Verification, Verifiers, finding
from checks.finding import Status
from executors.base import TaskResult, TaskStatus
from tasking import POINT, driver

FAILED = TaskResult(TaskStatus.WALLTIME, reason="killed after 10 s", seconds=10.0)
REJECTED = {"verdict": "reject", "reason": "drifts", "metrics": {"drift": 0.2}}
PASSED = {"verdict": "pass", "metrics": {"drift": 0.0}}


def verify(
    tmp_path: Path, *answers: Any, only: tuple[str, ...] = (), **second: Any
) -> Verification:
    """Two verifiers, ``first`` with the keys of ``second``, that give ``answers`` in turn."""
    left = list(answers)
    settings = running.config(
        verifiers=[running.verifier("first", **second), running.verifier("second")]
    )

    async def main() -> Verification:
        functions = {"tests:passes": lambda _: left.pop(0)}
        async with driver(tmp_path, settings, functions) as job:
            verifiers = Verifiers(settings, job.tasks, job.stop)
            found = await verifiers.verify(POINT, 1, 0, only=only)
            assert left == []
            return found

    return asyncio.run(main())


def statuses(found: Verification) -> list[tuple[str, str, str]]:
    return [(one.check, one.status.value, one.reason) for one in found.findings]


def test_metrics_are_kept_with_pass_and_reject(tmp_path: Path) -> None:
    found = verify(tmp_path, PASSED, REJECTED)
    assert statuses(found) == [("first", "pass", ""), ("second", "reject", "drifts")]
    assert [one.metrics for one in found.findings] == [{"drift": 0.0}, {"drift": 0.2}]
    assert found.rejected
    assert not found.passed


def test_a_rejection_skips_the_rest(tmp_path: Path) -> None:
    found = verify(tmp_path, REJECTED)
    assert statuses(found)[1] == ("second", "skipped", "not run: first rejected")


def test_a_verifier_that_could_not_tell_lets_pass_by_default(tmp_path: Path) -> None:
    found = verify(tmp_path, FAILED, PASSED)
    assert statuses(found)[0] == ("first", "error", "walltime: killed after 10 s")
    assert found.passed
    assert found.unanswered == ("first",)


def test_under_reject_a_verifier_that_could_not_tell_blocks_and_stops(tmp_path: Path) -> None:
    found = verify(tmp_path, FAILED, on_failure="reject")
    assert statuses(found)[1] == ("second", "skipped", "not run: first could not tell")
    assert (found.rejected, found.passed, found.blocked) == (False, False, ("first",))


def test_under_fail_run_the_run_stops_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(StoppedError, match="verifier first: walltime: killed after 10 s"):
        verify(tmp_path, FAILED, on_failure="fail_run")


def test_only_those_named_are_run_again(tmp_path: Path) -> None:
    found = verify(tmp_path, PASSED, only=("second",))
    assert statuses(found) == [("second", "pass", "")]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "answered None; a verifier answers"),
        (True, "answered True"),
        ({"verdict": "ok"}, "answered {'verdict': 'ok'}"),
        ({"verdict": ["pass"]}, "answered"),
        ({"verdict": "reject"}, "rejected without a reason"),
        ({"verdict": "reject", "reason": " "}, "rejected without a reason"),
        ({"verdict": "reject", "reason": 5}, "rejected without a reason"),
        ({"verdict": "pass", "metrics": [1]}, "metrics: [1]; a mapping is wanted"),
        (PASSED, ""),
        (REJECTED, ""),
    ],
)
def test_what_is_no_verdict_is_named(value: object, said: str) -> None:
    found = verifier_contract(value)
    assert found.startswith(said) if said else not found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([1.0], "answered [1.0]; a mapping with 'loss' in it is wanted"),
        ("1", "answered '1'; a mapping with 'loss' in it is wanted"),
        ({}, "answered nothing; the objective 'loss' is not among it"),
        ({"gain": 1}, "answered 'gain'; the objective 'loss'"),
        ({"loss": float("nan")}, "loss: nan; a finite number is wanted"),
        ({"loss": True}, "loss: True; a finite number"),
        ({"loss": "1"}, "loss: '1'; a finite number"),
        ({"loss": 10**400}, "loss: "),
        ({"loss": 1}, ""),
    ],
)
def test_what_is_no_observation_is_named(value: object, said: str) -> None:
    found = simulation_contract("loss")(value)
    assert found.startswith(said) if said else not found


def test_an_execution_failure_without_words_is_named_by_its_status() -> None:
    ended = TaskEnded(task="v", candidate="c", attempt=1, status="lost", spent=0.0, seconds=0.0)
    assert (finding(ended).status, finding(ended).reason) == (Status.ERROR, "lost")
