"""What preflight says of a cap that counts nodes, not tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from campaign.configfile import load_config
from campaign.dryrun import dry_run
from campaign.preflight import Inspection, inspect
from folders import folder

PILOTS = {"kind": "slurm", "nodes": 2, "max_pilots": 4, "pilot": {"walltime": "90m"}}
ALLOCATION = {"kind": "allocation"}
JOB = {"nodes": 4, "walltime": "30m", "margin": "1m"}


def look(place: Path, *, executors: dict[str, Any], cap: Any, **changes: Any) -> Inspection:
    budgets = {"node_hours": cap} | changes.pop("budgets", {})
    return inspect(load_config(folder(place, executors=executors, budgets=budgets, **changes)))


def counting(limit: float) -> dict[str, Any]:
    return {"limit": limit, "count": "allocation"}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    (
        {"executors": {"default": {"kind": "threads"}, "b": {"kind": "local"}}, "cap": counting(9)},
        "budgets.node_hours.count",
        "'allocation'; executors of kind local and threads have no nodes that Slurm counts: give "
        "count: tasks, or executors of kind slurm, allocation or mpi",
    ),
    (
        {
            "executors": {"default": PILOTS},
            "cap": 9,
            "budgets": {"verifier_node_hours": counting(9)},
        },
        "budgets.verifier_node_hours.count",
        "'allocation'; nodes are had for verifiers and simulations alike: give count: tasks, or "
        "put it on node_hours",
    ),
    (
        {"executors": {"default": PILOTS}, "cap": counting(2.5)},
        "budgets.node_hours",
        "2.5 node-hours; a pilot job of executors.default reserves 3 node-hours (2 nodes x 1h30m): "
        "raise the cap or lower the walltime",
    ),
    (
        {"executors": {"default": ALLOCATION}, "cap": counting(1), "job": JOB},
        "budgets.node_hours",
        "1 node-hours; a job of the driver reserves 2 node-hours (4 nodes x 30m): raise the cap or "
        "lower the walltime",
    ),
]


@pytest.mark.parametrize(("changes", "path", "message"), REFUSED)
def test_a_cap_on_allocation_that_means_nothing_or_lets_nothing_start_is_refused(
    tmp_path: Path, changes: dict[str, Any], path: str, message: str
) -> None:
    (problem,) = look(tmp_path, **changes).problems
    assert (problem.path, problem.message) == (path, message)


def test_what_each_job_reserves_and_how_many_fit_at_once_is_told(tmp_path: Path) -> None:
    found = look(tmp_path, executors={"default": PILOTS}, cap=counting(7))
    assert found.problems == ()
    assert found.notes == (
        "budgets.node_hours counts the nodes Slurm gives, with or without tasks on them",
        "a pilot job of executors.default reserves 3 node-hours (2 nodes x 1h30m) before it "
        "starts; at most 2 of 4 at once",
    )
    bill = {cost.what: (cost.least, cost.most, cost.cap) for cost in found.costs}
    assert bill["node-hours in jobs"] == (3.0, 12.0, 7.0)
    assert bill["node-hours"][2] is None


def test_tasks_are_counted_unless_a_cap_says_otherwise(tmp_path: Path) -> None:
    found = look(tmp_path, executors={"default": PILOTS}, cap=7)
    bill = {cost.what: cost.cap for cost in found.costs}
    assert (bill["node-hours"], bill["node-hours in jobs"]) == (7.0, None)


def test_a_job_is_reserved_in_whole_minutes_as_slurm_gives_it(tmp_path: Path) -> None:
    odd = PILOTS | {"max_pilots": 1, "pilot": {"walltime": "90s"}}
    found = look(tmp_path, executors={"default": odd}, cap=counting(7))
    assert found.notes[1].endswith("(2 nodes x 2m) before it starts")


def test_a_dry_run_has_no_nodes_to_count(tmp_path: Path) -> None:
    place = folder(tmp_path, executors={"default": PILOTS}, budgets={"node_hours": counting(7)})
    config = load_config(place).config
    assert dry_run(config, cores=2).config.budgets == config.budgets
