"""The config of a dry run: what this machine has, and a line for everything that was cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping, load_config
from campaign.dryrun import DryRun, cores, dry_run, forbidden, running
from executors.config import LocalConfig, ThreadsConfig
from folders import plain

CASES = sorted((Path(__file__).parents[2] / "cases" / "accepted").glob("*.yaml"))
PILOT = {"walltime": "2h"}
CHECK = {
    "name": "check",
    "kind": "command",
    "command": ["solve", "{x}"],
    "walltime": "10s",
    "output": {"exit_codes": {0: "pass", 3: "reject"}},
}


def config(**changes: Any) -> CampaignConfig:
    return config_from_mapping(plain(**changes))


def checked(executor: dict[str, Any], **task: Any) -> CampaignConfig:
    """A campaign with one verifier, a command on ``executor``."""
    executors = {"default": {"kind": "threads"}, "there": executor}
    return config(executors=executors, verifiers=[CHECK | task | {"executor": "there"}])


def cuts(found: DryRun) -> list[str]:
    """What is told of everything but the rounds and the simulation."""
    return [line for line in found.cuts if not line.startswith(("rounds:", "simulation:"))]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("count", [1, 3, 2000])
def test_every_config_has_a_dry_run_that_fits_on_this_machine(path: Path, count: int) -> None:
    found = dry_run(load_config(path).config, count).config
    for executor in found.executors.values():
        assert isinstance(executor, ThreadsConfig | LocalConfig)
        assert executor.workers <= min(count, 512)
    for _, task in running(found):
        executor = found.executors[task.executor]
        assert isinstance(executor, ThreadsConfig | LocalConfig)
        assert (task.nodes, task.ranks <= executor.workers) == (1, True)
    assert dry_run(found, count).config == found
    assert config_from_mapping(found.model_dump(mode="json")) == found


@pytest.mark.parametrize(
    ("executor", "kind", "workers", "told"),
    [
        ({"kind": "threads", "workers": 3}, "threads", 3, None),
        ({"kind": "threads", "workers": 9}, "threads", 4, "threads, 9 workers"),
        ({"kind": "local", "workers": 4}, "local", 4, None),
        ({"kind": "local", "workers": 9}, "local", 4, "local, 9 workers"),
        ({"kind": "slurm", "pilot": PILOT}, "local", 1, "slurm, 1 worker"),
        (
            {"kind": "slurm", "nodes": 2, "workers_per_node": 16, "max_pilots": 3, "pilot": PILOT},
            "local",
            4,
            "slurm, 96 workers",
        ),
        ({"kind": "allocation", "workers_per_node": 3}, "local", 3, "allocation, 3 workers"),
        ({"kind": "allocation", "nodes": 2}, "local", 2, "allocation, 2 workers"),
        ({"kind": "mpi", "nodes": 1}, "local", 4, "mpi, whole nodes"),
        ({"kind": "parsl", "function": "site:f", "workers": 2}, "local", 2, "parsl, 2 workers"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_executor_becomes_one_of_this_machine(
    executor: dict[str, Any], kind: str, workers: int, told: str | None
) -> None:
    found = dry_run(checked(executor), 4)
    there = found.config.executors["there"]
    assert isinstance(there, ThreadsConfig | LocalConfig)
    assert (there.kind, there.workers) == (kind, workers)
    plural = "" if workers == 1 else "s"
    line = f"executors.there: {told} -> {kind}, {workers} worker{plural}"
    assert cuts(found) == ([line] if told else [])


def test_a_pool_keeps_its_patience() -> None:
    pool = {"kind": "local", "workers": 9, "start_timeout": "9s"}
    found = dry_run(checked(pool), 1).config
    assert found.executors["there"] == LocalConfig.model_validate(pool | {"workers": 1})


def test_where_nothing_runs_nothing_is_started() -> None:
    executors = {"default": {"kind": "slurm", "pilot": PILOT}, "whole": {"kind": "mpi"}}
    found = dry_run(config(executors=executors), 4)
    assert found.config.executors["whole"] == ThreadsConfig(kind="threads", workers=4)
    assert not any("executors.whole" in line for line in found.cuts)


@pytest.mark.parametrize(
    ("launcher", "kept"),
    [
        (["srun", "--mpi=pmix"], False),
        (["/opt/slurm/bin/srun", "-w", "{nodelist}"], False),
        (["bash", "-c", 'exec srun "$@"', "bash"], False),
        (["env", "A=1", "srun"], False),
        (["jsrun", "-n", "{ranks}"], False),
        (["mpiexec", "-n", "{ranks}", "-host", "{nodelist}"], True),
        (["mpirun", "--host", "{hostlist}"], True),
        (["mpiexec", "-n", "{ranks}", "-prepend", "flux"], True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_launcher_of_the_cluster_is_left_out(launcher: list[str], kept: bool) -> None:
    found = dry_run(checked({"kind": "mpi"}, launcher=launcher, ranks=64, nodes=4), 2)
    (verifier,) = found.config.verifiers
    assert verifier.kind == "command"
    assert verifier.launcher == (tuple(launcher) if kept else None)
    told = [f"verifiers[0] (check): launcher {' '.join(launcher)} -> the default one"]
    assert cuts(found)[1:] == [
        "verifiers[0] (check): 64 ranks on 4 nodes -> 2 ranks on 1 node",
        *([] if kept else told),
    ]


def test_a_launcher_that_counts_for_itself_is_told() -> None:
    launcher = ["mpiexec", "-n", "64"]
    found = dry_run(checked({"kind": "mpi"}, launcher=launcher, ranks=64), 2)
    assert cuts(found)[-1] == (
        "verifiers[0] (check): launcher mpiexec -n 64 stays and says itself how many; "
        "{ranks} would be cut"
    )


def test_one_round_is_run_and_said_so() -> None:
    found = dry_run(config(rounds=5), 2)
    assert found.config.rounds == 1
    assert found.cuts == (
        "rounds: 1 of 5; --set rounds=N runs as many as you like",
        "simulation: none runs; simulation.dry_run may name a task that stands in for it",
    )
    assert dry_run(config(rounds=5), 2, rounds=5).cuts == found.cuts[1:]


def test_the_stand_in_is_cut_like_any_task_and_the_simulation_is_not_told() -> None:
    solve = {"kind": "mpi", "function": "model:bowl", "walltime": "1h", "executor": "whole"}
    found = dry_run(
        config(
            rounds=1,
            executors={"default": {"kind": "threads"}, "whole": {"kind": "mpi"}},
            simulation=solve | {"ranks": 64, "nodes": 2, "dry_run": solve | {"ranks": 4}},
        ),
        2,
    )
    assert found.config.simulation.dry_run is not None
    assert found.config.simulation.dry_run.ranks == 2
    assert found.cuts == (
        "executors.whole: mpi, whole nodes -> local, 2 workers",
        "simulation.dry_run: 4 ranks on 1 node -> 2 ranks on 1 node",
        "simulation: simulation.dry_run stands in for it",
    )


@pytest.mark.parametrize(
    "command",
    [["srun", "solve"], ["sh", "-c", "module load x && /usr/bin/sbatch --wait job.sh"]],
    ids=["program", "line"],
)
def test_a_command_that_asks_slurm_is_found(command: list[str]) -> None:
    ((loc, message),) = forbidden(checked({"kind": "threads"}, command=command))
    assert loc[:3] == ("verifiers", 0, "command")
    assert message.startswith(("'srun' asks Slurm", "'/usr/bin/sbatch' asks Slurm"))
    assert list(forbidden(checked({"kind": "threads"}, command=["solve", "srun.log"]))) == []


def test_what_only_a_real_run_runs_may_ask_slurm() -> None:
    asks = CHECK | {"command": ["srun", "solve"], "output": {"json": "out.json"}}
    del asks["name"]
    assert list(forbidden(config(simulation=asks))) == []


def test_the_machine_has_a_core() -> None:
    assert cores() >= 1
