"""The tasks of a campaign as configured: a simulation, and verifiers with their policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from campaign.fields import (
    SMALL_IDENTIFIER,
    Arguments,
    Function,
    Inside,
    Items,
    Model,
    Rendered,
    Seconds,
    Text,
    Variable,
)

OnFailure: TypeAlias = Literal["warn_continue", "reject", "fail_run"]


def _as_number(code: object) -> object:
    """Keys are text in YAML and JSON alike; exit codes are numbers."""
    return int(code) if isinstance(code, str) and code.isdecimal() and len(code) < 4 else code


ExitCode: TypeAlias = Annotated[
    int,
    Field(ge=0, le=255),
    BeforeValidator(_as_number, json_schema_input_type=Annotated[str, Field(pattern=r"^\d{1,3}$")]),
]


class Output(Model):
    """Where a task's answer is found; exactly one of the keys is given."""

    json_file: Inside | None = Field(
        default=None,
        alias="json",
        description="A JSON file the task writes in its own directory. A simulation writes a "
        "mapping that holds the objective's name, a verifier one that holds `verdict` "
        "(`pass` or `reject`) and, with `reject`, a `reason`.",
    )
    exit_codes: Mapping[ExitCode, Literal["pass", "reject"]] | None = Field(
        default=None,
        min_length=1,
        description="Verifiers only: exit code to `pass` or `reject`; the reason is the last line "
        "that was printed. A code that is not listed is a failure of the task.",
    )
    reader: Function | None = Field(
        default=None,
        description="A `module:function` called on the worker with the task's directory after "
        "the process ended with 0; it answers the mapping.",
    )


class TaskFields(Model):
    """What a task asks for, whatever it is; the same keys stand in `verifiers[]`."""

    ranks: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description="Processes the task runs as; each takes a worker of its executor.",
    )
    nodes: int = Field(default=1, ge=1, le=100_000, description="Nodes the ranks are spread over.")
    walltime: Seconds = Field(
        description="The longest the task may take; at its end every process of it is killed. "
        "Nodes times walltime is what one try reserves of the budgets."
    )
    retries: int = Field(
        default=0, ge=0, le=10, description="Further tries after a failure listed in retry_on."
    )
    retry_on: Items[Literal["lost", "walltime", "error", "unreadable"]] = Field(
        default=("lost",),
        description="Failures that are tried again: a worker that was lost, the walltime, an "
        "error of the task, an answer that cannot be read. A rejection is no failure.",
    )
    executor: str = Field(
        default="default", description="A label of `executors`: where the task runs."
    )
    env: Mapping[Variable, Text] = Field(
        default={}, description="Environment variables; values may hold `{placeholders}`."
    )
    output: Output | None = Field(
        default=None,
        description="Where the answer is found. A function needs none, since its return value is "
        "the answer; only `reader` may stand here.",
    )


class PythonTask(TaskFields):
    """A Python function, called as `function(candidate, **arguments)` in its own directory."""

    kind: Literal["python"] = Field(description="A Python function, in one process.")
    function: Function = Field(
        description="`module:function`; modules are found in the campaign folder first."
    )
    arguments: Arguments = Field(
        default={}, description="Further keyword arguments of the function; plain data."
    )


class MpiTask(TaskFields):
    """A Python function that every MPI rank calls; rank 0's return value is the answer."""

    kind: Literal["mpi"] = Field(description="A Python function, called by every MPI rank.")
    function: Function = Field(
        description="`module:function`; modules are found in the campaign folder first."
    )
    arguments: Arguments = Field(
        default={}, description="Further keyword arguments of the function; plain data."
    )
    launcher: Items[Text] | None = Field(
        default=None,
        min_length=1,
        description="The words before the program, for instance "
        '`["mpiexec.openmpi", "-n", "{ranks}"]`. By default the `mpiexec -n {ranks}` that '
        "belongs to the installed mpi4py.",
    )


