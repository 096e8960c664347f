"""Who proposes: the configuration of every kind of agent, and of the endpoint of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from campaign.fields import Arguments, Function, Items, Model, Seconds, Text, Variable
from campaign.gateconfig import ExpectBlock, Policy


class AgentFields(Model):
    """What may be said at any agent; the keys of its kind stand beside these."""

    expect: ExpectBlock = Field(
        default={}, description="Keys of `expect` that hold for this agent, before all others."
    )
    policy: Policy = Field(
        default=Policy(), description="Keys of `policy` that hold for this agent."
    )


class SurrogateAgent(AgentFields):
    """The built-in surrogate proposes: deterministic, and no model is contacted."""

    kind: Literal["surrogate"] = Field(description="The built-in surrogate proposes.")


class ReplayAgent(AgentFields):
    """Recorded answers are proposed again, in their order."""

    kind: Literal["replay"] = Field(description="Recorded answers are proposed again.")
    file: Text = Field(
        min_length=1, description="The file with the answers, found from the campaign folder."
    )


class Calls(Model):
    """How something outside is called that may give no answer."""

    timeout: Seconds = Field(
        default=300.0, description="How long one call may take, from its start to its last byte."
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=100,
        description="Further calls for one ask where the first gave no answer: a time-out, a lost "
        "connection, a server that is busy. They never cost a generation.",
    )
    backoff: Seconds = Field(
        default=1.0,
        description="The wait before the second call; it doubles with every further one, to at "
        "most a minute. A server that names a time itself is obeyed.",
    )
    max_bytes: int = Field(
        default=4 * 2**20,
        ge=1024,
        le=2**30,
        description="The most bytes one answer may have; a longer one is no answer.",
    )


class Asked(AgentFields, Calls):
    """An agent that is told what the campaign looks for and what was found."""

    history: Literal["none", "best", "recent"] = Field(
        default="best",
        description="Which observations the agent is shown. Small models copy what they are "
        "shown: give them `none`.",
    )
    shown: int = Field(
        default=10, ge=1, le=1000, description="The most observations the agent is shown."
    )
    suggest: bool = Field(
        default=True,
        description="Whether the agent is told what the surrogate would try. A suggestion that it "
        "only copies is no new candidate.",
    )


class Key(Model):
    """Where the key of a server is found; give one of the two."""

    env: Variable | None = Field(
        default=None, description="The environment variable that holds it."
    )
    file: Text | None = Field(
        default=None, description="The file that holds it, found from the campaign folder."
    )


class Endpoint(Model):
    """A server that speaks the format of OpenAI's chat completions."""

    model: Text = Field(min_length=1, description="The model's name, as the server knows it.")
    url: Text | None = Field(
        default=None,
        description="The server, to where `/chat/completions` is appended: "
        "`http://127.0.0.1:8080/v1`. Give either url or socket.",
    )
    socket: Text | None = Field(
        default=None,
        description="The Unix socket the server listens on, found from the campaign folder; "
        "`{run_dir}` is the run directory. Give either url or socket.",
    )
    key: Key | None = Field(default=None, description="Where the server's key is found.")
    loading: Seconds = Field(
        default=600.0,
        description="How long a server that says it is still loading is waited for.",
    )
    temperature: float | None = Field(
        default=None, ge=0, le=10, description="By default what the server has."
    )
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="By default what the server has."
    )
    max_tokens: int = Field(
        default=2048,
        ge=1,
        le=1_000_000,
        description="The most tokens of one answer. An answer that was cut off there is asked for "
        "again with twice as many.",
    )
    body: Arguments = Field(
        default={},
        description="Further fields of the request, for instance `{cache_prompt: false}`.",
    )


class Serve(Model):
    """A model server that is started with a job of the run and stopped with it."""

    command: Items[Text] = Field(
        min_length=1,
        description="The program and its arguments; `{campaign_dir}`, `{run_dir}` and `{python}` "
        "are replaced. It runs where the driver does.",
    )
    env: Mapping[Variable, Text] = Field(
        default={}, description="Further environment variables of the server."
    )
    ready: Text = Field(
        default="/health",
        pattern=r"^/",
        description="The path that answers 200 once the server can be asked.",
    )
    timeout: Seconds = Field(default=600.0, description="How long its start may take.")
    restarts: int = Field(
        default=3,
        ge=0,
        le=100,
        description="How often a job starts it again when it ends by itself.",
    )


class OpenAIAgent(Asked, Endpoint):
    """A language model behind a server that speaks OpenAI's format: vLLM, llama.cpp, Ollama."""

    kind: Literal["openai"] = Field(description="A language model behind a server is asked.")
    structured: Literal["auto", "json_schema", "json_object", "none"] = Field(
        default="auto",
        description="How the server is asked for JSON; `auto` takes the first of these that the "
        "server accepts. Nothing is believed because a schema says it.",
    )
    prompt: Text | None = Field(
        default=None,
        description="A file in the campaign folder that replaces the words the model is asked in, "
        "see [the agent's prompt](../how-to/agents.md#a-prompt-of-your-own).",
    )
    serve: Serve | None = Field(
        default=None, description="A server to start with the run. By default it runs already."
    )


class OwnAgent(Asked):
    """An agent of the user's own making, of which only its answers are known."""

    tokens_per_call: int | None = Field(
        default=None,
        ge=0,
        le=1_000_000_000,
        description="The most tokens one call can use, its request included; 0 where no model is "
        "asked. It is reserved before each call, so `budgets.tokens` needs it.",
    )


class CommandAgent(OwnAgent):
    """A program is asked: JSON on its standard input, JSON on its standard output."""

    kind: Literal["command"] = Field(description="A program is asked.")
    command: Items[Text] = Field(
        min_length=1,
        description="The program and its arguments, never a shell line; `{campaign_dir}`, "
        "`{run_dir}` and `{python}` are replaced.",
    )
    mode: Literal["call", "lines"] = Field(
        default="call",
        description="`call` starts it once for each ask; `lines` once for a job, and writes and "
        "reads one line for each ask.",
    )
    env: Mapping[Variable, Text] = Field(default={}, description="Further environment variables.")


class PythonAgent(OwnAgent):
    """A Python function is asked, in the driver's own process."""

    kind: Literal["python"] = Field(description="A Python function is asked.")
    function: Function = Field(
        description="`module:function`, found from the campaign folder; it may be async."
    )


class JudgeConfig(Endpoint, Calls):
    """The model that judged rules (`type: llm_judge`) ask."""

    temperature: float | None = Field(
        default=0.0, ge=0, le=10, description="0 by default, so that it answers alike."
    )
    max_tokens: int = Field(
        default=256, ge=1, le=1_000_000, description="The most tokens of one vote."
    )


def _by_kind(agent: object) -> object:
    return {"kind": agent} if isinstance(agent, str) else agent


_AnyAgent: TypeAlias = Annotated[
    SurrogateAgent | ReplayAgent | OpenAIAgent | CommandAgent | PythonAgent,
    Field(discriminator="kind"),
]
Agent: TypeAlias = Annotated[
    _AnyAgent, BeforeValidator(_by_kind, json_schema_input_type=Literal["surrogate"] | _AnyAgent)
]
AskedAgent: TypeAlias = OpenAIAgent | CommandAgent | PythonAgent

OURS: tuple[str, ...] = (
    "model", "messages", "temperature", "top_p", "max_tokens", "seed", "response_format", "n",
    "stream", "max_completion_tokens", "n_predict", "best_of",
)  # fmt: skip
"""Fields of a request that are not to be given under ``body``."""
