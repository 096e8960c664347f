"""The node-hours each check saved, recomputed here from the lines of the ledger alone."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.ledger import NAME
from campaign.limits import worst_case
from campaign.report.figures import as_data, figures
from longrun import write
from running import agent, run
from square import GOOD

UNSTABLE = {"x": 0.9, "y": 0.1}
OUTSIDE = {"x": 0.1, "y": 1.5}
AGENT = {"kind": "replay", "file": "none.yaml"}  # stands for the scripted one


def checks(run_dir: Path) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in as_data(figures(run_dir))["checks"]}


def lines(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["event"] for line in (run_dir / NAME).read_text().splitlines()]


def content(point: dict[str, float]) -> str:
    text = json.dumps(point, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spent(run_dir: Path) -> dict[str, dict[str, float]]:
    """Node-hours by task and candidate."""
    found: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for event in lines(run_dir):
        if event["kind"] == "task_ended":
            found[event["task"]][event["candidate"]] += event["spent"]
    return found


def test_saved_node_hours_agree_with_a_reckoning_by_hand(tmp_path: Path) -> None:
    write(tmp_path, 500)
    found, took = checks(tmp_path), spent(tmp_path)
    later = {"level": ("coarse", "energy", "simulation"), "coarse": ("energy", "simulation")}
    rejected: dict[str, list[str]] = {"level": [], "coarse": []}
    points: list[dict[str, float]] = []
    for event in lines(tmp_path):
        if event["kind"] == "answered":
            points = event["candidates"]
        elif event["kind"] == "judged":
            for verdict in event["verdicts"]:
                if not verdict["expect"]["overall_pass"]:
                    rejected["level"].append(content(points[verdict["slot"]]))
        elif event.get("task") == "coarse" and event.get("value", {}).get("verdict") == "reject":
            rejected["coarse"].append(event["candidate"])
    assert len(rejected["level"]) > 10
    assert len(rejected["coarse"]) > 10
    for check, tasks in later.items():
        there = {one for task in tasks for one in took[task]}
        each = sum(took[task].get(one, 0.0) for task in tasks for one in there) / len(there)
        would = each * len(rejected[check])
        cost = sum(took["coarse"].values()) if check == "coarse" else 0.0
        said = found[check]
        assert said["rejected"] == said["credited"] == len(rejected[check])
        assert said["n"] == len(there)
        assert said["each"] == pytest.approx(each, abs=1e-9)
        assert said["would_have_cost"] == pytest.approx(would, abs=1e-9)
        assert said["cost"] == pytest.approx(cost, abs=1e-9)
        assert said["saved"] == pytest.approx(would - cost, abs=1e-9)
    whole = as_data(figures(tmp_path))["saved"]
    assert whole["saved"] == pytest.approx(sum(one["saved"] for one in found.values()), abs=1e-9)


def test_a_verifier_that_rejects_nothing_has_saved_less_than_nothing(tmp_path: Path) -> None:
    write(tmp_path, 100)
    energy = checks(tmp_path)["energy"]
    assert (energy["rejected"], energy["would_have_cost"]) == (0, 0.0)
    assert energy["saved"] == pytest.approx(-sum(spent(tmp_path)["energy"].values()), abs=1e-9)


def ran(directory: Path, *answers: object, **changes: Any) -> Path:
    config = running.config(**{"rounds": 1, "agent": AGENT} | changes)
    return run(directory, config, proposer=agent(*answers)).run_dir


def test_the_same_candidate_rejected_twice_is_credited_once(tmp_path: Path) -> None:
    expect = {"max_iterations": 2, "repair": "retry"}
    policy = {"semantic_rejection": "tombstone"}
    answers = [*GOOD[:2], UNSTABLE], [UNSTABLE]
    run_dir = ran(tmp_path / "r", *answers, expect=expect, policy=policy)
    stable = checks(run_dir)["stable"]
    assert (stable["rejected"], stable["credited"]) == (2, 1)


def test_what_was_simulated_in_spite_of_its_rejection_saved_nothing(tmp_path: Path) -> None:
    policy = {"semantic_rejection": "return_last"}
    expect = {"max_iterations": 1}
    run_dir = ran(tmp_path / "r", [*GOOD[:2], UNSTABLE], policy=policy, expect=expect)
    stable = checks(run_dir)["stable"]
    assert (stable["rejected"], stable["credited"], stable["would_have_cost"]) == (1, 0, 0.0)


def test_where_none_got_there_the_worst_case_stands_in(tmp_path: Path) -> None:
    policy = {"semantic_rejection": "tombstone"}
    unstable = [{"x": 0.9, "y": y} for y in (0.1, 0.2, 0.3)]
    expect = {"max_iterations": 1}
    run_dir = ran(tmp_path / "r", unstable, policy=policy, expect=expect)
    stable = checks(run_dir)["stable"]
    worst = worst_case(running.config().simulation)
    assert (stable["n"], stable["credited"]) == (0, 3)
    assert stable["each"] == worst
    assert stable["would_have_cost"] == pytest.approx(3 * worst, abs=1e-12)


def test_the_first_layer_to_reject_has_the_credit(tmp_path: Path) -> None:
    both = {"x": 0.9, "y": 1.5}  # out of bounds, so that no verifier sees it
    expect = {"max_iterations": 2, "repair": "retry"}
    found = checks(ran(tmp_path / "r", [*GOOD[:2], both], [GOOD[2]], expect=expect))
    assert found["bounds"]["credited"] == 1
    assert found["stable"]["rejected"] == 0


def test_an_answer_without_candidates_counts_its_slots_and_saves_nothing(tmp_path: Path) -> None:
    expect = {"max_iterations": 2, "repair": "retry"}
    found = figures(ran(tmp_path / "r", [*GOOD, OUTSIDE], GOOD, expect=expect))
    shape = found.gate.stages[0]
    assert (shape.name, shape.entered, shape.stopped.rejected) == ("shape", 6, 3)
    assert sum(one.would_have_cost for one in found.gate.savings if one.layer == "shape") == 0.0


def test_the_funnel_loses_at_each_step_what_it_says(tmp_path: Path) -> None:
    write(tmp_path, 500)
    stages = figures(tmp_path).gate.stages
    names = ["shape", "schema", "domain", "coarse", "energy", "simulation"]
    assert [one.name for one in stages] == names
    for one, after in itertools.pairwise(stages):
        assert after.entered == one.entered - one.stopped.rejected - one.stopped.not_checked
    assert stages[-1].entered == len(spent(tmp_path)["simulation"])


def test_a_rule_says_whether_its_rejects_were_repaired_or_filled(tmp_path: Path) -> None:
    expect = {"max_iterations": 2, "repair": "retry"}
    answers = [*GOOD[:1], OUTSIDE, UNSTABLE], [GOOD[1], UNSTABLE]
    found = checks(ran(tmp_path / "r", *answers, expect=expect))
    assert (found["bounds"]["repaired"], found["bounds"]["filled"]) == (1, 0)
    assert found["stable"]["repaired"] == 0
    assert found["stable"]["filled"] == found["stable"]["rejected"] > 0


def test_an_answer_without_candidates_counts_the_slots_it_left(tmp_path: Path) -> None:
    expect = {"max_iterations": 2, "repair": "retry"}
    found = checks(ran(tmp_path / "r", [*GOOD, OUTSIDE], GOOD, expect=expect))
    assert (found["count"]["rejected"], found["count"]["repaired"]) == (3, 3)
