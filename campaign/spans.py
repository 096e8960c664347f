"""The spans of a campaign, by the OpenTelemetry API alone: without an SDK nothing happens here.

The gate's own come from :func:`checks.accept`, those of model calls from
:mod:`campaign.agents.chatspan`. A worker knows nothing of all this: it is handed the try's
``traceparent``, and its span is made of what its result says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaign import conventions as names
from campaign.contract import rejects
from campaign.events import TaskEnded, TaskStarted
from campaign.model import SIMULATION, JobOutcome
from checks.tracing import failed, span, tracer
from executors.base import TaskResult, TaskStatus
from executors.wire import TRACEPARENT

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span

_MODELS = "openai"  # the kind of agent whose calls have spans of their own


def traceparent() -> str:
    """The current span as the W3C's Trace Context writes it; ``""`` where there is none."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


@dataclass(frozen=True, slots=True)
class JobSpan:
    """The root of a job."""

    span: Span

    def ended(self, outcome: JobOutcome, reason: str) -> None:
        """Say how the job ended."""
        self.span.set_attributes({names.OUTCOME: outcome.value, names.REASON: reason})
        if outcome is JobOutcome.FAILED:
            failed(self.span, outcome.value)


@contextmanager
def of_job(name: str, mode: str, number: int, previous: str) -> Iterator[JobSpan]:
    """The root of a job; ``previous`` is the traceparent of the job before it."""
    about: dict[str, str | bool | int | float] = {
        names.NAME: name,
        names.MODE: mode,
        names.JOB: number,
    }
    with span(names.SCOPE, f"{names.CAMPAIGN} {name}", about, links=_links(previous)) as root:
        yield JobSpan(root)


def of_round(number: int) -> AbstractContextManager[object]:
    """A round, as far as this job gets with it."""
    return span(names.SCOPE, f"{names.ROUND} {number}", {names.ROUND_NUMBER: number})


def of_ask(kind: str) -> AbstractContextManager[object]:
    """One ask of an agent of that kind; a model's calls speak for themselves."""
    if kind == _MODELS:
        return nullcontext()
    about = {names.OPERATION: names.INVOKE_AGENT, names.AGENT: kind}
    return span(names.SCOPE, f"{names.INVOKE_AGENT} {kind}", about)


@dataclass(frozen=True, slots=True)
class TrySpan:
    """A try of a task on ``ranks`` ranks; ``here`` is its own traceparent."""

    span: Span
    started: TaskStarted
    ranks: int
    here: str

    @property
    def environment(self) -> dict[str, str]:
        """What lets the task's own programs join the trace."""
        return {TRACEPARENT: self.here} if self.here else {}

    def ended(self, result: TaskResult, ended: TaskEnded) -> None:
        """Say how the try ended, and what its worker and, of a verifier, its verdict was."""
        if not self.span.is_recording():
            return
        self.span.set_attributes({names.STATUS: ended.status, names.NODE_HOURS: ended.spent})
        if ended.exit_code is not None:
            self.span.set_attribute(names.EXIT_CODE, ended.exit_code)
        done = ended.status == TaskStatus.DONE
        if not done:
            failed(self.span, ended.status)
        self._worker(result, done)
        if self.started.task != SIMULATION:
            _verdict(ended)

    def _worker(self, result: TaskResult, done: bool) -> None:
        """The worker's span, a child of this one; none where no worker said when it began."""
        if not result.began:
            return
        worker = tracer(names.SCOPE).start_span(
            f"{names.WORKER} {self.started.task}",
            attributes={names.HOST: result.host, names.PID: result.pid, names.RANKS: self.ranks},
            # Of a try that an earlier job began, what began it is in that job's trace.
            links=_links(result.traceparent) if result.traceparent != self.here else (),
            start_time=round(result.began * 1e9),
        )
        if not done:
            failed(worker, result.status.value)
        worker.end(round((result.began + result.seconds) * 1e9))


@contextmanager
def of_try(started: TaskStarted, ranks: int, *, adopted: bool = False) -> Iterator[TrySpan]:
    """A try of a task, from its start in the ledger to its end there."""
    simulation = started.task == SIMULATION
    about: dict[str, str | bool | int | float] = {
        names.TASK: started.task,
        names.TASK_KIND: kind_of(started.task),
        names.CANDIDATE: started.candidate,
        names.TRY: started.attempt,
        names.ROUND_NUMBER: started.round,
        names.SLOT: started.slot,
        names.NODES: started.nodes,
        names.RANKS: ranks,
    }
    if adopted:
        about[names.ADOPTED] = True
    name = names.SIMULATE if simulation else f"{names.VERIFY} {started.task}"
    with span(names.SCOPE, name, about) as opened:
        yield TrySpan(opened, started, ranks, traceparent())


def kind_of(task: str) -> str:
    """The kind of a task: ``simulation`` or ``verifier``."""
    return SIMULATION if task == SIMULATION else "verifier"


def emit(event: str, attributes: dict[str, object]) -> None:
    """An event, in the current span."""
    from opentelemetry._logs import LogRecord, SeverityNumber, get_logger

    get_logger(names.SCOPE).emit(
        LogRecord(
            timestamp=time.time_ns(),  # the SDK sets none of its own
            severity_number=SeverityNumber.INFO,
            event_name=event,
            attributes=attributes,  # type: ignore[arg-type]  # any JSON, as the SDK has it
        )
    )


def _verdict(ended: TaskEnded) -> None:
    about: dict[str, object] = {names.EVALUATED: ended.task, names.CANDIDATE: ended.candidate}
    if ended.status != TaskStatus.DONE:
        emit(names.EVALUATION, about | {names.ERROR_TYPE: ended.status})
    elif rejects(ended):
        reason = str(ended.value.get("reason", ""))
        emit(names.EVALUATION, about | {names.LABEL: "fail", names.EXPLANATION: reason})
    else:
        emit(names.EVALUATION, about | {names.LABEL: "pass"})


def _links(parent: str) -> list[Link]:
    """A link to the span a traceparent names; none where it names none."""
    from opentelemetry import trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({"traceparent": parent})
    found = trace.get_current_span(context).get_span_context()
    return [trace.Link(found)] if found.is_valid else []
