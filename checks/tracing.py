"""Spans by the OpenTelemetry API alone; without an SDK every call here does nothing."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Link, Span, Tracer, TracerProvider

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The variable that says where text a model was told or said may be recorded."""
ERROR_TYPE = "error.type"
_ON_SPANS = frozenset({"SPAN_ONLY", "SPAN_AND_EVENT"})
_ON_EVENTS = frozenset({"EVENT_ONLY", "SPAN_AND_EVENT"})


@contextmanager
def span(
    scope: str,
    name: str,
    attributes: Mapping[str, str | bool | int | float],
    *,
    client: bool = False,
    links: Sequence[Link] = (),
    why: Callable[[BaseException], str] | None = None,
) -> Iterator[Span]:
    """Open a span, INTERNAL unless it is of a ``client``; what leaves it by an exception fails it.

    ``why`` makes the ``error.type`` of that, by default :func:`error_type`.
    The API's own handling stays off: it records the exception as a span event, never sets
    ``error.type``, and leaves a cancelled span without a trace of why it ended.
    """
    from opentelemetry import trace  # not at import: who only reads a config never opens a span

    with tracer(scope).start_as_current_span(
        name,
        kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
        attributes=attributes,
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        try:
            yield opened
        except BaseException as exc:
            failed(opened, (why or error_type)(exc))
            raise


def tracer(scope: str) -> Tracer:
    """The tracer of a scope, of the provider there is now: it may be set after our import."""
    from opentelemetry.trace import get_tracer_provider

    return _tracer(get_tracer_provider(), scope)


@functools.lru_cache(maxsize=8)
def _tracer(provider: TracerProvider, scope: str) -> Tracer:
    # Kept, since making one takes the SDK longer than a span.
    return provider.get_tracer(scope)


def failed(span: Span, why: str) -> None:
    """Let a span say that what it stands for failed, and why by a word of few."""
    from opentelemetry.trace import StatusCode

    span.set_attribute(ERROR_TYPE, why)
    span.set_status(StatusCode.ERROR)


def error_type(exc: BaseException) -> str:
    """``ValueError`` for a built-in exception, ``package.module.Name`` for any other."""
    kind = type(exc)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def content_on_spans() -> bool:
    """Whether OpenTelemetry's content switch lets spans hold content; read at every call."""
    return _switch() in _ON_SPANS


def content_on_events() -> bool:
    """The same of events."""
    return _switch() in _ON_EVENTS


def _switch() -> str:
    return os.environ.get(CAPTURE, "").strip().upper()
