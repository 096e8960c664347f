"""Campaigns whose agent is a program or a function, from the configuration to the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import folders

SECRET = "a word that only the agent wrote"
PROPOSE = f"""
import json, sys

def answer(ask):
    # The first answer of a round has one candidate out of bounds; a repair puts it right.
    wrong = ask["correction"] is None and ask["generation"] == 1
    repaired = ask["correction"] is not None and "bounds" in ask["correction"]["text"]
    assert wrong or repaired, ask
    step = 0.1 * ask["round"]
    found = [{{"x": step + 0.01 * slot, "y": step}} for slot in ask["slots"]]
    if wrong:
        found[-1]["x"] = 3.0
    return {{"rationale": {SECRET!r}, "candidates": found}}

if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
"""
COMMAND: dict[str, Any] = {"kind": "command", "command": ["{python}", "propose.py"]}
KINDS: dict[str, dict[str, Any]] = {
    "call": COMMAND,
    "lines": COMMAND | {"mode": "lines"},
    "python": {"kind": "python", "function": "propose:answer"},
}


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    lines = (run / "ledger.jsonl").read_text().splitlines()
    found = [json.loads(line)["event"] for line in lines if line.strip()]
    return [one for one in found if one["kind"] == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_campaign_runs_with_an_agent_that_is_told_what_was_wrong(
    tmp_path: Path, kind: str
) -> None:
    config = folders.folder(tmp_path / "campaign", agent=KINDS[kind])
    (config / "propose.py").write_text(PROPOSE)
    run = tmp_path / "run"
    done = folders.process("run", config, "--run-dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    ended = events(run, "slot_ended")
    assert [one["disposition"] for one in ended] == ["accepted", "repaired"] * 2
    assert [one.get("repair") for one in events(run, "asked")] == [None, "auto"] * 2
    assert [one.get("stage", "") for one in events(run, "answered")] == [""] * 4
    assert SECRET not in done.stdout + done.stderr + (run / "ledger.jsonl").read_text()


def test_an_agent_that_never_answers_leaves_the_batch_to_the_surrogate(tmp_path: Path) -> None:
    agent = COMMAND | {"command": ["false"], "retries": 1, "backoff": "0.01s"}
    run = tmp_path / "run"
    done = folders.process("run", folders.folder(tmp_path / "c", agent=agent), "--run-dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {one["disposition"] for one in events(run, "slot_ended")} == {"fallback"}
    assert {one["reason"] for one in events(run, "call_failed")} == {"exit code 1"}
