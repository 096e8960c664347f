"""Somebody who has never seen simgate installs it and copies every block of the tutorial.

The interpreter's own packages are out of sight: simgate comes from the wheel that pip builds of
the checkout, into a venv that the tutorial makes, with what that wheel says it needs.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import pages
from pages import ROOT, Block

BLOCKS = pages.blocks("docs/tutorial/first-campaign.md")
VENV = "simgate-env"
OFFLINE = ("NewConnectionError", "Could not find a version", "No matching distribution")
CI = os.environ.get("CI", "").lower() in {"true", "1"}


def typed(blocks: tuple[Block, ...]) -> str:
    """The blocks as one script, so that the venv stays active; a file is typed where it stands."""
    parts = []
    for block in blocks:
        if not block.language:
            parts.append(block.text)
        elif block.language != "text":
            parts.append(
                f"cat >{shlex.quote(block.file)} <<'END OF FILE'\n{block.text}END OF FILE\n"
            )
    return "".join(parts)


def bash(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run by a shell that knows no Python but ``python3``, and no package of this one."""
    away = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "COLUMNS"}
    known = {name: value for name, value in os.environ.items() if name not in away}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=known | {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "PYTHONNOUSERSITE": "1"} | more,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which the tutorial was followed, and all that was printed."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(sys.executable)
    (folder / "simgate").symlink_to(ROOT)
    done = bash(typed(BLOCKS), folder)
    if not CI and any(word in done.stderr for word in OFFLINE):
        pytest.skip("needs a package index that pip can reach")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


@pages.whole(BLOCKS)
def test_the_first_campaign_works_by_copy_and_paste(
    newcomer: tuple[Path, str], blocks: tuple[Block, ...]
) -> None:
    _, said = newcomer
    for block in blocks:
        if block.language == "text":
            assert block.text in said
    best = re.search(r"^Result: distance = [\d.]+ at angle=([\d.]+) ", said, re.MULTILINE)
    assert best is not None, said
    assert 35 < float(best[1]) < 45


def test_it_is_the_wheel_that_ran_and_not_the_checkout(newcomer: tuple[Path, str]) -> None:
    folder, _ = newcomer
    asked = "import campaign, checks, executors; print(campaign.__file__, campaign.__path__)"
    told = bash(f"cd /; {folder / VENV}/bin/python -c '{asked}'", folder)
    assert told.stdout.startswith(f"{folder / VENV}/lib/"), told.stdout + told.stderr
    assert (folder / "throw.html").stat().st_size > 10_000


def test_the_script_of_the_readme_installs_and_runs_the_quickstart(
    newcomer: tuple[Path, str], tmp_path: Path
) -> None:
    """Into the tutorial's venv, which spares the download of what simgate needs."""
    folder, _ = newcomer
    script = f"simgate/configs/quickstart/run --run-dir {tmp_path / 'run'}"
    done = bash(script, folder, SIMGATE_VENV=str(folder / VENV))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Result: peak_temperature = " in done.stdout
