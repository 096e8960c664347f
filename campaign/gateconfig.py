"""The parts of a configuration that say what the gate holds candidates to, and what follows.

The models of an ``expect:`` block describe it for the reference and for editors. What a block
holds is checked by :mod:`checks.expect`, together with the rules, and so is plain data here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, TypeAlias

from pydantic import BeforeValidator, Field, JsonValue

from campaign.fields import Items, Model, Text, only_json
from campaign.taskconfig import OnFailure

AtTheEnd: TypeAlias = Literal["fallback", "return_last", "tombstone", "fail_run"]
Block: TypeAlias = Mapping[str, JsonValue]

ENDINGS: Mapping[object, AtTheEnd] = {
    "fallback": "fallback",
    "return_last": "return_last",
    "fail": "tombstone",
    "raise": "fail_run",
}
"""What the words of ``on_exhausted`` are as a policy."""

DEFAULT_ITERATIONS = 2


class Prompt(Model):
    """A repair in words of your own."""

    prompt: Text = Field(
        description="A file in the campaign folder, or the text itself, with the placeholders "
        "`{original_prompt}`, `{response_json}`, `{failed_lines}` and `{passing_lines}`."
    )


class RuleEntry(Model):
    """One rule of `expectations:`."""

    id: Text | None = Field(
        default=None, description="The rule's name; by default derived from what it asks."
    )
    type: Text = Field(description="A type of rule, see [rules](rules.md).")
    field: Text | Items[Text] | None = Field(
        default=None,
        description="What the rule reads: `name`, `name[*]` for each item, or `[a, b]`. Left out "
        "where the rule stands on a parameter, and for types that read the whole record.",
    )
    params: Mapping[str, JsonValue] | None = Field(
        default=None, description="The arguments of the type, and `row_condition`."
    )
    severity: Literal["error", "warn", "info"] | None = Field(
        default=None,
        description="`error`, the default, rejects a candidate; `warn` and `info` are recorded.",
    )
    hint: Text | None = Field(default=None, description="What would put it right; for the agent.")
    scope: Literal["record", "batch"] | None = Field(
        default=None, description="Whether the rule reads a candidate or the whole proposal."
    )


class Expect(Model):
    """What candidates are held to by rules, and how an agent is asked again.

    Each key may stand in `defaults.expect`, in `expect` and in `agent.expect`; the later wins.
    """

    repair: Literal["none", "retry", "auto"] | Prompt = Field(
        default="auto",
        description="How a rejected candidate is asked for again: `none` records what the rules "
        "say and blocks nothing, `retry` asks once more, `auto` says what was wrong, and a prompt "
        "says it in your words. For an agent that reads no feedback, `auto` means `retry`.",
    )
    structural: Literal["retry", "auto"] | Prompt = Field(
        default="retry",
        description="The same for an answer that holds no candidates.",
    )
    max_iterations: int = Field(
        default=DEFAULT_ITERATIONS,
        ge=1,
        le=10,
        description="Answers per round, the first included: with 1 nothing is asked again.",
    )
    structural_budget: int | None = Field(
        default=None,
        ge=1,
        le=10,
        description="Answers per round that may hold no candidates without using up "
        "`max_iterations`. By default they do use it up.",
    )
    on_exhausted: Literal["fallback", "return_last", "fail", "raise"] = Field(
        default="fallback",
        description="Short for both `policy.structural_failure` and `policy.semantic_rejection`, "
        "where `fail` means `tombstone` and `raise` means `fail_run`.",
    )
    judge_budget: int | None = Field(
        default=None, ge=1, description="Calls that judged rules may make. No limit by default."
    )
    expectations: Items[RuleEntry] | None = Field(
        default=None,
        description="The rules. Without them and without `suite`, those on the parameters and "
        "under the file's own `expectations` hold.",
    )
    suite: Text | None = Field(
        default=None,
        description="The name of a file of rules: `rules/NAME.yaml` in the campaign folder.",
    )


def _block(value: object) -> object:
    return only_json({} if value is None else value)


ExpectBlock: TypeAlias = Annotated[
    Block, BeforeValidator(_block, json_schema_input_type=Expect | None)
]


class Defaults(Model):
    """What other parts of the file begin from, key by key."""

    expect: ExpectBlock = Field(default={}, description="Keys of `expect` that hold by default.")


class Policy(Model):
    """What happens where answers end, or a check or verifier gives none.

    Each key may stand in `policy` and in `agent.policy`, which wins.
    """

    structural_failure: AtTheEnd | None = Field(
        default=None,
        description="For slots whose last answer could not be read as a candidate. By default "
        "what `expect.on_exhausted` says, else `fallback`.",
    )
    semantic_rejection: AtTheEnd | None = Field(
        default=None,
        description="For slots whose last candidate was rejected: the surrogate fills the slot, "
        "the last candidate is run all the same, the slot stays empty, or the run fails. By "
        "default what `expect.on_exhausted` says, else `fallback`.",
    )
    verifier_failure: OnFailure | None = Field(
        default=None,
        description="For a candidate that a verifier could not tell about: it goes on marked as "
        "not fully verified, it counts as rejected, or the run fails. By default `warn_continue`.",
    )
    check_error: OnFailure | None = Field(
        default=None,
        description="For a candidate that a check of your own could not tell about, because the "
        "check raised. By default `reject`: the slot is filled otherwise, and the agent is not "
        "asked to repair what is no fault of its own.",
    )


class _Agent(Protocol):
    @property
    def expect(self) -> Block: ...
    @property
    def policy(self) -> Policy: ...


class _Gated(Protocol):
    @property
    def defaults(self) -> Defaults: ...
    @property
    def expect(self) -> Block: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def agent(self) -> _Agent: ...


@dataclass(frozen=True, slots=True)
class Policies:
    """What holds, after everything that may say so was asked."""

    structural_failure: AtTheEnd = "fallback"
    semantic_rejection: AtTheEnd = "fallback"
    verifier_failure: OnFailure = "warn_continue"
    check_error: OnFailure = "reject"


def merged(config: _Gated) -> Block:
    """The ``expect`` block that holds, key by key."""
    return {**config.defaults.expect, **config.expect, **config.agent.expect}


def observes(config: _Gated) -> bool:
    """Whether the rules only watch: what they say is recorded and blocks nothing."""
    return merged(config).get("repair") == "none"


def iterations(config: _Gated) -> int:
    """Generations a round may spend; one where nothing is asked again."""
    found = merged(config).get("max_iterations", DEFAULT_ITERATIONS)
    return found if isinstance(found, int) and not observes(config) else 1


def structural_budget(config: _Gated) -> int | None:
    """Answers of a round without candidates that cost no generation; None where they all do."""
    found = merged(config).get("structural_budget")
    return found if isinstance(found, int) and not observes(config) else None


def most_generations(config: _Gated) -> int:
    """Answers a round may have at the very most."""
    return iterations(config) + (structural_budget(config) or 0)


def policies(config: _Gated) -> Policies:
    """The policy that holds, key by key."""
    ending = ENDINGS.get(merged(config).get("on_exhausted"))
    found: dict[str, Any] = {"structural_failure": ending, "semantic_rejection": ending}
    for policy in (config.policy, config.agent.policy):
        found |= policy.model_dump(exclude_none=True)
    return Policies(**{name: value for name, value in found.items() if value is not None})
