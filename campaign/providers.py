"""What OpenTelemetry has once in a process, and how a job uses it for as long as it lasts.

A provider takes exporters and gives none back, and the API takes one provider. So each gets one
relay for good, and jobs come and go behind it.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger_provider, set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from campaign.conventions import HOST, PID, SCOPE

_P = TypeVar("_P", TracerProvider, MeterProvider, LoggerProvider)


class Spans(SpanProcessor):
    """Hands spans on to the processors of the jobs there are."""

    def __init__(self) -> None:
        self.ways: tuple[SpanProcessor, ...] = ()

    def on_end(self, span: ReadableSpan) -> None:
        for way in self.ways:
            way.on_end(span)


class Logs(LogRecordProcessor):
    """Hands log records on in the same way."""

    def __init__(self) -> None:
        self.ways: tuple[LogRecordProcessor, ...] = ()

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        for way in self.ways:
            way.on_emit(log_record)

    def shutdown(self) -> None:
        """Each job ends its own."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        return True


@dataclass(frozen=True, slots=True)
class Providers:
    """The relays, and the provider of metrics, which needs none."""

    spans: Spans
    logs: Logs
    meters: MeterProvider


@functools.cache
def providers() -> Providers:
    """Those of this process: what somebody has set up before us, else ours.

    Raises ``RuntimeError`` where it is not the SDK's: what is no SDK takes no exporters.
    """
    about = _resource()
    tracing = _set(
        lambda: TracerProvider(resource=about, shutdown_on_exit=False),
        trace.set_tracer_provider,
        trace.get_tracer_provider,
        TracerProvider,
    )
    meters = _set(
        # An event of the ledger is published in the context of whoever was first to wait for it,
        # so the span that an exemplar named would be anybody's.
        lambda: MeterProvider(
            resource=about, shutdown_on_exit=False, exemplar_filter=AlwaysOffExemplarFilter()
        ),
        metrics.set_meter_provider,
        metrics.get_meter_provider,
        MeterProvider,
    )
    logs = _set(
        lambda: LoggerProvider(resource=about, shutdown_on_exit=False),
        set_logger_provider,
        get_logger_provider,
        LoggerProvider,
    )
    found = Providers(Spans(), Logs(), meters)
    tracing.add_span_processor(found.spans)
    logs.add_log_record_processor(found.logs)
    return found


def _set(
    make: Callable[[], _P],
    put: Callable[[_P], None],
    get: Callable[[], object],
    kind: type[_P],
) -> _P:
    if not isinstance(get(), kind):
        put(make())  # refused, with a line in the SDK's log, where there is one of another kind
    found = get()
    if not isinstance(found, kind):
        raise RuntimeError(f"this process has a {type(found).__name__} that is not the SDK's")
    return found


def _resource() -> Resource:
    about: dict[str, str | int] = {
        "service.version": version("simgate"),
        HOST: socket.gethostname(),
        PID: os.getpid(),
    }
    environment = os.environ.get
    named = "service.name=" in environment("OTEL_RESOURCE_ATTRIBUTES", "")
    if not (named or environment("OTEL_SERVICE_NAME")):
        about["service.name"] = SCOPE
    return Resource.create(about)
