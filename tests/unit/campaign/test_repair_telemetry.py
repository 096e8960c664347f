"""Repair requirement R42: telemetry that fails changes nothing of a run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import _internal as logs_api
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    ConsoleLogRecordExporter,
    LogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import (
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

import running
from campaign.events import Answered, Judged, SlotEnded
from repairing import EMPTY, LEVEL, OUTSIDE, UNSTABLE, config
from running import of, run
from speaking import answer, speaking
from square import GOOD, STEEP


class RaisingSpans(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError(f"{len(spans)} spans and nowhere to go")


class RaisingLogs(LogRecordExporter):
    def export(self, batch: Any) -> LogRecordExportResult:
        raise RuntimeError(f"{len(batch)} records and nowhere to go")

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        return False

    def shutdown(self) -> None:
        return None


class FailingSpans(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:  # noqa: ARG002
        return SpanExportResult.FAILURE


class FailingLogs(RaisingLogs):
    def export(self, batch: Any) -> LogRecordExportResult:  # noqa: ARG002
        return LogRecordExportResult.FAILURE


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


class Full(io.StringIO):
    """A file on a disk without room."""

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


Exporters = Callable[[], tuple[SpanExporter, LogRecordExporter]]
EXPORTERS: dict[str, Exporters] = {
    "raises": lambda: (RaisingSpans(), RaisingLogs()),
    "fails": lambda: (FailingSpans(), FailingLogs()),
    "closed": lambda: (ConsoleSpanExporter(out=closed()), ConsoleLogRecordExporter(out=closed())),
    "full": lambda: (ConsoleSpanExporter(out=Full()), ConsoleLogRecordExporter(out=Full())),
}


@contextmanager
def telemetry(monkeypatch: pytest.MonkeyPatch, exporters: Exporters) -> Iterator[None]:
    """A real SDK that exports in the middle of everything, as badly as can be."""
    spans, logs = exporters()
    tracers, loggers = (
        TracerProvider(shutdown_on_exit=False),
        LoggerProvider(shutdown_on_exit=False),
    )
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    with monkeypatch.context() as patch:
        patch.setattr(trace, "_TRACER_PROVIDER", tracers)
        patch.setattr(logs_api, "_LOGGER_PROVIDER", loggers)
        yield


SCRIPTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "mixed": (
        [answer(STEEP, UNSTABLE, GOOD[0]), "no json", answer(GOOD[1], OUTSIDE)],
        {"expect": {"max_iterations": 3}},
    ),
    "failed": (
        [answer(STEEP, EMPTY, GOOD[0]), answer(STEEP, EMPTY)],
        {"expect": {"on_exhausted": "raise"}},
    ),
}


def story(ran: running.Ran) -> tuple[object, ...]:
    ends = sorted(of(ran, SlotEnded), key=lambda one: one.slot)
    answers = [(one.generation, one.candidates, one.stage) for one in of(ran, Answered)]
    return ran.ending, ends, answers, of(ran, Judged), ran.state.usage


@pytest.mark.parametrize("exporters", EXPORTERS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_r42_an_exporter_that_fails_changes_no_disposition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exporters: str, script: str
) -> None:
    lines, changes = SCRIPTS[script]
    settings = config(LEVEL, **changes)
    plain = run(tmp_path / "plain", settings, proposer=speaking(*lines))
    with telemetry(monkeypatch, EXPORTERS[exporters]):
        ran = run(tmp_path / "told", settings, proposer=speaking(*lines))
    assert story(ran) == story(plain)
    assert plain.dispositions == (
        ["accepted"] if script == "failed" else ["repaired", "fallback", "accepted"]
    )
