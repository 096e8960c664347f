"""What a call of a model's server leaves in the telemetry of a run, by the OpenTelemetry API alone.

What the model was told and what it said is content: it is recorded where OpenTelemetry's content
switch wants it, and the switch is read at every call.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from campaign import conventions as names
from campaign.agents.base import AgentError
from campaign.agents.wire import Completion
from campaign.meters import measure
from campaign.spans import emit
from checks.tracing import content_on_events, content_on_spans, error_type, span

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_REQUEST = {
    names.TEMPERATURE: "temperature",
    names.TOP_P: "top_p",
    names.SEED: "seed",
    names.MAX_TOKENS: "max_tokens",
}


@dataclass(slots=True)
class ChatSpan:
    """One call that is under way."""

    span: Span
    body: Mapping[str, object] = field(repr=False)
    about: dict[str, str]

    def answered(self, completion: Completion) -> Completion:
        """Take down what came, and hand it on."""
        found: dict[str, object] = {
            names.RESPONSE_ID: completion.response_id,
            names.FINISH: [completion.finish_reason] if completion.finish_reason else "",
        }
        if (spent := completion.spent) is not None:
            found |= {
                names.INPUT_TOKENS: spent.input_tokens,
                names.OUTPUT_TOKENS: spent.output_tokens,
            }
            for kind, count in (("input", spent.input_tokens), ("output", spent.output_tokens)):
                measure(names.TOKEN_USAGE, count, self.about | {names.TOKEN_TYPE: kind})
        for name, value in found.items():
            if value != "":
                self.span.set_attribute(name, cast("Any", value))
        self._content(completion)
        return completion

    def _content(self, completion: Completion) -> None:
        on_span, on_event = content_on_spans(), content_on_events()
        if not (on_span or on_event):
            return
        told = [
            {"role": one["role"], "parts": [_part(one["content"])]}
            for one in cast("list[dict[str, str]]", self.body.get("messages", []))
        ]
        said = {
            "role": "assistant",
            "parts": [_part(completion.text or "")],
            "finish_reason": completion.finish_reason,
        }
        content = {names.INPUT_MESSAGES: told, names.OUTPUT_MESSAGES: [said]}
        if on_span:
            for name, messages in content.items():
                self.span.set_attribute(name, json.dumps(messages))
        if on_event:
            emit(names.DETAILS, {**self.about, **content})


@contextmanager
def chat(body: Mapping[str, object], host: str, port: int | None) -> Iterator[ChatSpan]:
    """One call of a model; what leaves it by an exception brought no answer."""
    model = str(body.get("model", ""))
    about = {names.OPERATION: names.CHAT, names.PROVIDER: "openai", names.MODEL: model}
    asked: dict[str, str | bool | int | float] = {**about, names.SERVER: host}
    if port is not None:
        asked[names.PORT] = port
    for name, key in _REQUEST.items():
        if isinstance(value := body.get(key), (int, float)):
            asked[name] = value
    if "response_format" in body:
        asked[names.OUTPUT_TYPE] = "json"
    began, failure = time.monotonic(), {}
    try:
        with span(names.SCOPE, f"{names.CHAT} {model}", asked, client=True, why=_why) as opened:
            yield ChatSpan(opened, body, about)
    except BaseException as error:
        failure = {names.ERROR_TYPE: _why(error)}
        raise
    finally:
        measure(names.CALL_TIME, time.monotonic() - began, about | failure)


def _why(error: BaseException) -> str:
    status = error.status if isinstance(error, AgentError) else 0
    return str(status) if status else error_type(error)


def _part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}
