"""What can be refused before money is spent is refused, by name, and the bill is right."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from campaign.configfile import load_config
from campaign.limits import DRAWS
from campaign.preflight import Inspection, inspect, require, require_again
from campaign.problems import ConfigError
from folders import folder, plain

COMMAND = {
    "kind": "command",
    "command": [sys.executable, "{x}"],
    "walltime": "10s",
    "output": {"json": "out.json"},
}


def look(directory: Path, **changes: Any) -> Inspection:
    return inspect(load_config(folder(directory, **changes)))


def problem(directory: Path, **changes: Any) -> tuple[str, int | None, str]:
    """The one problem: its path, its line and what it says."""
    (found,) = look(directory, **changes).problems
    return found.path, found.line, found.message


def simulation(**changes: Any) -> dict[str, Any]:
    return {**plain()["simulation"], **changes}


def test_a_campaign_that_can_run_has_no_problems(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path))
    assert inspect(loaded).problems == ()
    assert require(loaded).notes == ()


def test_a_missing_program_is_named_with_the_nearest_there_is(tmp_path: Path) -> None:
    path, line, said = problem(tmp_path, simulation=COMMAND | {"command": ["basename_", "{x}"]})
    assert (path, bool(line)) == ("simulation.command", True)
    assert said.startswith("'basename_': not on PATH")
    assert "did you mean 'basename'?" in said


def test_a_program_relative_to_the_task_is_refused(tmp_path: Path) -> None:
    _, _, said = problem(tmp_path, simulation=COMMAND | {"command": ["./run.sh"]})
    assert said.endswith("write {campaign_dir}/run.sh")


def test_a_program_in_the_campaign_folder_must_be_executable(tmp_path: Path) -> None:
    task = COMMAND | {"command": ["{campaign_dir}/run.sh"]}
    assert "does not exist" in problem(tmp_path, simulation=task)[2]
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    assert "is not executable" in problem(tmp_path, simulation=task)[2]
    script.chmod(0o755)
    assert look(tmp_path, simulation=task).problems == ()


def test_the_script_of_an_interpreter_must_be_there(tmp_path: Path) -> None:
    task = COMMAND | {"command": ["{python}", "{campaign_dir}/run.py", "{x}"]}
    path, _, said = problem(tmp_path, simulation=task)
    assert path == "simulation.command[1]"
    assert said == f"'{tmp_path}/run.py': does not exist; name a file to run"
    (tmp_path / "run.py").write_text("")
    assert look(tmp_path, simulation=task).problems == ()


def test_a_script_relative_to_the_task_must_be_one_of_its_files(tmp_path: Path) -> None:
    task = COMMAND | {"command": ["{python}", "./run.py"]}
    assert problem(tmp_path, simulation=task)[2].endswith("write {campaign_dir}/run.py")
    (tmp_path / "run.in").write_text("")
    assert look(tmp_path, simulation=task | {"files": {"run.py": "run.in"}}).problems == ()


def test_a_program_that_depends_on_the_candidate_is_left_to_the_run(tmp_path: Path) -> None:
    assert look(tmp_path, simulation=COMMAND | {"command": ["solve_{x}"]}).problems == ()


def test_a_missing_launcher_is_named(tmp_path: Path) -> None:
    task = COMMAND | {"launcher": ["mpiexec.nowhere", "-n", "{ranks}"]}
    path, _, said = problem(tmp_path, simulation=task)
    assert path == "simulation.launcher"
    assert "'mpiexec.nowhere'" in said


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("gone:bowl", "No module named 'gone'"),
        ("model:bowls", "has no attribute 'bowls'"),
        ("broken:run", "ZeroDivisionError"),
        ("needs:run", "No module named 'not_installed_here'"),
        ("leaves:run", "SystemExit: 3"),
        ("dies:run", "importing ended the interpreter"),
        ("model:MARK", "a str; a function is wanted"),
    ],
)
def test_a_function_that_cannot_be_imported_is_named_with_the_real_error(
    tmp_path: Path, function: str, said: str
) -> None:
    folder(tmp_path, simulation=simulation(function=function))
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "needs.py").write_text("import not_installed_here\n")
    (tmp_path / "leaves.py").write_text("import sys; sys.exit(3)\n")
    (tmp_path / "dies.py").write_text("import os; os._exit(3)\n")
    with (tmp_path / "model.py").open("a") as file:
        file.write("\nMARK = 'text'\nprint('noise')\n")
    found = inspect(load_config(tmp_path)).problems
    (wrong,) = [one for one in found if one.path == "simulation.function"]
    assert wrong.message.startswith(f"{function!r}: ")
    assert said in wrong.message
    assert str(tmp_path) in wrong.message


def test_a_reader_is_imported_too(tmp_path: Path) -> None:
    task = COMMAND | {"output": {"reader": "model:gone"}}
    path, _, said = problem(tmp_path, simulation=task)
    assert path == "simulation.output.reader"
    assert "has no attribute 'gone'" in said


def test_templates_are_read_and_their_placeholders_known(tmp_path: Path) -> None:
    task = COMMAND | {"files": {"a": "gone.in", "b": "odd.in", "c": "raw.in", "d": "fine.in"}}
    folder(tmp_path, simulation=task)
    (tmp_path / "odd.in").write_text("x @x@\nz @zz@ @x@\n")
    (tmp_path / "raw.in").write_bytes(b"\xff\xfe")
    (tmp_path / "fine.in").write_text("@x@ @seed@ @@\n")
    said = {one.path: one.message for one in inspect(load_config(tmp_path)).problems}
    assert sorted(said) == ["simulation.files.a", "simulation.files.b", "simulation.files.c"]
    assert "No such file or directory; it lies in the campaign folder" in said["simulation.files.a"]
    assert "line 2: unknown placeholder '@zz@'" in said["simulation.files.b"]
    assert "not UTF-8" in said["simulation.files.c"]


def test_the_agents_recording_is_read(tmp_path: Path) -> None:
    agent = {"kind": "replay", "file": "answers.yaml"}
    path, _, said = problem(tmp_path, agent=agent)
    assert (path, said) == ("agent.file", "answers.yaml: cannot be read: No such file or directory")
    (tmp_path / "answers.yaml").write_text("version: 1\nanswers: [{round: 0, candidates: []}]\n")
    assert "answers[0].round" in problem(tmp_path, agent=agent)[2]


def test_a_cap_below_one_try_is_refused(tmp_path: Path) -> None:
    budgets = {"node_hours": 0.001, "verifier_node_hours": 0.002}
    said = [(one.path, one.message) for one in look(tmp_path, budgets=budgets).problems]
    assert [path for path, _ in said] == [
        "budgets.node_hours",
        "budgets.verifier_node_hours",
        "budgets.node_hours",
    ]
    assert said[0][1].startswith("0.001 node-hours; one try of verifiers.0 reserves 0.004167 ")


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    loaded = load_config(
        folder(
            tmp_path,
            agent={"kind": "replay", "file": "answers.yaml"},
            simulation=simulation(function="gone:f"),
            budgets={"node_hours": 0.001},
        )
    )
    with pytest.raises(ConfigError) as refused:
        require(loaded)
    assert {one.path for one in refused.value.problems} == {
        "agent.file",
        "simulation.function",
        "budgets.node_hours",
    }


def test_the_bill_is_what_a_hand_makes_it(tmp_path: Path) -> None:
    verifiers = [
        {"name": "a", "kind": "python", "function": "model:stable", "walltime": "55s"},
        {
            "name": "b",
            "kind": "python",
            "function": "model:stable",
            "walltime": "115s",
            "retries": 2,
        },
    ]
    found = look(
        tmp_path,
        rounds=3,
        batch_size=4,
        expect={"max_iterations": 5},
        verifiers=verifiers,
        simulation=simulation(walltime="595s", retries=1),
        budgets={"node_hours": 5, "generations": 15},
    )
    tries = 5 + DRAWS
    verifying = 12 * tries * (60 + 3 * 120) / 3600
    bill = {cost.what: (cost.least, cost.most, cost.cap) for cost in found.costs}
    assert bill == {
        "generations": (3, 15, 15),
        "verifier runs": (24, 12 * tries * 4, None),
        "simulation runs": (12, 24, None),
        "verifier node-hours": (0, pytest.approx(verifying), None),
        "node-hours": (0, pytest.approx(verifying + 24 * 600 / 3600), 5),
    }
    (note,) = found.notes
    assert note.startswith(f"node-hours: at most {verifying + 4:.4g}, the cap is 5; ")


def test_what_the_gate_lets_happen_is_noted(tmp_path: Path) -> None:
    rule = {"type": "value_between", "params": {"max": 0.5}}
    parameters = plain()["parameters"]
    parameters["x"]["expectations"] = [rule]
    expect = {"on_exhausted": "return_last", "expectations": [rule | {"field": "y"}]}
    notes = look(tmp_path, parameters=parameters, expect=expect).notes
    assert len(notes) == 2
    assert notes[0].startswith("the rules on the parameters and under expectations do not run")
    assert notes[1].startswith("return_last simulates candidates that were rejected: at most 4 of")


def test_what_is_gone_since_a_run_began_is_named_together(tmp_path: Path) -> None:
    task = COMMAND | {"command": ["{campaign_dir}/run.sh"]}
    loaded = load_config(folder(tmp_path, simulation=task))
    with pytest.raises(ConfigError) as refused:
        require_again(loaded.config, tmp_path / "moved", tmp_path / "run")
    said = str(refused.value)
    assert said.startswith(f"{tmp_path}/run, whose campaign folder is {tmp_path}/moved: ")
    assert f"simulation.command: '{tmp_path}/moved/run.sh': does not exist" in said
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    require_again(loaded.config, tmp_path, tmp_path / "run")
