"""Where a job's telemetry goes, by the exporters of the OpenTelemetry SDK.

``RUN/telemetry/{traces,metrics,logs}-JOB-PID.jsonl`` hold OTLP as JSON, one export a line. Where
the standard environment variables name an endpoint, the same goes there by HTTP, if the extra
``otlp`` is installed. This module and :mod:`campaign.providers` are the only ones to know the SDK.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, cast

from opentelemetry.exporter.otlp.json.file import FileMetricExporter, FileSpanExporter
from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from campaign.linefile import LineFile
from campaign.providers import Providers, providers
from executors.background import in_thread

CLOSING = 5.0
"""Seconds the last telemetry of a job may take to get out; a slow collector's is lost then."""
_QUEUE = 2**14  # on their way out; of the SDK's own 2**11 a large batch would lose some
_HTTP = "http/protobuf"
Exporter: TypeAlias = SpanExporter | MetricExporter | LogRecordExporter


class Loss(Protocol):
    """Is told what of the telemetry is lost, as often as it is."""

    def __call__(self, what: str, /) -> None: ...


class Signals:
    """What a job says by the API, on its way to the job's files and to a collector."""

    def __init__(self, folder: Path, job: int, file_loss: Loss, sdk_loss: Loss) -> None:
        """Raises ``ValueError`` and the like for what the SDK makes of its environment."""
        self._chatter = _Chatter(sdk_loss)
        self._ways: list[Callable[[], None]] = []  # each ends one
        try:
            once = providers()
            for exporter, file in _to_files(folder, job, file_loss):
                self._ways.append(_way(once, exporter, file))
            for exporter in _to_collector(sdk_loss):
                self._ways.append(_way(once, exporter, None))
        except BaseException:
            self._chatter.end()
            raise

    async def close(self, hurry: asyncio.Event | None = None) -> None:
        """Get the last of it out, within :data:`CLOSING` seconds for all or until ``hurry``."""
        hurried = asyncio.ensure_future((hurry or asyncio.Event()).wait())
        out = asyncio.gather(*map(in_thread, self._ways), return_exceptions=True)
        either: set[asyncio.Future[Any]] = {out, hurried}
        await asyncio.wait(either, timeout=CLOSING, return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        self._chatter.end()


def _way(once: Providers, exporter: Exporter, file: LineFile | None) -> Callable[[], None]:
    """Send a signal to its exporter; what is returned sends the last of it and ends the way."""
    end: Callable[[], None]
    match exporter:
        case SpanExporter():
            spans = BatchSpanProcessor(exporter, max_queue_size=_queue("OTEL_BSP_MAX_QUEUE_SIZE"))
            once.spans.ways += (spans,)

            def end() -> None:
                once.spans.ways = tuple(way for way in once.spans.ways if way is not spans)
                spans.shutdown()  # type: ignore[no-untyped-call]

        case LogRecordExporter():
            logs = BatchLogRecordProcessor(
                exporter, max_queue_size=_queue("OTEL_BLRP_MAX_QUEUE_SIZE")
            )
            once.logs.ways += (logs,)

            def end() -> None:
                once.logs.ways = tuple(way for way in once.logs.ways if way is not logs)
                logs.shutdown()  # type: ignore[no-untyped-call]

        case MetricExporter():
            reader = PeriodicExportingMetricReader(exporter)
            once.meters.add_metric_reader(reader)

            def end() -> None:
                reader.force_flush()
                once.meters.remove_metric_reader(reader)

    def close() -> None:
        end()
        if file is not None:
            file.close()

    return close


def _queue(variable: str) -> int | None:
    """The SDK reads its own variable where it is set."""
    return None if variable in os.environ else _QUEUE


def _to_files(folder: Path, job: int, loss: Loss) -> Iterator[tuple[Exporter, LineFile]]:
    makers = {"traces": FileSpanExporter, "metrics": FileMetricExporter, "logs": FileLogExporter}
    try:
        folder.mkdir(exist_ok=True)
        for signal, maker in makers.items():
            # By process: an exporter would write on behind the torn line of a killed one.
            file = LineFile(folder / f"{signal}-{job}-{os.getpid()}.jsonl", loss)
            yield maker(stream=cast("IO[str]", file)), file
    except OSError as error:
        loss(f"{folder}: {error.strerror}")


def _to_collector(loss: Loss) -> Iterator[Exporter]:
    """By HTTP to where the standard variables say; signals without an endpoint go nowhere."""
    for signal in ("TRACES", "METRICS", "LOGS"):
        if not _variable(signal, "ENDPOINT"):
            continue
        if (protocol := _variable(signal, "PROTOCOL") or _HTTP) != _HTTP:
            loss(f"OTEL_EXPORTER_OTLP_PROTOCOL: {protocol!r}; simgate exports by {_HTTP!r}")
            continue
        try:
            yield _http_exporter(signal)
        except ImportError:
            loss("OTEL_EXPORTER_OTLP_ENDPOINT is set; to export there, install 'simgate[otlp]'")


def _variable(signal: str, what: str) -> str:
    own = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_{what}", "")
    return (own or os.environ.get(f"OTEL_EXPORTER_OTLP_{what}", "")).strip()


def _http_exporter(signal: str) -> Exporter:
    if signal == "TRACES":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter()
    if signal == "METRICS":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        return OTLPMetricExporter()
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    return OTLPLogExporter()


class _Chatter(logging.Handler):
    """Takes what the SDK logs while a job lasts, and hands on that something is lost.

    The SDK says so for every batch, with a traceback, and warns of what it tries again.
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__(logging.WARNING)
        self._loss = loss
        self._logger = logging.getLogger("opentelemetry")
        self._logger.addHandler(self)
        self._propagated, self._logger.propagate = self._logger.propagate, False

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        if record.levelno >= logging.ERROR or "dropping" in said:
            self._loss(" ".join(said.split())[:200])

    def end(self) -> None:
        """Listen no longer."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated
