"""The short how-tos, done by somebody who copies every block."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import folders
from campaign.configfile import load_config

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w./-]+\.\w+)\n")  # a block that begins so is the file of that name


def blocks(page: str, language: str) -> list[str]:
    text = (HOW_TO / page).read_text(encoding="utf-8")
    return [body for found, body in BLOCK.findall(text) if found == language]


def programs(folder: Path) -> str:
    """A PATH on which ``simgate`` and ``python`` are those of this interpreter."""
    folder.mkdir()
    simgate = folder / "simgate"
    simgate.write_text(f"#!{sys.executable}\nfrom campaign.cli import main\nmain()\n")
    simgate.chmod(0o755)
    (folder / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (folder / "python").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def write(folder: Path, language: str, body: str) -> None:
    """The file that a block is; the line with its name is no part of a table."""
    named = FILE.match(body)
    assert named is not None, body
    path = folder / named[1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body[named.end() :] if language == "csv" else body, encoding="utf-8")


def follow(page: str, folder: Path, path: str) -> str:
    """Write each file and run each command of a page, in order; what was printed."""
    said = ""
    for language, body in BLOCK.findall((HOW_TO / page).read_text(encoding="utf-8")):
        if language == "text":
            missing = [line for line in body.splitlines() if line not in said]
            assert missing == [], said
        elif language:
            write(folder, language, body)
        else:
            ran = subprocess.run(
                ["bash", "-e", "-c", body],
                cwd=folder,
                env=os.environ | {"PATH": path, "COLUMNS": "200"},
                capture_output=True,
                text=True,
                timeout=240,
                check=False,
            )
            assert ran.returncode == 0, f"{body}\n{ran.stdout}{ran.stderr}"
            said = ran.stdout
    return said


@pytest.mark.slow
def test_a_check_of_ones_own_is_written_used_and_tried(tmp_path: Path) -> None:
    page = "custom-check.md"
    shared = blocks(page, "toml")
    text = (HOW_TO / page).read_text(encoding="utf-8").partition("## Share it")[0]
    followed = tmp_path / "page.md"
    followed.write_text(text, encoding="utf-8")
    follow(str(followed), tmp_path, programs(tmp_path / "bin"))
    assert [tomllib.loads(one)["project"]["entry-points"] for one in shared] == [
        {"simgate.checks": {"machines": "our_lab.machines"}}
    ]


@pytest.mark.mpi
@pytest.mark.slow
def test_a_verifier_on_ranks_is_written_tried_and_made_to_fail(tmp_path: Path) -> None:
    text = (HOW_TO / "mpi-verifier.md").read_text(encoding="utf-8").partition("## On a cluster")[0]
    followed = tmp_path / "page.md"
    followed.write_text(text, encoding="utf-8")
    path = programs(tmp_path / "bin")
    launcher = tmp_path / "bin" / "mpiexec"
    launcher.write_text(f'#!/bin/sh\nexec {Path(sys.executable).with_name("mpiexec")} "$@"\n')
    launcher.chmod(0o755)
    follow(str(followed), tmp_path, path)
    ended = folders.process("status", tmp_path / "rod-bad", "--json")
    assert json.loads(ended.stdout)["best"]["incomplete"] == ["stiff"]


@pytest.mark.parametrize("text", blocks("mpi-verifier.md", "yaml")[1:])
def test_a_verifier_on_whole_nodes_is_accepted_as_the_page_has_it(
    tmp_path: Path, text: str
) -> None:
    config = load_config(folders.folder(tmp_path, **yaml.safe_load(text))).config
    (verifier,) = config.verifiers
    assert (verifier.kind, verifier.ranks, verifier.nodes) == ("mpi", 64, 2)
    assert config.executors[verifier.executor].kind == "mpi"


def test_bash_completes_commands_and_options_as_the_page_says(tmp_path: Path) -> None:
    tried = """
    for words in "simgate resu" "simgate run --surr"; do
        COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMPREPLY=()
        _simgate_completion simgate
        echo "${COMPREPLY[@]}"
    done
    """
    path = programs(tmp_path / "bin")
    for page in blocks("completion.md", ""):
        ran = subprocess.run(
            ["bash", "--norc", "-c", page + tried],
            cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
        assert ran.stdout.splitlines() == ["resume", "--surrogate-only"], ran.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_given_a_script(tmp_path: Path, shell: str) -> None:
    (text,) = blocks("completion.md", shell)
    assert f"_SIMGATE_COMPLETE={shell}_source simgate" in text
    told = subprocess.run(
        [tmp_path / "bin" / "simgate"],
        env=os.environ
        | {"PATH": programs(tmp_path / "bin"), "_SIMGATE_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"_SIMGATE_COMPLETE={shell}_complete" in told.stdout


@pytest.mark.slow
def test_a_rejected_batch_is_debugged_as_the_page_says(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "configs" / "quickstart", tmp_path / "configs" / "quickstart")
    path = programs(tmp_path / "bin")
    said = follow("debug-a-rejected-batch.md", tmp_path, path)
    assert re.search(r"\d+ were rejected and would pass", said)
    report = folders.process("report", tmp_path / "plate", "--rules", "--json")
    assert report.returncode == 0, report.stderr


@pytest.mark.slow
def test_the_commands_of_the_page_on_budgets_run(tmp_path: Path) -> None:
    path = programs(tmp_path / "bin")
    for commands in blocks("budgets.md", ""):
        ran = subprocess.run(
            ["bash", "-e", "-c", commands],
            cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "0.05" in ran.stdout


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (page, text)
        for page in ("budgets.md", "another-scheduler.md", "without-internet.md")
        for text in blocks(page, "yaml")
    ],
)
def test_a_part_of_a_page_is_accepted_as_it_stands(tmp_path: Path, page: str, text: str) -> None:
    part: dict[str, Any] = yaml.safe_load(text)
    found = load_config(folders.folder(tmp_path, **part)).config.model_dump(exclude_unset=True)
    for key, said in part.items():
        assert set(said) <= set(found[key]), page


@pytest.mark.parametrize("text", blocks("another-scheduler.md", "python"))
def test_a_function_for_a_scheduler_gives_one_executor(tmp_path: Path, text: str) -> None:
    flux = tmp_path / "flux"  # which Parsl looks for when its executor is made
    flux.write_text("#!/bin/sh\n")
    flux.chmod(0o755)
    (tmp_path / "cluster.py").write_text(text)
    made = "import cluster; print([type(one).__name__ for one in cluster.config().executors])"
    ran = subprocess.run(
        [sys.executable, "-c", made],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert re.fullmatch(r"\['\w+Executor'\]", ran.stdout.strip()), ran.stderr


def test_the_wheelhouse_names_what_there_is() -> None:
    commands = "\n".join(blocks("without-internet.md", "")).replace("\\\n", " ")
    parsed = subprocess.run(["bash", "-n", "-c", commands], check=False, capture_output=True)
    assert parsed.returncode == 0, parsed.stderr
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"\[(\w+)\]", commands)) <= set(project["optional-dependencies"])
    assert (ROOT / "configs" / "local-model" / "get-model.sh").exists()
    for line in commands.splitlines():
        if found := re.search(r"pip (wheel|download|install) (.*)", line):
            told = subprocess.run(
                [sys.executable, "-m", "pip", found[1], "--help"],
                check=True, capture_output=True, text=True,
            ).stdout  # fmt: skip
            assert set(re.findall(r"--[a-z-]+", found[2])) <= set(re.findall(r"--[a-z-]+", told))
