"""What :func:`checks.accept` records, through the OpenTelemetry API alone.

Without an SDK every call here does nothing. Names follow OpenTelemetry's GenAI conventions
where they exist and ``flowgentic.accept.*`` where they do not; they stand here and nowhere else.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pydantic_core import to_json, to_jsonable_python

from checks import tracing
from checks.tracing import ERROR_TYPE, content_on_spans, error_type

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_SCOPE = "checks.accept"
# LangChain numbers messages itself where the provider gave no id; older releases wrote "run-".
_NOT_A_PROVIDERS_ID = ("lc_", "run-")

NAME = "flowgentic.accept.name"
ATTEMPTS_MAX = "flowgentic.accept.attempts.max"
ATTEMPTS_USED = "flowgentic.accept.attempts.used"
DISPOSITION = "flowgentic.accept.disposition"
ATTEMPT = "flowgentic.accept.attempt"
VALUE = "flowgentic.accept.value"
EVENT = "gen_ai.evaluation.result"
EVENT_NAME = "gen_ai.evaluation.name"
EVENT_LABEL = "gen_ai.evaluation.score.label"
EVENT_EXPLANATION = "gen_ai.evaluation.explanation"
RESPONSE_ID = "gen_ai.response.id"


def span(name: str, attributes: Mapping[str, str | int]) -> AbstractContextManager[Span]:
    """Open an INTERNAL span; see :func:`checks.tracing.span`."""
    return tracing.span(_SCOPE, name, attributes)


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
    if value is not None and content_on_spans():
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
