"""What a report says of a run, as figures."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import campaign.report.figures
import campaign.report.why
import running
from campaign.ledger import read
from campaign.report.chronicle import chronicle, entries
from campaign.report.figures import as_data, figures
from campaign.report.histories import BEST, SHOWN
from campaign.report.nodes import nodes
from campaign.report.why import why
from campaign.state import fold
from folders import simgate
from longrun import BATCH, write
from running import agent, run
from square import GOOD

AGENT = {"kind": "replay", "file": "none.yaml"}


def keys(data: object) -> set[str]:
    if isinstance(data, dict):
        return set(data) | {key for value in data.values() for key in keys(value)}
    return {key for one in data for key in keys(one)} if isinstance(data, list) else set()


def documented(module: Any) -> set[str]:
    return set(re.findall(r"``(\w+)``", inspect.getdoc(module) or ""))


FREE = {
    *("x", "y", "loss", "margin", "verdict", "reason", "metrics"),  # of the campaign
    *("accepted", "repaired", "fallback", "returned", "tombstone"),
    *("node_hours", "verifier_node_hours", "generations", "tokens", "judge_calls"),
    *("direction", "target", "tolerance", "lost"),
}


def test_every_key_is_documented(tmp_path: Path) -> None:
    write(tmp_path, 200)
    used = keys(as_data(figures(tmp_path))) - FREE
    assert used <= documented(campaign.report.figures), used - documented(campaign.report.figures)
    used = keys(why(tmp_path, "r1 s0")) - FREE
    assert used <= documented(campaign.report.why), used - documented(campaign.report.why)


def test_sharing_equal_parts_changes_nothing_in_the_state(tmp_path: Path) -> None:
    write(tmp_path, 300)
    assert chronicle(entries(tmp_path))[0] == fold(read(tmp_path))


def test_the_surrogate_stands_beside_the_best_observation(tmp_path: Path) -> None:
    ran = run(tmp_path / "r", running.config(rounds=5))
    found = figures(ran.run_dir).result
    assert found.best is not None
    assert found.optimum is not None
    assert found.at_best is not None
    assert found.optimum.low <= found.optimum.mean <= found.optimum.high
    assert found.optimum.mean <= found.at_best.mean
    assert found.at_best.point == found.best.slot.parameters
    assert abs(float(found.optimum.point["x"]) - 0.3) < 0.15
    assert abs(float(found.optimum.point["y"]) - 0.6) < 0.15


def test_a_point_that_verifiers_reject_is_no_optimum(tmp_path: Path) -> None:
    """The bowl's least lies where the verifier rejects everything."""
    changes: dict[str, Any] = {
        "rounds": 6,
        "simulation": {"kind": "python", "walltime": "10s", "function": "tests:far"},
    }
    functions = running.FUNCTIONS | {"tests:far": lambda one: {"loss": (one["x"] - 0.9) ** 2}}
    ran = run(tmp_path / "r", running.config(**changes), functions=functions)
    optimum = figures(ran.run_dir).result.optimum
    assert optimum is not None
    assert float(optimum.point["x"]) < 0.6


def test_too_few_values_leave_the_surrogate_unsure(tmp_path: Path) -> None:
    changes = {"rounds": 1, "agent": AGENT, "verifiers": []}
    ran = run(tmp_path / "r", running.config(**changes), proposer=agent(GOOD))
    surrogate = as_data(figures(ran.run_dir))["surrogate"]
    assert (surrogate["optimum"], surrogate["at_best"]) == (None, None)
    assert surrogate["unsure"] == "3 values of ended rounds; the surrogate needs 4"


def test_convergence_counts_the_node_hours_of_all_tasks(tmp_path: Path) -> None:
    write(tmp_path, 200)
    found = figures(tmp_path)
    spent = [one.node_hours for one in found.steps]
    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(as_data(found)["budgets"]["node_hours"]["spent"], rel=0.05)
    bettered = [one.value for one in found.steps if one.best]
    assert bettered == sorted(bettered, reverse=True)
    assert found.result.best is not None
    assert bettered[-1] == found.result.best.value


def test_the_timeline_has_the_node_hours_of_the_bill(tmp_path: Path) -> None:
    write(tmp_path, 500)
    state, told = chronicle(entries(tmp_path))
    found = nodes(state, told)
    line, bill = found.timeline, found.bill
    assert bill is not None
    width = float(line.edges[1])
    assert float(line.busy.sum()) * width == pytest.approx(bill["tasks"], rel=1e-6)
    assert float(line.lost.sum()) * width == pytest.approx(bill["lost"], rel=1e-6)
    assert float(line.had.sum()) * width == pytest.approx(bill["allocated"], rel=1e-6)
    assert sum(one.busy for one in found.hosts) == pytest.approx(bill["tasks"], rel=1e-6)


def test_slow_and_failing_tries_are_shown_with_the_end_of_their_logs(tmp_path: Path) -> None:
    write(tmp_path, 2 * BATCH)
    first = figures(tmp_path).work.failing[0]
    first.directory.mkdir(parents=True)
    (first.directory / "stdout").write_text("fine\n")
    (first.directory / "stderr").write_text("".join(f"line {n}\n" for n in range(5000)))
    again = figures(tmp_path).work.failing[0]
    assert (again.failed, again.ended.status, again.log) == (1, "lost", "stderr")
    assert again.tail.splitlines()[-1] == "line 4999"
    assert len(again.tail.splitlines()) == 20


@pytest.mark.slow
def test_of_many_candidates_the_best_and_the_last_are_shown(tmp_path: Path) -> None:
    write(tmp_path, SHOWN + 500)
    found = figures(tmp_path)
    assert found.candidates == SHOWN + 500
    assert SHOWN - BEST < len(found.histories) <= SHOWN
    assert found.result.best is not None
    shown = {one.seen.content for one in found.histories}
    assert found.result.best.slot.candidate in shown
    assert found.histories[-1].seen.round == (SHOWN + 500) // BATCH


def test_a_run_without_anything_yet_has_a_report(tmp_path: Path) -> None:
    changes = {"rounds": 1, "agent": AGENT}
    ran = run(tmp_path / "r", running.config(**changes), proposer=agent([], []))
    cut = (ran.run_dir / "ledger.jsonl").read_text().splitlines()[:2]
    (ran.run_dir / "ledger.jsonl").write_text("\n".join(cut) + "\n")
    for words in ((), ("--json",), ("--csv",), ("--html", tmp_path / "page.html")):
        found = simgate("report", ran.run_dir, *words)
        assert found.exit_code == 0, found.output
    assert json.loads(simgate("report", ran.run_dir, "--json").stdout)["best"] is None


def test_the_burn_down_of_a_long_run_is_thinner_and_ends_where_the_budget_does(
    tmp_path: Path,
) -> None:
    write(tmp_path, 3000)
    state, told = chronicle(entries(tmp_path))
    curve = told.spent["node_hours"]
    assert len(curve.values) < 0.6 * len(told.tries)
    assert list(curve.values) == sorted(curve.values)
    assert curve.values[-1] == state.usage.counter("node_hours").spent
