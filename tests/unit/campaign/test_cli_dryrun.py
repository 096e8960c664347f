"""`simgate run --dry-run`: the gate in earnest, nothing submitted, and never a real run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from campaign.configfile import load_config
from campaign.drive import creation
from campaign.events import JobStarted
from campaign.ledger import Ledger, read
from campaign.state import fold
from campaign.status import status
from folders import SLOW, folder, interrupted, plain, process, simgate

STANDS_IN = {"kind": "python", "function": "model:bowl", "walltime": "10s"}
COMMAND = {
    "kind": "command",
    "command": ["solver-of-the-cluster", "{x}"],
    "walltime": "1h",
    "output": {"json": "out.json"},
}


def simulation(**changes: Any) -> dict[str, Any]:
    return {**plain()["simulation"], **changes}


def tried(run_dir: Path) -> set[str]:
    """The tasks that ran."""
    return {task for task, _ in fold(read(run_dir)).tasks}


def test_a_dry_run_gates_and_verifies_and_simulates_nothing(tmp_path: Path) -> None:
    ran = simgate("run", folder(tmp_path / "c"), "--run-dir", tmp_path / "r", "--dry-run")
    assert ran.exit_code == 0, ran.output
    said = ran.stdout.splitlines()
    assert said[:3] == [
        "bowl: dry run on this machine, nothing is submitted",
        "  rounds: 1 of 2; --set rounds=N runs as many as you like",
        "  simulation: none runs; simulation.dry_run may name a task that stands in for it",
    ]
    assert "bowl, dry run: done (all 1 rounds are done; not simulated: dry run)" in said
    assert "Result: not simulated: dry run" in said
    found = status(tmp_path / "r")
    assert (found["mode"], found["state"], found["rounds"]) == ("dry_run", "done", 1)
    assert (found["best"], found["dispositions"]["tombstone"]) == (None, 0)
    assert tried(tmp_path / "r") == {"stable"}


def test_it_ends_with_what_the_real_run_would_cost(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=3, budgets={"generations": 2})
    ran = simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run")
    bill = ran.stdout.partition("\nA real run would cost\n")[2]
    inspected = simgate("inspect", campaign).stdout
    assert bill == inspected.partition("\n")[2]
    assert bill.splitlines()[1].split() == ["generations", "3", "6", "2"]
    assert "note: generations: at most 6, the cap is 2" in bill


@pytest.mark.slow
def test_the_batch_script_is_that_of_submit(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", job={"walltime": "1h", "partition": "batch"})
    ran = process("run", campaign, "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    script = ran.stdout.partition("\nsimgate submit would give this to Slurm\n\n")[2]
    (made,) = (tmp_path / "runs").iterdir()
    assert made.name.startswith("bowl-dry-")
    would = next(line for line in script.splitlines() if "resume" in line).split()[-1]
    assert not Path(would).exists()
    printed = simgate("submit", campaign, "--print", "--run-dir", would)
    assert (printed.exit_code, printed.stdout) == (0, script)
    assert "#SBATCH --partition=batch" in script


def test_a_job_too_short_for_the_simulation_is_told(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", job={"walltime": "30m"}, simulation=simulation(walltime="1h"))
    ran = simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run")
    assert ran.exit_code == 0, ran.output
    assert "  simgate submit would refuse this here: line " in ran.stdout
    assert "simulation.walltime: 1h in jobs of 30m" in ran.stdout


def test_as_many_rounds_as_are_asked_for(tmp_path: Path) -> None:
    words = ("--dry-run", "--surrogate-only", "--set", "rounds=3")
    ran = simgate("run", folder(tmp_path / "c"), "--run-dir", tmp_path / "r", *words)
    assert ran.exit_code == 0, ran.output
    assert "rounds:" not in ran.stdout
    assert status(tmp_path / "r")["rounds"] == 3


def test_a_stand_in_is_simulated_in_the_simulations_place(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", simulation=COMMAND | {"dry_run": STANDS_IN})
    ran = simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run")
    assert ran.exit_code == 0, ran.output
    assert "  simulation: simulation.dry_run stands in for it" in ran.stdout
    said = " ".join(ran.stdout.split())
    assert "Result: loss = " in said
    assert "; by simulation.dry_run, not the simulation" in said
    assert "simgate run would refuse this here: line " in ran.stdout
    assert "'solver-of-the-cluster': not on PATH" in ran.stdout
    assert tried(tmp_path / "r") == {"stable", "simulation"}


def test_a_stand_in_that_always_fails_fails_the_dry_run(tmp_path: Path) -> None:
    broken = STANDS_IN | {"function": "model:stable"}
    campaign = folder(tmp_path / "c", simulation=simulation(dry_run=broken))
    ran = simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run")
    assert ran.exit_code == 1, ran.output
    assert "no simulation succeeded" in ran.stdout
    assert "A real run would cost" in ran.stdout


def test_a_real_run_needs_no_stand_in(tmp_path: Path) -> None:
    gone = STANDS_IN | {"function": "gone:bowl"}
    campaign = folder(tmp_path / "c", rounds=1, simulation=simulation(dry_run=gone))
    assert simgate("run", campaign, "--run-dir", tmp_path / "r").exit_code == 0
    refused = simgate("run", campaign, "--run-dir", tmp_path / "d", "--dry-run")
    assert refused.exit_code == 2
    assert "simulation.dry_run.function: 'gone:bowl'" in refused.stderr
    assert not (tmp_path / "d").exists()


def test_a_verifier_that_is_not_here_is_refused(tmp_path: Path) -> None:
    check = COMMAND | {"name": "check", "output": {"exit_codes": {0: "pass"}}}
    campaign = folder(tmp_path / "c", verifiers=[check, check | {"name": "b", "command": ["srun"]}])
    refused = simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run")
    assert refused.exit_code == 2
    assert "verifiers[0].command: 'solver-of-the-cluster': not on PATH" in refused.stderr
    assert "verifiers[1].command[0]: 'srun' asks Slurm for nodes" in refused.stderr
    assert not (tmp_path / "r").exists()


def test_a_dry_run_never_becomes_a_real_one(tmp_path: Path) -> None:
    campaign, run_dir = folder(tmp_path / "c", job={"walltime": "1h"}), tmp_path / "r"
    assert simgate("run", campaign, "--run-dir", run_dir, "--dry-run").exit_code == 0
    before = read(run_dir)
    for words in (
        ("resume", run_dir),
        ("submit", run_dir),
        ("submit", run_dir, "--print"),
        ("run", campaign, "--run-dir", run_dir),
        ("run", campaign, "--run-dir", run_dir, "--dry-run"),
    ):
        refused = simgate(*words)
        assert refused.exit_code == 2, words
        assert refused.stderr == (
            f"simgate: {run_dir}: a dry run, which is not gone on with; "
            "start a run in another directory\n"
        )
    assert read(run_dir) == before


def test_what_looks_at_runs_looks_at_dry_runs(tmp_path: Path) -> None:
    rule = {"id": "low", "type": "expression", "params": {"condition": "x < 0.9"}}
    campaign = folder(tmp_path / "c", expect={"expectations": [rule]})
    assert simgate("run", campaign, "--run-dir", tmp_path / "r", "--dry-run").exit_code == 0
    for words in (
        ("status", tmp_path / "r"),
        ("status", tmp_path / "r", "--json"),
        ("report", tmp_path / "r", "--rules"),
        ("replay", tmp_path / "r", "--with", campaign),
    ):
        looked = simgate(*words)
        assert looked.exit_code == 0, (words, looked.output)


VERIFIES = """
def bowl(candidate):
    raise RuntimeError("the simulation ran")


