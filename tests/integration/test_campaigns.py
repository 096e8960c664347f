"""The shipped campaigns, run as a user runs them, to their published or recorded ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folders import process

CONFIGS = Path(__file__).parents[2] / "configs"
NIST_DENSITY, NIST_PRESSURE = 0.820, 0.55355  # T* = 0.85, cut at 3 sigma with tail corrections


def run(config: Path, run_dir: Path, *words: str, timeout: float = 300) -> dict[str, Any]:
    """Run a campaign to its end; its status."""
    ran = process("run", config, "--run-dir", run_dir, *words, timeout=timeout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = process("status", run_dir, "--json", timeout=60)
    found: dict[str, Any] = json.loads(told.stdout)
    assert found["state"] == "done"
    return found


def candidates(run_dir: Path) -> list[str]:
    """Every proposal of a ledger, byte for byte, in order."""
    lines = (run_dir / "ledger.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return [
        json.dumps(event["candidates"])
        for event in events
        if event["kind"] in ("answered", "filled")
    ]


def test_the_quickstart_shows_everything_the_gate_does(tmp_path: Path) -> None:
    found = run(CONFIGS / "quickstart" / "campaign.yaml", tmp_path / "run")
    counts = found["dispositions"]
    assert counts["accepted"] >= 1
    assert counts["fallback"] >= 1
    assert counts["repaired"] >= 1
    assert sum(counts.values()) == found["rounds"] * 4 == len(found["slots"])
    assert found["best"]["value"] < 42
    ledger = (tmp_path / "run" / "ledger.jsonl").read_text()
    events = [json.loads(line)["event"] for line in ledger.splitlines()]
    rejecting = {
        one["check"]
        for event in events
        if event["kind"] == "judged"
        for verdict in event["verdicts"]
        for one in verdict["findings"]
        if one["status"] == "reject"
    }
    assert "bounds" in rejecting
    assert any(
        event["kind"] == "task_ended" and (event.get("value") or {}).get("verdict") == "reject"
        for event in events
    )


def test_two_surrogate_only_runs_propose_the_same_bytes(tmp_path: Path) -> None:
    config = CONFIGS / "quickstart"
    run(config, tmp_path / "a", "--surrogate-only")
    run(config, tmp_path / "b", "--surrogate-only", "--set", "executors.default.workers=1")
    assert candidates(tmp_path / "a") == candidates(tmp_path / "b")


@pytest.mark.lammps
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_lennard_jones_campaign_finds_the_published_density(tmp_path: Path, seed: int) -> None:
    found = run(CONFIGS / "lennard-jones", tmp_path / "run", "--set", f"seed={seed}", timeout=900)
    best = found["best"]
    assert abs(best["candidate"]["density"] - NIST_DENSITY) <= 0.005
    assert abs(best["value"] - NIST_PRESSURE) <= 0.03
    hours = found["budgets"]["node_hours"]
    assert 0 < hours["spent"] <= hours["limit"]
    assert hours["reserved"] == 0
    places = [(slot["round"], slot["slot"]) for slot in found["slots"]]
    assert len(places) == len(set(places)) == found["rounds"] * 4
