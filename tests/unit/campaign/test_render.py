"""A task of the config and a candidate become one task with nothing left to fill in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import running
from campaign.render import Place, build_task, task_seed
from campaign.space import content_hash
from campaign.taskconfig import CommandTask, MpiTask
from executors.base import CommandWork, MpiWork, PythonWork, Task
from executors.config import MpiConfig

POINT = {"x": 0.1, "y": 1e-07}
NAMED = {"kind": "command", "walltime": "10s", "output": {"json": "out.json"}}


def build(folder: Path, task: dict[str, Any], point: Any = POINT, **changes: Any) -> Task:
    config = running.config(simulation=NAMED | task, **changes)
    place = Place(folder, folder / "run", 7)
    return build_task("simulation", config.simulation, point, place, 2)


def test_every_placeholder_is_filled_in_arguments_and_environment(tmp_path: Path) -> None:
    words = ["{python}", "{campaign_dir}/run.py", "-x={x}", "{y}", "{task_dir}", "{ranks}", "{{}}"]
    task = build(tmp_path, {"command": [*words, "{seed}"], "env": {"SCALE": "{x}m", "RAW": "1"}})
    directory = tmp_path / "run" / "tasks" / f"simulation-{content_hash(POINT)}" / "try-2"
    seed = str(task_seed(7, "simulation", content_hash(POINT)))
    assert task.directory == directory
    assert task.id == f"simulation-{content_hash(POINT)}/try-2"
    assert task.work == CommandWork(
        (sys.executable, f"{tmp_path}/run.py", "-x=0.1", "1e-07", str(directory), "1", "{}", seed)
    )
    assert task.env == {
        "SCALE": "0.1m",
        "RAW": "1",
        "SIMGATE_SEED": seed,
        "SIMGATE_RANKS": "1",
        "SIMGATE_CAMPAIGN_DIR": str(tmp_path),
        "SIMGATE_TASK_DIR": str(directory),
    }
    assert task.import_path == (str(tmp_path),)
    assert task.candidate == POINT
    assert task.output.json == "out.json"


def test_files_are_rendered_from_the_campaign_folder(tmp_path: Path) -> None:
    (tmp_path / "in.lj").write_text("density @x@ seed @seed@ mail a@@b\n")
    task = build(tmp_path, {"command": ["lmp"], "files": {"input/in.lj": "in.lj"}})
    seed = task_seed(7, "simulation", content_hash(POINT))
    assert task.files == {"input/in.lj": f"density 0.1 seed {seed} mail a@b\n"}


def test_a_template_that_is_gone_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        build(tmp_path, {"command": ["lmp"], "files": {"in.lj": "in.lj"}})


@given(st.integers(0, 2**63), st.text(max_size=8), st.text("0123456789abcdef", max_size=16))
def test_seeds_are_in_the_range_that_every_generator_takes(
    seed: int, task: str, candidate: str
) -> None:
    assert 1 <= task_seed(seed, task, candidate) <= 900_000_000
    assert task_seed(seed, task, candidate) == task_seed(seed, task, candidate)


def test_a_seed_is_the_same_on_every_machine_and_differs_by_all_it_depends_on() -> None:
    assert task_seed(7, "simulation", "668abdcb0a575e05") == 664_033_290
    others = {task_seed(8, "a", "c"), task_seed(7, "b", "c"), task_seed(7, "a", "d")}
    assert len(others | {task_seed(7, "a", "c")}) == 4


def test_a_command_of_one_rank_runs_by_itself_and_of_more_under_the_default_launcher(
    tmp_path: Path,
) -> None:
    alone = build(tmp_path, {"command": ["lmp"]})
    assert alone.work == CommandWork(("lmp",))
    work = build(tmp_path, {"command": ["lmp"], "ranks": 2}).work
    assert isinstance(work, CommandWork)
    assert work.argv[0].endswith("mpiexec")
    assert work.argv[1:] == ("-n", "2", "lmp")


def test_a_task_may_name_its_own_launcher(tmp_path: Path) -> None:
    launcher = ["mpiexec.openmpi", "--oversubscribe", "-n", "{ranks}"]
    task = build(tmp_path, {"command": ["lmp", "{x}"], "ranks": 2, "launcher": launcher})
    assert task.work == CommandWork(("mpiexec.openmpi", "--oversubscribe", "-n", "2", "lmp", "0.1"))
    assert task.resources.ranks == 2
    single = build(tmp_path, {"command": ["lmp"], "launcher": ["srun"]})
    assert single.work == CommandWork(("srun", "lmp"))


def test_functions_keep_their_arguments(tmp_path: Path) -> None:
    plain = {"function": "model:run", "arguments": {"steps": 3}, "output": None}
    task = build(tmp_path, plain | {"kind": "python"})
    assert task.work == PythonWork("model:run", {"steps": 3})
    spread = build(tmp_path, plain | {"kind": "mpi", "ranks": 2, "launcher": ["m", "{ranks}"]})
    assert spread.work == MpiWork("model:run", ("m", "2"), {"steps": 3})


def test_values_are_single_words_and_never_meet_a_shell(tmp_path: Path) -> None:
    nasty = ["; rm -rf / #", "$(touch gone)", "a b\n'c'", "{x}", "-n", "`id`"]
    space = {"x": {"type": "categorical", "choices": nasty}}
    for word in nasty:
        task = build(tmp_path, {"command": ["echo", "{x}", "v={x}"]}, {"x": word}, parameters=space)
        assert task.work == CommandWork(("echo", word, f"v={word}"))
        assert task.env["SIMGATE_TASK_DIR"] == str(task.directory)


def test_on_whole_nodes_a_task_is_started_by_a_step_whose_nodes_are_chosen_there(
    tmp_path: Path,
) -> None:
    executors = {"default": MpiConfig(kind="mpi", launcher_options=("--cpu-bind=cores",))}
    place = Place(tmp_path, tmp_path / "run", 7, executors)
    spec = MpiTask.model_validate(
        {"kind": "mpi", "function": "m:f", "ranks": 4, "nodes": 2, "walltime": "10s"}
    )
    work = build_task("t", spec, {"x": 0.5}, place, 1).work
    assert isinstance(work, MpiWork)
    interpreter, script, *words = work.launcher
    assert (interpreter, Path(script).name) == (sys.executable, "step_main.py")
    assert words == [
        "--nodes", "2", "--ranks", "4", "--launcher", "auto", "--option", "--cpu-bind=cores", "--",
    ]  # fmt: skip


def test_a_launcher_of_the_tasks_own_is_told_the_nodes_where_it_starts(tmp_path: Path) -> None:
    spec = CommandTask.model_validate(
        {"kind": "command", "command": ["prog", "{x}"], "ranks": 4, "nodes": 2, "walltime": "10s",
         "launcher": ["mpiexec", "-n", "{ranks}", "-N", "{ranks_per_node}", "--host", "{nodelist}"],
         "output": {"json": "out.json"}}
    )  # fmt: skip
    place = Place(tmp_path, tmp_path / "run", 7, {"default": MpiConfig(kind="mpi")})
    work = build_task("t", spec, {"x": 0.5}, place, 1).work
    assert isinstance(work, CommandWork)
    after = work.argv[work.argv.index("--") + 1 :]
    assert after == ("mpiexec", "-n", "4", "-N", "2", "--host", "{nodelist}", "prog", "0.5")
    here = build_task("t", spec, {"x": 0.5}, Place(tmp_path, tmp_path / "run", 7), 1).work
    assert isinstance(here, CommandWork)
    assert here.argv[:7] == ("mpiexec", "-n", "4", "-N", "2", "--host", "localhost")
