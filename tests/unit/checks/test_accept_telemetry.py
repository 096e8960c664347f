"""What ``accept`` records, read back from the exporters of a real OpenTelemetry SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry._logs import _internal as logs_api
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from checks import NotAccepted, Rejected, accept

SWITCH = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
VALUE = "flowgentic.accept.value"


@dataclass
class Telemetry:
    """The spans and events of one test."""

    span_exporter: InMemorySpanExporter
    event_exporter: InMemoryLogRecordExporter

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.span_exporter.get_finished_spans()

    @property
    def events(self) -> tuple[ReadableLogRecord, ...]:
        return tuple(self.event_exporter.get_finished_logs())

    @property
    def judged(self) -> list[tuple[object, ...]]:
        """Name, label and explanation of every event, in order."""
        return [
            tuple(
                attributes.get(f"gen_ai.evaluation.{part}")
                for part in ("name", "score.label", "explanation")
            )
            for attributes in map(attributes_of, self.events)
        ]

    def of_accept(self, name: str = "planner") -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == f"accept {name}"]
        return found

    def of_attempts(self, name: str = "planner") -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == f"accept.attempt {name}"]


def attributes_of(event: ReadableLogRecord) -> Mapping[str, Any]:
    return event.log_record.attributes or {}


def ids(span: ReadableSpan) -> tuple[int, int]:
    """The trace's id and the span's own."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def span_id(span: ReadableSpan) -> int:
    return ids(span)[1]