class CommandTask(TaskFields):
    """A program, started as a list of words and never through a shell."""

    kind: Literal["command"] = Field(description="A program with its arguments.")
    command: Items[Text] = Field(
        min_length=1,
        description="The program and its arguments. `{name}` stands for a parameter, and for "
        "`{campaign_dir}`, `{task_dir}`, `{seed}`, `{ranks}` and `{python}`; `{{` and `}}` are "
        "literal braces.",
    )
    launcher: Items[Text] | None = Field(
        default=None,
        min_length=1,
        description="The words before the program, for instance "
        '`["mpiexec.openmpi", "-n", "{ranks}"]`. By default `mpiexec -n {ranks}`, and nothing '
        "for a single rank.",
    )
    files: Mapping[Rendered, Text] = Field(
        default={},
        description="Files made in the task's directory before it starts: name there to template "
        "in the campaign folder, in which `@name@` stands for what `{name}` stands for in "
        "`command`, and `@@` for `@`.",
    )
    output: Output = Field(description="Where the answer is found.")


class VerifierFields(Model):
    """A verifier is a task with a name and a policy; the keys of a task stand beside these."""

    name: str = Field(
        pattern=SMALL_IDENTIFIER,
        description="The name in the ledger and in feedback; different for every verifier.",
    )
    on_rejection: Literal["stop", "continue"] = Field(
        default="stop", description="Whether a rejection skips the verifiers that follow."
    )
    on_failure: OnFailure | None = Field(
        default=None,
        description="What becomes of a candidate the verifier could not tell about; by default "
        "what `policy.verifier_failure` says.",
    )


class Guard(Model):
    """A last condition on a candidate, right before its simulation."""

    condition: Text = Field(
        min_length=1,
        description="A [condition](expressions.md) over the parameters and `expect`, the verdict: "
        "`expect.overall_pass == true`.",
    )
    on_false: Literal["filter"] = Field(
        default="filter", description="The candidate is not simulated; its slot stays empty."
    )


StandIn: TypeAlias = Annotated[PythonTask | MpiTask | CommandTask, Field(discriminator="kind")]


class SimulationFields(Model):
    """The simulation is a task, whose keys stand beside these."""

    guard: Guard | None = Field(
        default=None, description="What a candidate must meet at the last moment. None by default."
    )
    dry_run: StandIn | None = Field(
        default=None,
        description="A cheap task that takes the simulation's place in `simgate run --dry-run`, "
        "on this machine alone. By default a dry run simulates nothing.",
    )


class PythonSimulation(SimulationFields, PythonTask):
    """A simulation that is a Python function; it answers a mapping with the objective."""


class MpiSimulation(SimulationFields, MpiTask):
    """A simulation that every MPI rank calls; rank 0 answers a mapping with the objective."""


class CommandSimulation(SimulationFields, CommandTask):
    """A simulation that is a program."""


class PythonVerifier(PythonTask, VerifierFields):
    """A verifier that is a Python function; it answers a mapping with `verdict`."""


class MpiVerifier(MpiTask, VerifierFields):
    """A verifier that every MPI rank calls; rank 0 answers a mapping with `verdict`."""


class CommandVerifier(CommandTask, VerifierFields):
    """A verifier that is a program."""


TaskConfig: TypeAlias = PythonTask | MpiTask | CommandTask
VerifierConfig: TypeAlias = PythonVerifier | MpiVerifier | CommandVerifier
SimulationConfig: TypeAlias = PythonSimulation | MpiSimulation | CommandSimulation
Simulation: TypeAlias = Annotated[SimulationConfig, Field(discriminator="kind")]
Verifier: TypeAlias = Annotated[VerifierConfig, Field(discriminator="kind")]

__all__ = [
    "CommandSimulation",
    "CommandTask",
    "CommandVerifier",
    "Guard",
    "MpiSimulation",
    "MpiTask",
    "MpiVerifier",
    "OnFailure",
    "Output",
    "PythonSimulation",
    "PythonTask",
    "PythonVerifier",
    "Simulation",
    "SimulationConfig",
    "SimulationFields",
    "TaskConfig",
    "TaskFields",
    "Verifier",
    "VerifierConfig",
    "VerifierFields",
]
