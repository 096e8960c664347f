"""The batch script is text, and means what it says to sbatch and to the shell."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import running
from campaign.config import CampaignConfig
from campaign.jobconfig import JobConfig
from campaign.jobscript import TemplateError, driver_command, script
from campaign.problems import ConfigError
from campaign.submit import batch_script
from executors.batchtext import clock, sbatch_word

BIN = Path(sys.executable).parent
RUN = Path("/scratch/runs/bowl-1")
ODD = Path("/scratch/a b'c\"d%j#e\\f$HOME`id`")


def job(**keys: Any) -> JobConfig:
    return JobConfig.model_validate({"walltime": "1h"} | keys)


def rendered(run_dir: Path = RUN, folder: Path = RUN, **keys: Any) -> str:
    return script(job(**keys), "simgate-0-driver:bowl", run_dir, folder)


def test_the_least_job_gives_this_script() -> None:
    assert rendered() == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=simgate-0-driver:bowl\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --time=01:00:00\n"
        "#SBATCH --exclusive\n"
        "#SBATCH --output=/scratch/runs/bowl-1/slurm.log\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --no-requeue\n"
        "#SBATCH --signal=B:USR1@60\n"
        "\n"
        f'export PATH={BIN}:"$PATH"\n'
        f"exec {sys.executable} -P -m campaign resume /scratch/runs/bowl-1\n"
    )


def test_every_key_of_the_job_gives_this_script() -> None:
    found = rendered(
        nodes=4,
        partition="batch",
        account="abc 123",
        qos="high",
        constraint="[a*2&b*1]",
        memory="16G",
        gpus=2,
        exclusive=False,
        margin="90s",
        options=["--reservation=now", '--comment=it\'s "x"'],
        setup=["module load gcc || exit", "export A='b c'"],
    )
    assert found == (
        "#!/bin/bash\n"
        "#SBATCH --job-name=simgate-0-driver:bowl\n"
        "#SBATCH --nodes=4\n"
        "#SBATCH --time=01:00:00\n"
        "#SBATCH --partition=batch\n"
        '#SBATCH "--account=abc 123"\n'
        "#SBATCH --qos=high\n"
        '#SBATCH "--constraint=[a*2&b*1]"\n'
        "#SBATCH --mem=16G\n"
        "#SBATCH --gpus-per-node=2\n"
        "#SBATCH --no-kill\n"
        "#SBATCH --output=/scratch/runs/bowl-1/slurm.log\n"
        "#SBATCH --open-mode=append\n"
        "#SBATCH --no-requeue\n"
        "#SBATCH --signal=B:USR1@90\n"
        "#SBATCH --reservation=now\n"
        '#SBATCH "--comment=it\'s \\"x\\""\n'
        "\n"
        "module load gcc || exit\n"
        "export A='b c'\n"
        f'export PATH={BIN}:"$PATH"\n'
        f"exec {sys.executable} -P -m campaign resume /scratch/runs/bowl-1\n"
    )


def test_a_path_means_itself_to_the_shell() -> None:
    last = rendered(ODD).splitlines()[-1].replace("exec", "printf '%s\\n'", 1)
    said = subprocess.run(["bash", "-c", last], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == driver_command(ODD)


def test_a_path_means_itself_to_sbatch() -> None:
    def output(run_dir: Path) -> str:
        lines = rendered(run_dir).splitlines()
        (line,) = [one for one in lines if "--output" in one]
        (word,) = shlex.split(line.removeprefix("#SBATCH "))  # sbatch takes quotes as a shell does
        return word

    assert output(Path("/a%j b")) == "--output=/a%%j b/slurm.log"
    # A backslash switches Slurm's patterns off, and stands for itself when doubled.
    assert output(Path("/a%j\\b")) == "--output=/a%j\\\\b/slurm.log"


def test_a_path_with_a_line_break_fits_in_no_script() -> None:
    with pytest.raises(TemplateError, match="a line break fits in no batch script"):
        rendered(Path("/a\nb"))
    with pytest.raises(ValueError, match="a line break fits in no #SBATCH line"):
        sbatch_word("--x=a\nb")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(60, "00:01:00"), (0.5, "00:00:01"), (3599.2, "01:00:00"), (90000, "1-01:00:00")],
)
def test_a_time_limit_is_written_as_slurm_reads_it(seconds: float, text: str) -> None:
    assert clock(seconds) == text


def test_a_template_of_the_campaigns_own_replaces_ours(tmp_path: Path) -> None:
    (tmp_path / "site.j2").write_text(
        "#!/bin/sh -l\n#SBATCH -J {{ name }} -t {{ time }} -o {{ output | sbatch }}\n"
        "cd {{ run_dir | shell }}\nexec {{ bin }}/python {{ command[1:] | shell }} # {{ lead }}\n"
    )
    assert rendered(folder=tmp_path, template="site.j2") == (
        "#!/bin/sh -l\n#SBATCH -J simgate-0-driver:bowl -t 01:00:00 "
        "-o /scratch/runs/bowl-1/slurm.log\ncd /scratch/runs/bowl-1\n"
        f"exec {BIN}/python -P -m campaign resume /scratch/runs/bowl-1 # 60\n"
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{ nmae }}", "site.j2: 'nmae' is undefined"),
        ("{{ job.nods }}", "has no attribute 'nods'"),
        ("\n{% if %}", "site.j2: line 2: "),
        ("{{ name | quote }}", "No filter named 'quote'"),
        (b"\xff", "site.j2: not UTF-8 text"),
        (None, "site.j2: No such file or directory; it lies in the campaign folder"),
        ("{{ ('a\n' ~ name) | sbatch }}", "a line break fits in no #SBATCH line"),
    ],
)
def test_a_template_that_cannot_be_used_is_named(
    tmp_path: Path, template: str | bytes | None, said: str
) -> None:
    if template is not None:
        text = template.encode() if isinstance(template, str) else template
        (tmp_path / "site.j2").write_bytes(text)
    with pytest.raises(TemplateError) as caught:
        rendered(folder=tmp_path, template="site.j2")
    assert said in str(caught.value)


def config(**changes: Any) -> CampaignConfig:
    return running.config(**changes)


def test_a_script_without_the_jobs_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site.j2").write_text("#!/bin/sh\nexec {{ command | shell }}\n")
    settings = config(job={"walltime": "1h", "template": "site.j2"})
    with pytest.raises(ConfigError, match=r"job.template: the script does not say the job's name"):
        batch_script(settings, RUN, tmp_path)


def test_a_config_without_a_job_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="job: missing; say what to ask Slurm for"):
        batch_script(config(), RUN, tmp_path)


def test_a_problem_of_a_template_is_one_of_the_config(tmp_path: Path) -> None:
    settings = config(job={"walltime": "1h", "template": "gone.j2"})
    with pytest.raises(ConfigError, match=r"job.template: .*gone.j2: No such file"):
        batch_script(settings, RUN, tmp_path)
