"""The names in a run's telemetry, and what each means: they stand here and nowhere else.

Those that begin with ``gen_ai.`` are OpenTelemetry's conventions for generative AI, which may
still change; what has no convention begins with ``simgate.``. The gate itself, which is
:func:`checks.accept`, has the names of its own protocol, ``flowgentic.accept.*``.
"""

from __future__ import annotations

from typing import NamedTuple

SCOPE = "simgate"
"""The instrumentation scope, and the service."""

CAMPAIGN, ROUND, SIMULATE, VERIFY, WORKER = "campaign", "round", "simulate", "verify", "worker"
CHAT, INVOKE_AGENT = "chat", "invoke_agent"
EVALUATION = "gen_ai.evaluation.result"
DETAILS = "gen_ai.client.inference.operation.details"

ERROR_TYPE = "error.type"
HOST, PID = "host.name", "process.pid"
SERVER, PORT = "server.address", "server.port"

NAME, MODE, JOB, OUTCOME, REASON = (
    f"simgate.{name}" for name in ("campaign", "mode", "job", "job.outcome", "job.reason")
)
ROUND_NUMBER, SLOT, CANDIDATE, DISPOSITION, STAGE = (
    f"simgate.{name}" for name in ("round", "slot", "candidate", "disposition", "stage")
)
TASK, TASK_KIND, TRY, STATUS, NODES, RANKS, NODE_HOURS, EXIT_CODE, ADOPTED = (
    f"simgate.task.{name}"
    for name in (
        *("name", "kind", "try", "status", "nodes", "ranks"),
        *("node_hours", "exit_code", "adopted"),
    )
)
SPENT_BY = "simgate.spent_by"

OPERATION, PROVIDER, AGENT = "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.agent.name"
MODEL, TEMPERATURE, TOP_P, SEED, MAX_TOKENS = (
    f"gen_ai.request.{name}" for name in ("model", "temperature", "top_p", "seed", "max_tokens")
)
OUTPUT_TYPE, RESPONSE_ID, FINISH = (
    "gen_ai.output.type",
    "gen_ai.response.id",
    "gen_ai.response.finish_reasons",
)
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
TOKEN_TYPE = "gen_ai.token.type"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
EVALUATED, LABEL, EXPLANATION = (
    f"gen_ai.evaluation.{name}" for name in ("name", "score.label", "explanation")
)

SPANS = {
    f"{CAMPAIGN} NAME": "One job of the campaign, the root of its trace. That of a further job "
    "links to the job before it.",
    f"{ROUND} N": "One round; of one that several jobs worked on, what this job did.",
    "accept round N": "The gate of a round, from the first ask to its last disposition.",
    "accept.attempt round N": "One generation, with everything that it led to.",
    f"{CHAT} MODEL": "One call of a model's server, by the agent or by a judged rule.",
    f"{INVOKE_AGENT} KIND": "One ask of any other agent, or a draw of the surrogate.",
    f"{VERIFY} TASK": "One try of a verifier, from its start in the ledger to its end.",
    SIMULATE: "One try of a simulation. It outlives the attempt it was started in.",
    f"{WORKER} TASK": "What a worker did of it, by the worker's own clock. In the trace of the job "
    "that adopted it, it links to the try it was started by.",
}

ATTRIBUTES = {
    NAME: "The campaign's name.",
    MODE: "`campaign`, `surrogate_only` or `dry_run`.",
    JOB: "The number of the job in its run, from 1.",
    OUTCOME: "How the job ended: `done`, `failed` or `stopped`.",
    REASON: "Why, in one line.",
    ROUND_NUMBER: "The number of the round, from 1.",
    SLOT: "The place in the batch, from 0.",
    CANDIDATE: "The candidate's content hash.",
    DISPOSITION: "How a slot ended.",
    STAGE: "Where an answer that held no candidates was rejected.",
    TASK: "A verifier's name, or `simulation`.",
    TASK_KIND: "`verifier` or `simulation`.",
    TRY: "The number of the try, from 1.",
    STATUS: "How the try ended: `done`, `error`, `walltime`, `lost`, `unreadable` or `cancelled`.",
    NODES: "The nodes a try has.",
    RANKS: "The ranks it has.",
    NODE_HOURS: "What it is charged.",
    EXIT_CODE: "The exit code of a command.",
    ADOPTED: "Whether an earlier job started it.",
    SPENT_BY: "`agent` or `judge`.",
    HOST: "The host that a worker, or the driver, ran on.",
    PID: "The process that watched over the try on that host, or the driver's.",
    SERVER: "The host of a model's server, or the path of its socket.",
    PORT: "Its port.",
    ERROR_TYPE: "Why a span failed: an HTTP status, a try's status, or the class of an exception.",
    OPERATION: "`chat` or `invoke_agent`.",
    PROVIDER: "`openai`: the format that is spoken, whoever serves.",
    AGENT: "The kind of the agent.",
    MODEL: "The model asked for.",
    TEMPERATURE: "As the request has it.",
    TOP_P: "As the request has it.",
    SEED: "As the request has it.",
    MAX_TOKENS: "As the request has it.",
    OUTPUT_TYPE: "`json` where the request demanded it.",
    RESPONSE_ID: "The server's id of its answer.",
    FINISH: "Why the answer ended.",
    INPUT_TOKENS: "As the server counted them.",
    OUTPUT_TOKENS: "As the server counted them.",
    TOKEN_TYPE: "`input` or `output`.",
    INPUT_MESSAGES: "What the model was told. Content.",
    OUTPUT_MESSAGES: "What it said. Content.",
    EVALUATED: "The check or verifier that spoke.",
    LABEL: "`pass` or `fail`; none where it could not tell.",
    EXPLANATION: "The reason of a rejection, as in the ledger.",
}

EVENTS = {
    EVALUATION: "What a check of the gate said of a batch, or a verifier of a candidate.",
    DETAILS: "A call of a model with its content; only where the content switch wants events.",
}


class Metric(NamedTuple):
    """An instrument: a counter, or a histogram where it has ``buckets`` (their upper bounds)."""

    name: str
    unit: str
    description: str
    buckets: tuple[float, ...] = ()


_SECONDS = (0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)
_CALL = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4.0**power for power in range(14))

CANDIDATES = Metric("simgate.candidates", "{candidate}", "Slots that ended, by disposition.")
HOURS = Metric("simgate.node_hours", "{node}.h", "What tries were charged, by kind of task.")
ALLOCATED = Metric("simgate.allocated.node_hours", "{node}.h", "What allocations were charged.")
GENERATIONS = Metric("simgate.generations", "{generation}", "Answers to asks, by stage.")
TOKENS = Metric("simgate.tokens", "{token}", "Tokens charged, failed calls included.")
TASK_TIME = Metric("simgate.task.duration", "s", "How long tries ran.", _SECONDS)
QUEUE_TIME = Metric(
    "simgate.task.queue.duration", "s", "How long tries waited for a worker.", _SECONDS
)
GATE_TIME = Metric(
    "simgate.gate.duration", "s", "From a round's start to its last disposition.", _SECONDS
)
CALL_TIME = Metric("gen_ai.client.operation.duration", "s", "How long calls took.", _CALL)
TOKEN_USAGE = Metric(
    "gen_ai.client.token.usage", "{token}", "Tokens by call, as the server counted.", _TOKENS
)
METRICS = (
    *(CANDIDATES, HOURS, ALLOCATED, GENERATIONS, TOKENS),
    *(TASK_TIME, QUEUE_TIME, GATE_TIME, CALL_TIME, TOKEN_USAGE),
)
