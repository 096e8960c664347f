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

import pytest
import yaml

import folders
import pages
from campaign.configfile import load_config
from pages import ROOT, Block

HOW_TO = "docs/how-to"


@pages.whole(pages.blocks(f"{HOW_TO}/custom-check.md", before="Share it"))
def test_a_check_of_ones_own_is_written_used_and_tried(
    tmp_path: Path, blocks: tuple[Block, ...]
) -> None:
    pages.follow(blocks, tmp_path, pages.programs(tmp_path / "bin"))


@pages.each(pages.blocks(f"{HOW_TO}/custom-check.md", "toml"))
def test_checks_are_shared_by_an_entry_point(block: Block) -> None:
    shared = tomllib.loads(block.text)["project"]["entry-points"]
    assert shared == {"simgate.checks": {"machines": "our_lab.machines"}}


@pages.whole(pages.blocks(f"{HOW_TO}/mpi-verifier.md", before="On a cluster"))
@pytest.mark.mpi
def test_a_verifier_on_ranks_is_written_tried_and_made_to_fail(
    tmp_path: Path, blocks: tuple[Block, ...]
) -> None:
    path = pages.programs(tmp_path / "bin")
    launcher = tmp_path / "bin" / "mpiexec"
    launcher.write_text(f'#!/bin/sh\nexec {Path(sys.executable).with_name("mpiexec")} "$@"\n')
    launcher.chmod(0o755)
    pages.follow(blocks, tmp_path, path)
    ended = folders.process("status", tmp_path / "rod-bad", "--json")
    assert json.loads(ended.stdout)["best"]["incomplete"] == ["stiff"]


@pages.each(pages.blocks(f"{HOW_TO}/mpi-verifier.md", "yaml", under="On a cluster"))
def test_a_verifier_on_whole_nodes_is_accepted_as_the_page_has_it(
    tmp_path: Path, block: Block
) -> None:
    config = load_config(folders.folder(tmp_path, **yaml.safe_load(block.text))).config
    (verifier,) = config.verifiers
    assert (verifier.kind, verifier.ranks, verifier.nodes) == ("mpi", 64, 2)
    assert config.executors[verifier.executor].kind == "mpi"


@pages.each(pages.blocks(f"{HOW_TO}/completion.md", ""))
def test_bash_completes_commands_and_options_as_the_page_says(tmp_path: Path, block: Block) -> None:
    tried = """
    for words in "simgate resu" "simgate run --surr"; do
        COMP_WORDS=($words) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMPREPLY=()
        _simgate_completion simgate
        echo "${COMPREPLY[@]}"
    done
    """
    said = pages.ran(block.text + tried, tmp_path, pages.programs(tmp_path / "bin"))
    assert said.splitlines() == ["resume", "--surrogate-only"]


@pages.each(pages.blocks(f"{HOW_TO}/completion.md", "zsh", "fish"))
def test_the_other_shells_are_given_a_script(tmp_path: Path, block: Block) -> None:
    """The script is looked at; where there is the shell, it reads the block as well."""
    asked = f"_SIMGATE_COMPLETE={block.language}_source simgate"
    assert asked in block.text
    path = pages.programs(tmp_path / "bin")
    told = pages.ran(asked, tmp_path, path)
    assert f"_SIMGATE_COMPLETE={block.language}_complete" in told
    if (shell := shutil.which(block.language)) is not None:
        ahead = "autoload -Uz compinit; compinit -D; " if block.language == "zsh" else ""
        subprocess.run([shell, "-c", ahead + block.text], env={"PATH": path}, check=True)


@pages.whole(pages.blocks(f"{HOW_TO}/debug-a-rejected-batch.md"))
def test_a_rejected_batch_is_debugged_as_the_page_says(
    tmp_path: Path, blocks: tuple[Block, ...]
) -> None:
    shutil.copytree(ROOT / "configs" / "quickstart", tmp_path / "configs" / "quickstart")
    said = pages.follow(blocks, tmp_path, pages.programs(tmp_path / "bin"))
    assert re.search(r"\d+ were rejected and would pass", said)
    report = folders.process("report", tmp_path / "plate", "--rules", "--json")
    assert report.returncode == 0, report.stderr


@pages.whole(pages.blocks(f"{HOW_TO}/budgets.md", ""))
def test_the_commands_of_the_page_on_budgets_run(tmp_path: Path, blocks: tuple[Block, ...]) -> None:
    assert "0.05" in pages.follow(blocks, tmp_path, pages.programs(tmp_path / "bin"))


@pages.each(pages.blocks(f"{HOW_TO}/another-scheduler.md", "python"))
def test_a_function_for_a_scheduler_gives_one_executor(tmp_path: Path, block: Block) -> None:
    """As far as it goes without that scheduler: the function is called and gives its Config."""
    flux = tmp_path / "flux"  # which Parsl looks for when its executor is made
    flux.write_text("#!/bin/sh\n")
    flux.chmod(0o755)
    pages.write(tmp_path, block)
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


@pages.whole(pages.blocks(f"{HOW_TO}/without-internet.md", ""))
def test_the_wheelhouse_names_what_there_is(blocks: tuple[Block, ...]) -> None:
    """Nothing is downloaded: syntax, extras, files and the options of pip are looked at."""
    commands = "\n".join(block.text for block in blocks).replace("\\\n", " ")
    parsed = subprocess.run(["bash", "-n", "-c", commands], check=False, capture_output=True)
    assert parsed.returncode == 0, parsed.stderr
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(re.findall(r"\[(\w+)\]", commands)) <= set(project["optional-dependencies"])
    assert (ROOT / "configs" / "local-model" / "get-model.sh").exists()
    for found in re.finditer(r"pip (wheel|download|install) (.*)", commands):
        told = subprocess.run(
            [sys.executable, "-m", "pip", found[1], "--help"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        assert set(re.findall(r"--[a-z-]+", found[2])) <= set(re.findall(r"--[a-z-]+", told))
