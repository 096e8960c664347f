"""The commands of the pages: run as they stand, or looked at as far as this machine goes."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

import folders
import pages
from campaign.cli import main
from campaign.configfile import load_config
from pages import ROOT, Block
from pretend_slurm import PretendSlurm, pretend_slurm

PAGES = [
    "README.md",
    *sorted(
        str(path.relative_to(ROOT))
        for top in ("configs", "docs")
        for path in (ROOT / top).rglob("*.md")
    ),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMAND = re.compile(r"(?:^|[|;] )((?:\S*/)?(?:simgate|pip) .*?)(?= [|] |;|$)")
MADE = {"quickstart/rules", "local-model/model"}  # by the commands of a page
CAMPAIGNS = ("", "lennard-jones/", "local-model/", "quickstart/")
JOB = {"walltime": "30m"}
RULE = {"id": "low", "type": "expression", "params": {"condition": "x + y <= 1.9"}}
KNOWN = "x,y\n0.2,0.5\n0.9,0.5\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where CONFIG is a campaign and RUN a run of it that is done."""
    found = tmp_path_factory.mktemp("reader")
    folders.folder(found / "CONFIG", rounds=1, job=JOB, expect={"expectations": [RULE]})
    (found / "candidates.csv").write_text(KNOWN)
    shutil.copytree(ROOT / "configs", found / "configs", ignore=shutil.ignore_patterns("model"))
    server = found / "configs" / "local-model" / "model" / "llama-server"
    server.parent.mkdir()
    server.write_text("#!/bin/sh\nexit 1\n")  # get-model.sh takes minutes; nothing here starts it
    server.chmod(0o755)
    said = folders.simgate("run", found / "CONFIG", "--run-dir", found / "RUN")
    assert said.exit_code == 0, said.output
    return found


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    """Programs that answer as Slurm's; what Slurm makes of a job is tested in tests/slurm."""
    found = pretend_slurm(tmp_path / "bin", monkeypatch)
    found.says("sbatch", "7\n")
    return found


def does(line: str, folder: Path) -> str:
    """What a command prints that ends well; of a pipe, what it hands on is read by the rest."""
    first, *rest = line.split(" | ")
    words = [
        str(next(folder.glob(word.replace("…", "*")))) if "…" in word else word
        for word in shlex.split(first, comments=True)
    ]
    assert words[0] == "simgate", line
    said = folders.simgate(*words[1:])
    assert said.exit_code == 0, f"{line}\n{said.output}"
    for further in rest:
        argv = shlex.split(further, comments=True)
        done = subprocess.run(argv, input=said.output, text=True, capture_output=True, check=False)
        assert done.returncode in (0, 1) and not done.stderr, further  # noqa: PT018
    return said.output


@pages.each(
    pages.blocks("docs/explanation/determinism.md", ""),
    pages.blocks("docs/how-to/dry-run.md", ""),
    pages.blocks("docs/how-to/local-model.md", "", under="What it shows"),
    pages.blocks("docs/how-to/local-model.md", "", under="On a node of Slurm"),
    pages.blocks("docs/how-to/resume.md", ""),
    pages.blocks("docs/how-to/submit.md", ""),
    pages.blocks("docs/how-to/watch.md", ""),
    pages.blocks("docs/how-to/write-rules.md", ""),
)
@pytest.mark.usefixtures("slurm")
def test_commands_about_a_campaign_and_its_run_end_well(
    place: Path, monkeypatch: pytest.MonkeyPatch, block: Block
) -> None:
    monkeypatch.chdir(place)
    for line in pages.lines(block):
        does(line, place)


@pages.each(
    pages.blocks("README.md", "", under="Use it"),
    pages.blocks("docs/index.md", ""),
)
def test_a_campaign_of_ones_own_is_begun_as_the_front_pages_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: Block
) -> None:
    """But for pip, which the tutorial's test calls; ``…`` stands for the time in a name."""
    monkeypatch.chdir(tmp_path)
    for line in pages.lines(block):
        if not line.startswith("pip "):
            does(line, tmp_path)


@pages.each(
    pages.blocks("README.md", "", under="Try it"),
    *(pages.blocks(f"configs/{name}README.md", "") for name in CAMPAIGNS),
    pages.blocks("docs/how-to/local-model.md", "", before="What it shows"),
)
def test_what_takes_minutes_root_or_the_network_is_looked_at(block: Block) -> None:
    """Scripts are read, campaigns loaded as they would be run, packages compared with CI's.

    The campaigns themselves are run by tests/integration, the scripts by test_tutorial and CI.
    """
    for line in pages.lines(block):
        words = shlex.split(line, comments=True)
        if words[0] == "simgate":
            sets = [two for one, two in pairwise(words) if one == "--set"]
            assert load_config(ROOT / words[2], sets).config.name
        elif words[0] == "apt-get":
            assert set(words[2:]) <= packages(), line
        elif words[0] != "pip":
            assert (ROOT / words[0]).stat().st_mode & 0o111, f"{words[0]} is not executable"


def packages() -> set[str]:
    """What the command that runs the tests installs by apt-get."""
    script = (ROOT / "tests" / "run").read_text(encoding="utf-8")
    return set(re.findall(r"[a-z][a-z0-9-]+", "".join(re.findall(r"apt_install (.*);", script))))


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one_that_there_is(page: str) -> None:
    """Besides being run: the syntax, options that simgate knows, files and extras that exist."""
    for block in pages.every(page):
        if block.language in ("", "zsh"):
            argv = ["bash", "-n", "-c", block.text]
            checked = subprocess.run(argv, text=True, capture_output=True, check=False)
            assert checked.returncode == 0, f"{block}: {checked.stderr}"
        if block.language in ("", "zsh", "fish"):
            for line in block.text.replace("\\\n", " ").splitlines():
                for found in COMMAND.findall(line):
                    known(shlex.split(found, comments=True))
            for path in re.findall(r"(?<![\w./])(?:configs|slurm|tests)/[\w./-]*\w", block.text):
                assert (ROOT / path).exists() or path.partition("/")[2] in MADE, path


def known(words: list[str]) -> None:
    """Raises ``click.UsageError`` for a command or an option that simgate has not."""
    program, name, *rest = words
    if program.endswith("simgate"):
        main.commands[name].make_context(name, rest)
    else:
        extras = re.findall(r"\[(\w+)\]", " ".join(rest))
        assert set(extras) <= set(PROJECT["optional-dependencies"]), extras
