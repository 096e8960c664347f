"""The page on submitting says what loads and what renders."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import running
from campaign.jobscript import driver_command, shell_words
from campaign.submit import batch_script

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "submit.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
RUN = Path("/scratch/run")


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "yaml"])
def test_a_job_of_the_page_gives_a_script(text: str, tmp_path: Path) -> None:
    job = yaml.safe_load(text)["job"]
    script = batch_script(running.config(job=job), RUN, tmp_path)
    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=simgate-")
    for line in job.get("setup", ()):
        assert f"\n{line}\n" in script


def test_the_template_of_the_page_is_enough(tmp_path: Path) -> None:
    (text,) = [text for kind, text in BLOCKS if kind == "jinja"]
    (tmp_path / "site.j2").write_text(text)
    settings = running.config(job={"walltime": "1h", "template": "site.j2"})
    script = batch_script(settings, RUN, tmp_path)
    assert script.splitlines()[2:5] == [
        "#SBATCH --time=01:00:00",
        "#SBATCH --signal=B:USR1@60",
        "#SBATCH --output=/scratch/run/slurm.log",
    ]
    assert script.splitlines()[-1] == f"exec {shell_words(driver_command(RUN))}"
