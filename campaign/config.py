"""The configuration of a campaign, typed once; the reference and the JSON Schema come from here.

Whole numbers, numbers, text and booleans are never converted into each other. What concerns more
than one field is in :mod:`campaign.crossing`, and holds for every ``CampaignConfig``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationError,
    WrapSerializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from campaign.agentconfig import (
    Agent,
    CommandAgent,
    JudgeConfig,
    OpenAIAgent,
    PythonAgent,
    ReplayAgent,
    SurrogateAgent,
)
from campaign.crossing import crossing
from campaign.fields import (
    IDENTIFIER,
    LARGEST,
    NAME,
    Identifier,
    Items,
    Label,
    Model,
    Seconds,
    duration_text,
)
from campaign.gateconfig import Defaults, Expect, ExpectBlock, Policy
from campaign.jobconfig import JobConfig
from campaign.space import Parameter
from campaign.taskconfig import (
    CommandTask,
    CommandVerifier,
    MpiTask,
    MpiVerifier,
    Output,
    PythonTask,
    PythonVerifier,
    Simulation,
    TaskConfig,
    Verifier,
    VerifierConfig,
)
from executors.config import ExecutorConfig, LocalConfig
from executors.units import parse_duration

__all__ = [
    "Agent",
    "Budgets",
    "CampaignConfig",
    "Cap",
    "CommandAgent",
    "CommandTask",
    "CommandVerifier",
    "Expect",
    "MpiTask",
    "MpiVerifier",
    "Objective",
    "OpenAIAgent",
    "Output",
    "Policy",
    "PythonAgent",
    "PythonTask",
    "PythonVerifier",
    "ReplayAgent",
    "SurrogateAgent",
    "TaskConfig",
    "VerifierConfig",
]


class Objective(Model):
    """What the campaign looks for: a `target` to hit, or a `direction` to go."""

    name: str = Field(
        pattern=IDENTIFIER, description="The entry of the simulation's answer that counts."
    )
    target: float | None = Field(
        default=None, description="The value to hit. Give either target or direction."
    )
    tolerance: float | None = Field(
        default=None,
        gt=0,
        description="How far from the target is near enough; needed with target.",
    )
    direction: Literal["minimize", "maximize"] | None = Field(
        default=None, description="Where better values lie. Give either target or direction."
    )
    stop_at: float | None = Field(
        default=None,
        description="A value good enough to end the campaign before its rounds do; only with "
        "direction.",
    )


class Cap(Model):
    """A limit on what may be spent. A number alone is short for `{limit: number}`."""

    limit: float = Field(gt=0, description="The most that may be spent; nothing starts above it.")
    per: Literal["campaign", "job"] = Field(
        default="campaign",
        description="Whether the cap holds over the whole campaign or anew for every job, which is "
        "one lifetime of the driver.",
    )


class HoursCap(Cap):
    """A limit on node-hours. A number alone is short for `{limit: number}`."""

    count: Literal["tasks", "allocation"] = Field(
        default="tasks",
        description="What is counted: the time of tasks, or that of the nodes Slurm gave, whether "
        "a task ran on them or not. `allocation` is for `node_hours` alone, with executors that "
        "work in jobs of Slurm's; what a job may take is reserved before it is submitted.",
    )


class CountCap(Cap):
    """A limit on a count. A whole number alone is short for `{limit: number}`."""

    limit: int = Field(
        gt=0, le=LARGEST, description="The most that may be spent; nothing starts above it."
    )


def _limit_alone(cap: object) -> object:
    number = isinstance(cap, int | float) and not isinstance(cap, bool)
    return {"limit": cap} if number else cap


Hours: TypeAlias = Annotated[
    HoursCap,
    BeforeValidator(_limit_alone, json_schema_input_type=Annotated[float, Field(gt=0)] | HoursCap),
]
Count: TypeAlias = Annotated[
    CountCap,
    BeforeValidator(_limit_alone, json_schema_input_type=Annotated[int, Field(gt=0)] | CountCap),
]


class Budgets(Model):
    """What a campaign may spend. A cap is reserved before the spend and settled after it."""

    node_hours: Hours | None = Field(
        default=None,
        description="Nodes times hours of all tasks, or with `count: allocation` of the nodes "
        "Slurm gave. No cap by default.",
    )
    verifier_node_hours: Hours | None = Field(
        default=None, description="Nodes times hours of the verifiers. No cap by default."
    )
    generations: Count | None = Field(
        default=None, description="Answers asked of the agent. No cap by default."
    )
    tokens: Count | None = Field(
        default=None,
        description="Tokens of the agent and of the judge, those they read and those they write. "
        "No cap by default.",
    )
    judge_calls: Count | None = Field(
        default=None, description="Votes asked of the judge. No cap by default."
    )

    def cap(self, name: str) -> Cap | None:
        """The cap of a budget by its name; ``AttributeError`` for a name that is none."""
        cap: Cap | None = getattr(self, name)
        return cap


def _whole_version(value: object) -> object:
    if isinstance(value, bool | float):
        raise ValueError(f"found {value!r}; write 1")
    return value


_DURATION = BeforeValidator(parse_duration)


def _reloadable(
    executor: ExecutorConfig, handler: SerializerFunctionWrapHandler
) -> dict[str, JsonValue]:
    """Durations as text again: a number alone would be refused when it is read back."""
    return _durations(executor, handler(executor))


def _durations(model: BaseModel, dumped: dict[str, Any]) -> dict[str, JsonValue]:
    for name, field in type(model).model_fields.items():
        value = dumped[name]
        if isinstance(value, int | float) and _DURATION in field.metadata:
            dumped[name] = duration_text(value)
        elif isinstance(inner := getattr(model, name), BaseModel):
            dumped[name] = _durations(inner, value)
    return dumped


Executor: TypeAlias = Annotated[ExecutorConfig, WrapSerializer(_reloadable, when_used="json")]


class CampaignConfig(Model):
    """One campaign: what is searched, who proposes, what gates, what is run, at what cost."""

    version: Annotated[Literal[1], BeforeValidator(_whole_version)] = Field(
        description="The version of this format."
    )
    name: str = Field(
        pattern=NAME, description="The campaign's name, in run directories and reports."
    )
    description: str = Field(default="", description="What the campaign asks; shown to the agent.")
    parameters: Mapping[Identifier, Parameter] = Field(
        min_length=1,
        max_length=20,
        description="What a candidate is made of, by name. Bounds and types become checks.",
    )
    objective: Objective = Field(description="What the campaign looks for.")
    rounds: int = Field(
        ge=1, le=1_000_000, description="Rounds of propose, gate, simulate and observe, at most."
    )
    batch_size: int = Field(ge=1, le=10_000, description="Candidates in each round.")
    seed: int = Field(
        default=0,
        ge=0,
        le=LARGEST,
        description="Makes the surrogate and every task's seed reproducible.",
    )
    agent: Agent = Field(
        description="Who proposes. `agent: surrogate` is short for `{kind: surrogate}`."
    )
    defaults: Defaults = Field(
        default=Defaults.model_construct(),
        description="What holds where nothing nearer says otherwise.",
    )
    expect: ExpectBlock = Field(
        default={}, description="What candidates are held to, and how often the agent may answer."
    )
    expectations: Items[JsonValue] | None = Field(
        default=None,
        description="Rules about no single parameter; they and those on the parameters hold where "
        "`expect` names none.",
    )
    judge: JudgeConfig | None = Field(
        default=None,
        description="The model that judged rules ask. By default that of an agent of kind openai.",
    )
    verifiers: Items[Verifier] = Field(
        default=(), description="Tasks a candidate must pass before it is simulated, in this order."
    )
    simulation: Simulation = Field(description="The task that gives a candidate its value.")
    budgets: Budgets = Field(default=Budgets(), description="What the campaign may spend.")
    executors: Mapping[Label, Executor] = Field(
        default={"default": LocalConfig(kind="local")},
        min_length=1,
        description="Where tasks run, by label; a task without a label runs on `default`.",
    )
    job: JobConfig | None = Field(
        default=None, description="The Slurm job that `simgate submit` runs the campaign in."
    )
    policy: Policy = Field(default=Policy(), description="What happens where answers end or fail.")
    stop_grace: Seconds = Field(
        default=30.0,
        description="How long a run that is told to stop waits for tasks that may yet end.",
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        found = crossing(self.model_dump())
        if found:
            raise ValidationError.from_exception_data(
                "CampaignConfig",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("crossing", "{text}", {"text": text}),
                        loc=loc,
                        input=None,
                    )
                    for loc, text in found
                ],
            )
        return self
