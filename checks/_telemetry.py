"""What :func:`checks.accept` records, through the OpenTelemetry API alone.

Without an SDK every call here does nothing. Names follow OpenTelemetry's GenAI conventions
where they exist and ``flowgentic.accept.*`` where they do not; they stand here and nowhere else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic_core import to_json, to_jsonable_python

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_SCOPE = "checks.accept"
_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_SPAN_MODES = frozenset({"SPAN_ONLY", "SPAN_AND_EVENT"})
# LangChain numbers messages itself where the provider gave no id; older releases wrote "run-".
_NOT_A_PROVIDERS_ID = ("lc_", "run-")

NAME = "flowgentic.accept.name"
ATTEMPTS_MAX = "flowgentic.accept.attempts.max"
ATTEMPTS_USED = "flowgentic.accept.attempts.used"
DISPOSITION = "flowgentic.accept.disposition"
ATTEMPT = "flowgentic.accept.attempt"
VALUE = "flowgentic.accept.value"
ERROR_TYPE = "error.type"
EVENT = "gen_ai.evaluation.result"
EVENT_NAME = "gen_ai.evaluation.name"
EVENT_LABEL = "gen_ai.evaluation.score.label"
EVENT_EXPLANATION = "gen_ai.evaluation.explanation"
RESPONSE_ID = "gen_ai.response.id"


@contextmanager
def span(name: str, attributes: Mapping[str, str | int]) -> Iterator[Span]:
    """Open an INTERNAL span; whatever leaves it by an exception makes it ERROR with ``error.type``.

    The API's own handling stays off: it records the exception as a span event, never sets
    ``error.type``, and leaves a cancelled span without a trace of why it ended.
    """
    from opentelemetry import trace  # not at import: who only reads a config never opens a span

    # The tracer is looked up per call, so that a provider configured after import is used.
    with trace.get_tracer(_SCOPE).start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as exc:
            opened.set_attribute(ERROR_TYPE, error_type(exc))
            opened.set_status(trace.StatusCode.ERROR)
            raise


def error_type(exc: BaseException) -> str:
    """``ValueError`` for a built-in exception, ``package.module.Name`` for any other."""
    kind = type(exc)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def passed(check: str, value: object) -> None:
    """Record that ``check`` let ``value`` pass."""
    _emit({EVENT_NAME: check, EVENT_LABEL: "pass"}, value)


def rejected(check: str, reason: str, value: object) -> None:
    """Record that ``check``, a check or a stage of the producer, rejected ``value``."""
    _emit({EVENT_NAME: check, EVENT_LABEL: "fail", EVENT_EXPLANATION: reason}, value)


def errored(check: str, exc: Exception, value: object) -> None:
    """Record that ``check`` could not tell: no label, because it is neither pass nor fail."""
    _emit({EVENT_NAME: check, ERROR_TYPE: error_type(exc)}, value)


def rejected_value(attempt: Span, value: object) -> None:
    """Put a rejected ``value`` on its attempt's span, if OpenTelemetry's content switch says so."""
    # None is what the producer returned no value for.
    if value is not None and os.environ.get(_CAPTURE, "").strip().upper() in _SPAN_MODES:
        attempt.set_attribute(VALUE, _json(value))


def _emit(attributes: dict[str, str], value: object) -> None:
    from opentelemetry._logs import LogRecord, SeverityNumber, get_logger

    response = _response_id(value)
    if response is not None:
        attributes[RESPONSE_ID] = response
    get_logger(_SCOPE).emit(
        LogRecord(
            timestamp=time.time_ns(),  # the SDK sets none of its own
            severity_number=SeverityNumber.INFO,
            event_name=EVENT,
            attributes=attributes,
        )
    )


def _response_id(value: object) -> str | None:
    """The provider's id of a LangChain message, known by its ``response_metadata``."""
    metadata = getattr(value, "response_metadata", None)
    if not isinstance(metadata, Mapping):
        return None
    for found in (getattr(value, "id", None), metadata.get("id")):
        if isinstance(found, str) and found and not found.startswith(_NOT_A_PROVIDERS_ID):
            return found
    return None


def _json(value: object) -> str:
    """JSON text of anything: NaN as ``"NaN"``, what has no JSON form as its ``repr``."""
    try:
        # Two steps: in one, a model writes its own NaN as null whatever the mode asked for.
        plain = to_jsonable_python(value, fallback=repr)
        return to_json(plain, fallback=repr, inf_nan_mode="strings").decode()
    except Exception:  # a serialiser or repr of the caller's may raise anything
        return to_json(f"<{type(value).__qualname__} that does not serialise>").decode()
