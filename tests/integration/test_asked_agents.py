"""Campaigns whose agent is a program or a function, from the configuration to the ledger."""

from __future__ import annotations

import json
import tempfile
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


def test_a_model_server_that_crashes_is_started_again_and_the_campaign_goes_on_with_it(
    tmp_path: Path,
) -> None:
    program = Path(__file__).parents[1] / "support" / "fakeserver.py"
    shown = '[{{"x": 0.1, "y": 0.2}}, {{"x": 0.3, "y": 0.2}}]'
    options = ["--socket", "{run_dir}/s", "--candidates", shown, "--crash-once", "{run_dir}/been"]
    agent = {
        "kind": "openai",
        "model": "m",
        "socket": "{run_dir}/s",
        "backoff": "0.01s",
        "serve": {"command": ["{python}", str(program), *options], "restarts": 1},
    }
    config = folders.folder(tmp_path / "campaign", agent=agent)
    with tempfile.TemporaryDirectory() as short:  # a socket's path may not be long
        done = folders.process("run", config, "--run-dir", Path(short) / "run")
        assert done.returncode == 0, done.stdout + done.stderr
        failed = events(Path(short) / "run", "call_failed")
        answered = events(Path(short) / "run", "answered")
    assert [one["round"] for one in failed] == [2], "one call, which was made again"
    assert [one.get("stage", "") for one in answered[:2]] == ["", ""]
    assert "the agent's server: ended by signal 9; it is started again (1 of 1)" in done.stderr


def test_no_call_of_an_own_agent_starts_that_could_pass_the_cap_on_tokens(tmp_path: Path) -> None:
    agent = {"kind": "python", "function": "speaks:answer", "tokens_per_call": 100}
    config = folders.folder(tmp_path / "campaign", agent=agent, rounds=4, budgets={"tokens": 250})
    (config / "speaks.py").write_text(
        "def answer(ask):\n"
        "    at = 0.1 * ask['round']\n"
        "    found = [{'x': at + 0.01 * slot, 'y': at} for slot in ask['slots']]\n"
        "    usage = {'input_tokens': 60, 'output_tokens': 20}\n"
        "    return {'candidates': found} | ({'usage': usage} if ask['round'] == 1 else {})\n"
    )
    run = tmp_path / "run"
    done = folders.process("run", config, "--run-dir", run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one["tokens"] for one in events(run, "called")] == [100, 100]
    # What the second used is not known, so it counts in full; a third could pass the cap.
    assert [one["tokens"] for one in events(run, "answered")] == [80, 100]
    ended = [one["disposition"] for one in events(run, "slot_ended")]
    assert ended == ["accepted"] * 4 + ["fallback"] * 4