def stable(candidate):
    return {"verdict": "pass"}
"""
ON_ONE_CORE = (
    "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
    "from campaign.cli import main; main()"
)
SLURM = ("sbatch", "srun", "salloc", "scancel", "scontrol", "squeue", "sinfo", "sacct")


def slurm(directory: Path) -> dict[str, str]:
    """The environment of a login node, with a Slurm that writes down every call of it."""
    directory.mkdir()
    for name in SLURM:
        (directory / name).write_text(f'#!/bin/sh\necho "{name} $@" >> {directory}/calls\n')
        (directory / name).chmod(0o755)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("SLURM")}
    return outside | {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


def changing(directory: Path) -> list[str]:
    """The calls that may have changed something, all but those that can only look."""
    calls = directory / "calls"
    looks = ("squeue", "sinfo", "sacct", "scontrol show", "scontrol --json show")
    made = calls.read_text().splitlines() if calls.exists() else []
    return [call for call in made if not call.startswith(looks)]


@pytest.mark.slow
def test_slurm_is_asked_for_nothing(tmp_path: Path) -> None:
    pilot = {"walltime": "1h"}
    check = COMMAND | {
        "name": "check",
        "command": ["{python}", "-c", "print('fine')"],
        "launcher": ["srun", "--mpi=pmix"],
        "ranks": 64,
        "nodes": 4,
        "executor": "whole",
        "output": {"exit_codes": {0: "pass", 3: "reject"}},
    }
    campaign = folder(
        tmp_path / "c",
        job={"walltime": "2h"},
        executors={
            "default": {"kind": "slurm", "nodes": 2, "workers_per_node": 16, "pilot": pilot},
            "whole": {"kind": "mpi", "nodes": 4, "launcher": "srun", "pilot": pilot},
        },
        verifiers=[plain()["verifiers"][0], {**check, "walltime": "30s"}],
        simulation=COMMAND | {"walltime": "10m", "ranks": 64, "nodes": 4, "executor": "whole"},
    )
    (campaign / "model.py").write_text(VERIFIES)
    argv = [sys.executable, "-c", ON_ONE_CORE, "run", campaign, "--run-dir", tmp_path / "r"]
    ran = subprocess.run(
        [*map(str, argv), "--dry-run"],
        env=slurm(tmp_path / "bin"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert changing(tmp_path / "bin") == []
    assert tried(tmp_path / "r") == {"stable", "check"}
    assert status(tmp_path / "r")["dispositions"]["accepted"] == 2
    assert "verifiers[1] (check): 64 ranks on 4 nodes -> 1 rank on 1 node" in ran.stdout
    assert "simgate submit would give this to Slurm" in ran.stdout


@pytest.mark.slow
def test_a_dry_run_that_is_stopped_has_failed(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", stop_grace="1s")
    (campaign / "model.py").write_text(SLOW)
    words = ["run", campaign, "--run-dir", tmp_path / "r", "--dry-run"]
    code, said = interrupted(*words, by=signal.SIGINT)
    assert code == 1
    assert "Go on with" not in said
    found = status(tmp_path / "r")
    assert found["state"] == "failed"
    assert found["reason"] == ("SIGINT received; a dry run is not gone on with; start another one")


def test_a_dry_run_that_was_killed_has_failed(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c")
    (tmp_path / "r").mkdir()
    with Ledger(tmp_path / "r") as ledger:
        ledger.append(creation(load_config(campaign).config, campaign, dry_run=True))
        ledger.append(JobStarted(job=1, host="h", pid=1, python="", numpy=""))
    found = status(tmp_path / "r")
    assert found["state"] == "failed"
    assert found["reason"].endswith("a dry run is not gone on with; start another one")
