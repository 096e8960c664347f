"""The part of a configuration that says what Slurm is asked for when a campaign is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from campaign.fields import Inside, Items, Model, Seconds, Text, duration_text

MARGIN = 60.0
"""Seconds kept free before the end of a job that says nothing else."""

_OWN: Mapping[str, str] = {
    "nodes": "job.nodes says it",
    "time": "job.walltime says it",
    "partition": "job.partition says it",
    "account": "job.account says it",
    "qos": "job.qos says it",
    "constraint": "job.constraint says it",
    "mem": "job.memory says it",
    "gpus-per-node": "job.gpus says it",
    "exclusive": "job.exclusive says it",
    "dependency": "a chain sets it",
    "job-name": "simgate finds its jobs again by their name",
    "output": "it goes to slurm.log in the run directory",
    "error": "it goes to slurm.log in the run directory",
    "open-mode": "every job of a run appends to one file",
    "chdir": "a job starts in its run directory",
    "signal": "job.margin says when",
    "requeue": "a run goes on by simgate resume, which waits for nothing",
    "no-requeue": "simgate sets it",
    "array": "one driver writes a run",
    "wrap": "simgate writes the script",
    "test-only": "simgate asks that first",
    "wait": "simgate does not wait for a job",
    "hold": "hold it with scontrol hold",
}
_SHORT: Mapping[str, str] = {
    "-N": "nodes", "-t": "time", "-p": "partition", "-A": "account", "-q": "qos",
    "-C": "constraint", "-d": "dependency", "-J": "job-name", "-o": "output", "-e": "error",
    "-D": "chdir", "-a": "array", "-W": "wait", "-H": "hold",
}  # fmt: skip


def _one_line(text: str) -> str:
    if "\n" in text or "\r" in text or not text.strip():
        raise ValueError(f"found {text[:40]!r}; write one line")
    return text


def _option(word: str) -> str:
    """One word of sbatch that is not ours to say."""
    if not word.startswith("-") or word.strip("-") == "":
        raise ValueError(f"found {word!r}; an option begins with '-', for instance '--licenses=x'")
    if any(one.isspace() for one in word.partition("=")[0]):
        raise ValueError(f"found {word!r}; write an option and its value as '--name=value'")
    name = word.partition("=")[0].removeprefix("--") if word.startswith("--") else word[:2]
    name = _SHORT.get(name, name)
    if name in _OWN:
        raise ValueError(f"found {word!r}; leave it out, {_OWN[name]}")
    return word


Line: TypeAlias = Annotated[Text, AfterValidator(_one_line)]
Option: TypeAlias = Annotated[Line, AfterValidator(_option)]


class ChainConfig(Model):
    """How far `simgate submit --chain` goes."""

    jobs: int = Field(
        default=20, ge=1, le=10_000, description="Jobs of one chain, the first included."
    )
    idle_jobs: int = Field(
        default=2,
        ge=1,
        le=10_000,
        description="The chain ends after so many jobs in a row that ended no task and no round.",
    )


class JobConfig(Model):
    """The Slurm job that `simgate submit` runs the driver in."""

    walltime: Seconds = Field(
        description="How long a job may run; Slurm counts whole minutes. No task starts in it "
        "that could not end there."
    )
    nodes: int = Field(default=1, ge=1, le=100_000, description="Nodes of a job.")
    partition: Line | None = Field(default=None, description="The partition, by default Slurm's.")
    account: Line | None = Field(default=None, description="The account that pays.")
    qos: Line | None = Field(default=None, description="The quality of service.")
    constraint: Line | None = Field(default=None, description="What the nodes must offer.")
    memory: Line | None = Field(
        default=None, description="Memory of each node as Slurm writes it, for instance `16G`."
    )
    gpus: int | None = Field(default=None, ge=1, le=1024, description="GPUs of each node.")
    exclusive: bool = Field(default=True, description="Whether the nodes are for the job alone.")
    options: Items[Option] = Field(
        default=(), description="Further options of sbatch, for instance `--reservation=now`."
    )
    setup: Items[Text] = Field(
        default=(),
        description="Shell lines that run before the driver starts, for instance "
        "`module load gcc || exit`.",
    )
    margin: Seconds = Field(
        default=MARGIN,
        description="What is kept free before the end of a job, to settle what is open and to "
        "leave; no task may be running then.",
    )
    template: Inside | None = Field(
        default=None,
        description="A file in the campaign folder that is used in place of simgate's own "
        "`slurm/campaign.sbatch.j2`.",
    )
    chain: ChainConfig = Field(
        default=ChainConfig.model_construct(), description="When a chain of jobs ends."
    )

    @model_validator(mode="after")
    def _leaves_time(self) -> Self:
        if self.margin >= self.walltime:
            raise ValueError(
                f"a margin of {duration_text(self.margin)} in a walltime of "
                f"{duration_text(self.walltime)} leaves no time to run anything; "
                "give a longer walltime or a shorter margin"
            )
        return self
