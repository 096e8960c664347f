"""kill -9 at any kind of event: resume loses nothing and pays for nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from campaign.events import TaskEnded
from campaign.ledger import read
from campaign.state import fold
from campaign.status import status

pytestmark = pytest.mark.slow

SUPPORT = Path(__file__).parent.parent / "support"
CAMPAIGN = SUPPORT / "small_campaign"

KINDS = (
    "run_created",
    "job_started",
    "round_started",
    "asked",
    "answered",
    "judged",
    "filled",
    "task_started",
    "task_ended",
    "slot_ended",
    "round_ended",
    "job_ended",
)


def drive(run_dir: Path, kind: str = "never", nth: int = 1, when: str = "after") -> int:
    """One job; its exit status."""
    argv = [sys.executable, str(SUPPORT / "mortal_driver.py"), str(run_dir), str(CAMPAIGN)]
    ran = subprocess.run(
        [*argv, kind, str(nth), when], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode in (0, -9), ran.stderr
    return ran.returncode


def end_state(run_dir: Path) -> dict[str, Any]:
    """What a run came to, without its clocks."""
    found = status(run_dir)
    found["generations"] = found["budgets"]["generations"]["spent"]
    wanted = ("state", "reason", "dispositions", "best", "slots", "rounds", "generations")
    return {key: found[key] for key in wanted}


def assert_nothing_paid_twice(run_dir: Path) -> None:
    entries = read(run_dir)
    done = Counter(
        (entry.event.task, entry.event.candidate)
        for entry in entries
        if isinstance(entry.event, TaskEnded) and entry.event.status == "done"
    )
    assert done
    assert set(done.values()) == {1}
    finished = Counter(
        path.parent.parent.name
        for path in run_dir.glob("tasks/*/try-*/result.json")
        if json.loads(path.read_bytes())["status"] == "done"
    )
    assert set(finished.values()) == {1}
    counters = fold(entries).usage.counters
    assert all(counter.reserved == 0 for counter in counters.values())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run_dir = tmp_path_factory.mktemp("undisturbed") / "run"
    assert drive(run_dir) == 0
    found = end_state(run_dir)
    assert set(found["dispositions"].values()) > {0, 1}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_killed_around_an_event_ends_as_if_nothing_had_happened(
    kind: str, tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    run_dir = tmp_path / "run"
    assert drive(run_dir, kind, 1, "before") == -9
    if kind not in ("run_created", "job_ended"):  # these come once in a run
        assert drive(run_dir, kind, 2 if kind != "job_started" else 1, "after") in (-9, 0)
    assert drive(run_dir) == 0
    assert end_state(run_dir) == undisturbed
    assert_nothing_paid_twice(run_dir)


@pytest.mark.slow
def test_a_run_killed_at_every_fourth_event_gets_there_all_the_same(
    tmp_path: Path, undisturbed: dict[str, Any]
) -> None:
    run_dir = tmp_path / "run"
    kinds = ("task_ended", "slot_ended", "task_started")
    for turn in range(200):
        if drive(run_dir, kinds[turn % 3], 1 + turn % 2, ("before", "after")[turn % 2]) == 0:
            break
    assert end_state(run_dir) == undisturbed
    assert_nothing_paid_twice(run_dir)


def test_a_result_that_arrived_while_the_driver_was_dead_is_adopted(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    assert drive(run_dir, "task_ended", 3, "before") == -9
    assert drive(run_dir) == 0
    adopted = [e.event for e in read(run_dir) if isinstance(e.event, TaskEnded) and e.event.adopted]
    assert adopted
    assert all(one.status == "done" for one in adopted)
    assert_nothing_paid_twice(run_dir)