def parent_id(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


@pytest.fixture
def telemetry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Telemetry]:
    """An SDK for one test; the API's own setters work only once in a process."""
    events = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
    seen = Telemetry(InMemorySpanExporter(), events)
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(seen.span_exporter))
    loggers = LoggerProvider(shutdown_on_exit=False)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(seen.event_exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", tracers)
    monkeypatch.setattr(logs_api, "_LOGGER_PROVIDER", loggers)
    monkeypatch.delenv(SWITCH, raising=False)
    yield seen
    tracers.shutdown()
    loggers.shutdown()


def positive(value: object) -> None:
    if not isinstance(value, int) or value <= 0:
        raise Rejected(f"{value!r} is not positive")


def even(value: object) -> None:
    if not isinstance(value, int) or value % 2:
        raise Rejected(f"{value!r} is not even")


def run(
    *answers: object,
    checks: Sequence[Callable[[object], Awaitable[None] | None]] = (positive,),
    fallback: Callable[[], object] | None = None,
) -> None:
    """Ask for the answers in order, one attempt each; an exception among them is raised."""

    def producer(previous: tuple[object, ...]) -> object:
        answer = answers[len(previous)]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    asyncio.run(
        accept(producer, checks=checks, attempts=len(answers), fallback=fallback, name="planner")
    )


def test_an_accepted_call_is_one_internal_span_with_its_four_attributes(
    telemetry: Telemetry,
) -> None:
    asyncio.run(accept(lambda _: 1, checks=[positive], attempts=3, name="planner"))
    span = telemetry.of_accept()
    assert span.kind is SpanKind.INTERNAL
    assert dict(span.attributes or {}) == {
        "flowgentic.accept.name": "planner",
        "flowgentic.accept.attempts.max": 3,
        "flowgentic.accept.attempts.used": 1,
        "flowgentic.accept.disposition": "accepted",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_a_fallback_is_a_disposition_and_not_an_error(telemetry: Telemetry) -> None:
    run(-1, -2, fallback=lambda: 0)
    span = telemetry.of_accept()
    assert span.kind is SpanKind.INTERNAL
    assert dict(span.attributes or {}) == {
        "flowgentic.accept.name": "planner",
        "flowgentic.accept.attempts.max": 2,
        "flowgentic.accept.attempts.used": 2,
        "flowgentic.accept.disposition": "fallback",
    }
    assert span.status.status_code is StatusCode.UNSET


def test_not_accepted_is_a_disposition_and_an_error(telemetry: Telemetry) -> None:
    with pytest.raises(NotAccepted):
        run(-1, -2)
    span = telemetry.of_accept()
    assert dict(span.attributes or {}) == {
        "flowgentic.accept.name": "planner",
        "flowgentic.accept.attempts.max": 2,
        "flowgentic.accept.attempts.used": 2,
        "flowgentic.accept.disposition": "not_accepted",
        "error.type": "checks.accept.NotAccepted",
    }
    assert span.status.status_code is StatusCode.ERROR


class ProviderDown(Exception):
    """A failure of the application's own."""


@pytest.mark.parametrize(
    ("failure", "error_type"),
    [
        (ValueError("no"), "ValueError"),
        (TimeoutError(), "TimeoutError"),
        (ProviderDown(), f"{__name__}.ProviderDown"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (asyncio.CancelledError(), "asyncio.exceptions.CancelledError"),
    ],
)
def test_a_failure_marks_the_attempt_and_the_call_and_has_no_disposition(
    telemetry: Telemetry, failure: BaseException, error_type: str
) -> None:
    with pytest.raises(type(failure)):
        run(-1, failure, 1)
    rejected, failed = telemetry.of_attempts()
    assert rejected.status.status_code is StatusCode.UNSET
    for span in (failed, telemetry.of_accept()):
        assert span.status.status_code is StatusCode.ERROR
        assert (span.attributes or {})["error.type"] == error_type
        assert not span.events  # nothing of the exception's text or stack
    attributes = telemetry.of_accept().attributes or {}
    assert attributes["flowgentic.accept.attempts.used"] == 2  # the failing one included
    assert "flowgentic.accept.disposition" not in attributes


def test_a_failing_fallback_marks_the_call_and_no_attempt(telemetry: Telemetry) -> None:
    with pytest.raises(ZeroDivisionError):
        run(-1, fallback=lambda: 1 // 0)
    assert (telemetry.of_accept().attributes or {})["error.type"] == "ZeroDivisionError"
    (attempt,) = telemetry.of_attempts()
    assert attempt.status.status_code is StatusCode.UNSET


def test_each_attempt_is_a_child_span_numbered_from_one(telemetry: Telemetry) -> None:
    run(-1, -2, 3)
    spans = telemetry.of_attempts()
    assert [(span.attributes or {})["flowgentic.accept.attempt"] for span in spans] == [1, 2, 3]
    assert {parent_id(span) for span in spans} == {span_id(telemetry.of_accept())}
    for span in spans:
        assert span.kind is SpanKind.INTERNAL
        assert span.status.status_code is StatusCode.UNSET
        assert not span.events


def test_spans_of_the_producer_and_of_a_check_are_children_of_their_attempt(
    telemetry: Telemetry,
) -> None:
    tracer = trace.get_tracer("application")

    async def producer(previous: tuple[object, ...]) -> int:
        with tracer.start_as_current_span("chat"):
            await asyncio.sleep(0)
        return len(previous)

    async def verifier(value: int) -> None:
        with tracer.start_as_current_span("submit"):
            await asyncio.sleep(0)
        if value < 1:
            raise Rejected("no")

    asyncio.run(accept(producer, checks=[verifier], attempts=2, name="planner"))
    attempts = [span_id(span) for span in telemetry.of_attempts()]
    for name in ("chat", "submit"):
        assert [parent_id(span) for span in telemetry.spans if span.name == name] == attempts


def test_a_span_of_the_fallback_is_a_child_of_the_call(telemetry: Telemetry) -> None:
    def fallback() -> int:
        with trace.get_tracer("application").start_as_current_span("surrogate"):
            return 0

    run(-1, fallback=fallback)
    (span,) = [span for span in telemetry.spans if span.name == "surrogate"]
    assert parent_id(span) == span_id(telemetry.of_accept())


def test_every_check_that_ran_is_one_event_and_no_other_is(telemetry: Telemetry) -> None:
    run(-2, 1, 2, checks=[positive, even])
    assert telemetry.judged == [
        ("positive", "fail", "-2 is not positive"),
        ("positive", "pass", None),
        ("even", "fail", "1 is not even"),
        ("positive", "pass", None),
        ("even", "pass", None),
    ]


def test_a_producer_that_rejects_its_own_output_is_exactly_one_event(telemetry: Telemetry) -> None:
    run(Rejected("I will not", check="refusal"), 1)
    assert telemetry.judged == [("refusal", "fail", "I will not"), ("positive", "pass", None)]


def test_a_failing_check_is_an_event_with_an_error_and_no_label(telemetry: Telemetry) -> None:
    def verifier(_: object) -> None:
        raise OSError("no node left")

    with pytest.raises(OSError, match="no node left"):
        run(1, checks=[positive, verifier])
    assert telemetry.judged == [("positive", "pass", None), ("verifier", None, None)]
    assert attributes_of(telemetry.events[1])["error.type"] == "OSError"


def test_a_failing_producer_is_no_event(telemetry: Telemetry) -> None:
    with pytest.raises(OSError, match="down"):
        run(OSError("down"))
    assert telemetry.events == ()


def test_an_event_carries_its_name_a_time_and_the_ids_of_its_attempt(telemetry: Telemetry) -> None:
    run(-1, 1)
    assert len(telemetry.events) == 2
    for event, span in zip(telemetry.events, telemetry.of_attempts(), strict=True):
        record = event.log_record
        assert record.event_name == "gen_ai.evaluation.result"
        assert (record.trace_id, record.span_id) == ids(span)
        assert record.timestamp


def test_the_name_in_the_event_is_the_name_in_the_attempt(telemetry: Telemetry) -> None:
    def everything(_: object) -> None:
        raise Rejected("outside", check="bounds")

    run(1, checks=[everything], fallback=lambda: 0)
    assert telemetry.judged == [("bounds", "fail", "outside")]


def test_concurrent_calls_do_not_mix_their_spans(telemetry: Telemetry) -> None:
    async def one(name: str) -> None:
        async def producer(previous: tuple[object, ...]) -> int:
            await asyncio.sleep(0)
            return len(previous)

        async def second(value: object) -> None:
            await asyncio.sleep(0)
            positive(value)

        await accept(producer, checks=[second], attempts=2, name=name)

    async def scene() -> None:
        await asyncio.gather(one("a"), one("b"))

    asyncio.run(scene())
    for name in ("a", "b"):
        call = telemetry.of_accept(name)
        assert parent_id(call) is None
        attempts = telemetry.of_attempts(name)
        assert [parent_id(span) for span in attempts] == [span_id(call)] * 2
        own = {span_id(span) for span in attempts}
        labels = [
            attributes_of(event)["gen_ai.evaluation.score.label"]
            for event in telemetry.events
            if event.log_record.span_id in own
        ]
        assert labels == ["fail", "pass"]


class Message(BaseModel):
    """The parts of a LangChain message that matter here."""

    content: str = "{}"
    id: str | None = None
    response_metadata: dict[str, str] = {}


class Proposal(BaseModel):
    """No message, though it has an id."""

    id: str = "proposal-7"


@pytest.mark.parametrize(
    ("value", "response_id"),
    [
        (Message(id="chatcmpl-9"), "chatcmpl-9"),
        (Message(id="lc_run-1", response_metadata={"id": "chatcmpl-9"}), "chatcmpl-9"),
        (Message(id="lc_run-1"), None),
        (Message(id="lc_2"), None),
        (Message(id="run-3"), None),
        (Message(), None),
        (Proposal(), None),
        ({"id": "chatcmpl-9"}, None),
        ("chatcmpl-9", None),
    ],
)
def test_only_a_message_with_an_id_of_the_provider_gives_a_response_id(
    telemetry: Telemetry, value: object, response_id: str | None
) -> None:
    def rejecting(_: object) -> None:
        raise Rejected("no")

    run(value, checks=[lambda _: None, rejecting], fallback=lambda: 0)
    found = [attributes_of(event).get("gen_ai.response.id") for event in telemetry.events]
    assert found == [response_id, response_id]


def captured(telemetry: Telemetry) -> list[object]:
    return [(span.attributes or {}).get(VALUE) for span in telemetry.of_attempts()]


@pytest.mark.parametrize("mode", [None, "", "NO_CONTENT", "EVENT_ONLY", "event_only", "true", "1"])
def test_a_rejected_value_is_not_recorded_unless_spans_may_hold_content(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, mode: str | None
) -> None:
    if mode is not None:
        monkeypatch.setenv(SWITCH, mode)
    run(-1, 1)
    assert captured(telemetry) == [None, None]
    # The reason is: it is no content, whatever the switch says.
    assert telemetry.judged[0] == ("positive", "fail", "-1 is not positive")


@pytest.mark.parametrize("mode", ["SPAN_ONLY", "SPAN_AND_EVENT", "span_only", " span_and_event "])
def test_only_rejected_values_are_recorded_when_spans_may_hold_content(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setenv(SWITCH, mode)
    run(-1, 1)
    assert captured(telemetry) == ["-1", None]
    assert telemetry.judged[0] == ("positive", "fail", "-1 is not positive")


def test_the_switch_is_read_at_every_call(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(-1, fallback=lambda: 0)
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")
    run(-1, fallback=lambda: 0)
    assert captured(telemetry) == [None, "-1"]


def test_what_a_producer_rejected_is_recorded_only_if_it_handed_it_on(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")
    run(Rejected("no"), Rejected("cut off", value='{"x": 0.'), fallback=lambda: 0)
    first, second = captured(telemetry)
    assert first is None
    assert json.loads(str(second)) == '{"x": 0.'


class Point(BaseModel):
    """A model with a number, which may be no number."""

    x: float


class Unshowable:
    """Has no JSON form and raises where one would look for another."""

    def __repr__(self) -> str:
        raise RuntimeError("not even this")


def circular() -> list[object]:
    loop: list[object] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        (float("nan"), "NaN"),
        ([float("inf"), 1.0], ["Infinity", 1.0]),
        ([Point(x=float("nan"))], [{"x": "NaN"}]),
        (Point(x=0.5), {"x": 0.5}),
        (object, repr(object)),
        (Unshowable(), "<Unshowable that does not serialise>"),
        (circular(), "<list that does not serialise>"),
        ("\ud800", "<str that does not serialise>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_without_a_json_form_never_breaks_the_gate(
    telemetry: Telemetry, monkeypatch: pytest.MonkeyPatch, value: object, recorded: object
) -> None:
    monkeypatch.setenv(SWITCH, "SPAN_ONLY")

    def rejecting(_: object) -> None:
        raise Rejected("no")

    run(value, checks=[rejecting], fallback=lambda: 0)
    (text,) = captured(telemetry)
    assert json.loads(str(text)) == recorded
