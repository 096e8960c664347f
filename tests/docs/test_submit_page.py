"""The page on submitting says what loads and what renders."""

from __future__ import annotations

from pathlib import Path

import yaml

import pages
import running
from campaign.jobscript import driver_command, shell_words
from campaign.submit import batch_script
from pages import Block

PAGE = "docs/how-to/submit.md"
RUN = Path("/scratch/run")


@pages.each(pages.blocks(PAGE, "yaml"))
def test_a_job_of_the_page_gives_a_script(block: Block, tmp_path: Path) -> None:
    job = yaml.safe_load(block.text)["job"]
    script = batch_script(running.config(job=job), RUN, tmp_path)
    assert script.startswith("#!/bin/bash\n#SBATCH --job-name=simgate-")
    for line in job.get("setup", ()):
        assert f"\n{line}\n" in script


@pages.each(pages.blocks(PAGE, "jinja"))
def test_the_template_of_the_page_is_enough(block: Block, tmp_path: Path) -> None:
    (tmp_path / "site.j2").write_text(block.text)
    settings = running.config(job={"walltime": "1h", "template": "site.j2"})
    script = batch_script(settings, RUN, tmp_path)
    assert script.splitlines()[2:5] == [
        "#SBATCH --time=01:00:00",
        "#SBATCH --signal=B:USR1@60",
        "#SBATCH --output=/scratch/run/slurm.log",
    ]
    assert script.splitlines()[-1] == f"exec {shell_words(driver_command(RUN))}"
