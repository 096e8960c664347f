"""The telemetry files of a run, read back by OpenTelemetry's own types, and the tree in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

_M = TypeVar("_M", bound=Message)
_IDS = ("traceId", "spanId", "parentSpanId")  # hexadecimal in OTLP, base64 in protobuf's own JSON


def lines(path: Path, kind: type[_M]) -> list[_M]:
    """Every whole line of a file; whoever wrote it may have been killed in the last."""
    whole = path.read_bytes().split(b"\n")[:-1]
    return [ParseDict(_with_protobufs_ids(json.loads(line)), kind()) for line in whole]


def spans(run_dir: Path, job: int | str = "*") -> list[Span]:
    return [
        span
        for data in _read(run_dir, f"traces-{job}-*", TracesData)
        for resource in data.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def events(run_dir: Path, job: int | str = "*") -> list[LogRecord]:
    return [
        record
        for data in _read(run_dir, f"logs-{job}-*", LogsData)
        for resource in data.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]


def metrics(run_dir: Path, job: int = 1) -> dict[str, Metric]:
    """The last word of a job on each of its metrics, by name."""
    last = list(_read(run_dir, f"metrics-{job}-*", MetricsData))[-1]
    return {
        metric.name: metric
        for resource in last.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def counted(metric: Metric, attribute: str) -> dict[Any, float]:
    """The sums of a counter by the value of an attribute."""
    found: dict[Any, float] = {}
    for point in metric.sum.data_points:
        value = attributes(point.attributes).get(attribute)
        found[value] = found.get(value, 0.0) + (point.as_int or point.as_double)
    return found


def attributes(pairs: Any) -> dict[str, Any]:
    """Attributes as plain data."""
    return {pair.key: _plain(pair.value) for pair in pairs}


def traceparent(span: Span) -> str:
    """As the W3C writes it, without the flags at its end."""
    return f"00-{span.trace_id.hex()}-{span.span_id.hex()}"


@dataclass(frozen=True)
class Tree:
    """The spans of a run by their ids."""

    spans: dict[bytes, Span]

    @property
    def roots(self) -> list[Span]:
        return [span for span in self.spans.values() if not span.parent_span_id]

    @property
    def orphans(self) -> list[str]:
        """Spans whose parent is missing, or is of another trace."""
        return [
            span.name
            for span in self.spans.values()
            if span.parent_span_id
            and (
                (parent := self.spans.get(span.parent_span_id)) is None
                or parent.trace_id != span.trace_id
            )
        ]

    @property
    def paths(self) -> list[tuple[str, ...]]:
        return [self.path(span) for span in self.spans.values()]

    def path(self, span: Span) -> tuple[str, ...]:
        """The names from the root down to a span."""
        if not span.parent_span_id:
            return (span.name,)
        return (*self.path(self.spans[span.parent_span_id]), span.name)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans.values() if span.name == name]


def tree(run_dir: Path, job: int | str = "*") -> Tree:
    found = spans(run_dir, job)
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    return Tree(by_id)


def _read(run_dir: Path, pattern: str, kind: type[_M]) -> Iterator[_M]:
    for path in sorted((run_dir / "telemetry").glob(f"{pattern}.jsonl")):
        yield from lines(path, kind)


def _with_protobufs_ids(data: Any) -> Any:
    if isinstance(data, list):
        return [_with_protobufs_ids(item) for item in data]
    if not isinstance(data, dict):
        return data
    return {
        key: base64.b64encode(bytes.fromhex(value)).decode()
        if key in _IDS
        else _with_protobufs_ids(value)
        for key, value in data.items()
    }


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        pairs: list[KeyValue] = list(value.kvlist_value.values)
        return attributes(pairs)
    return None if kind is None else getattr(value, kind)
