"""What a server of chat completions says: its bytes become a :class:`Completion`, or no answer.

Nothing a server says is believed or repeated: an :class:`AgentError` holds its status, the words
it has for the kind of an error, and sentences of ours.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from campaign.agents.base import AgentError, LoadingError
from campaign.model import Spent

_WORD = re.compile(r"[\x21-\x7e]+", re.ASCII)
_LONGEST = 128  # characters of an id or of another word of the server's
_WEAK = 12  # characters of a key below which it may be an ordinary word
_MOST_TOKENS = 2**53

_FIXES = {
    400: "the server takes no such request; see what it writes to its log",
    401: "the server wants another key; see `key`",
    403: "the server does not let this key do it; see `key`",
    404: "the server has no such path or model; see `url` and `model`",
    413: "the request is too long for the server; show the agent less",
    422: "the server takes no such request; see what it writes to its log",
    429: "the server is busy; fewer calls a minute would do",
    503: "the server is busy, or down; it may answer later",
}
_AGAIN = (408, 409, 425, 429)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over the wire; the names of headers in small letters."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model. ``request`` is the SHA-256 of the bytes that were sent.

    ``spent`` is None where the server does not say, or says what cannot be.
    """

    content: str | None = field(repr=False)
    refusal: str | None = field(default=None, repr=False)
    finish_reason: str = ""
    spent: Spent | None = None
    response_id: str = ""
    request: str = ""

    @property
    def text(self) -> str | None:
        """What the model said, byte for byte: its answer, or the words it refused with."""
        return self.content or self.refusal or self.content


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None


class _Body(msgspec.Struct, frozen=True):
    choices: list[_Choice]
    id: Any = None
    usage: Any = None


def completion(reply: Reply, where: str, *, request: str = "", secret: str = "") -> Completion:
    """The completion in a reply with status 200; ``secret`` is the key that was sent.

    Raises :class:`AgentError`, always to be called again, where there is none.
    """
    body = _parsed(reply.body)
    if body is None:
        said = _Said(reply, secret)
        raise said.error(
            f"{where}: HTTP 200{said.kind} without a completion; the body holds "
            "`choices` with a `message`"
        )
    choice = body.choices[0]
    if len(secret) >= _WEAK and secret in f"{choice.message.content} {choice.message.refusal}":
        raise AgentError(f"{where}: the answer repeats the key; it is not kept")
    return Completion(
        choice.message.content,
        choice.message.refusal,
        finish_reason=_word(choice.finish_reason, secret),
        spent=_spent(body.usage),
        response_id=_word(body.id, secret),
        request=request,
    )


def refused(reply: Reply, where: str, *, secret: str = "") -> AgentError:
    """What a reply with any other status means."""
    status, said = reply.status, _Said(reply, secret)
    if status == 503 and said.loads:
        what = f"{where}: HTTP 503{said.kind}; the model is still loading"
        return said.error(what, kind=LoadingError, unspent=True)
    if 300 <= status < 400:
        fix = "the server sends elsewhere; give the address it names, see `url`"
    elif status < 300:
        fix = "a completion comes with status 200"
    else:
        fix = _FIXES.get(status, "the server failed; see its log")
    return said.error(
        f"{where}: HTTP {status}{said.kind}; {fix}",
        retryable=status in _AGAIN or status >= 500 or status < 300,
        # A gateway's 408 may stand for a model that took too long.
        unspent=status == 503 or (300 <= status < 500 and status != 408),
    )


def retry_after(value: str, now: float) -> float:
    """Seconds that a Retry-After header asks for, 0 where it says nothing that can be read.

    ``now`` is the wall clock, in seconds since the epoch, against which a date is held.
    """
    if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value, re.ASCII):
        return float(value)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError, TypeError, IndexError):
        return 0.0
    return max(0.0, seconds) if math.isfinite(seconds) else 0.0


class _Said:
    """What a reply says beside its answer, as far as it may be repeated."""

    def __init__(self, reply: Reply, secret: str) -> None:
        self._reply, self._secret = reply, secret
        try:
            body = msgspec.json.decode(reply.body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            body = None
        self._error = body.get("error") if isinstance(body, dict) else None

    @property
    def kind(self) -> str:
        """`` (authentication_error)``, or nothing."""
        if not isinstance(self._error, dict):
            return ""
        words = (_word(self._error.get(name), self._secret) for name in ("type", "code"))
        named = [word for word in words if re.fullmatch(r"[A-Za-z_.-]{3,64}", word)]
        return f" ({', '.join(dict.fromkeys(named))})" if named else ""

    @property
    def loads(self) -> bool:
        """Whether a 503 is one of a model that is being loaded."""
        error = self._error
        text = error.get("message") if isinstance(error, dict) else error
        return isinstance(text, str) and "loading" in text.lower()

    def error(
        self,
        what: str,
        *,
        kind: type[AgentError] = AgentError,
        retryable: bool = True,
        unspent: bool = False,
    ) -> AgentError:
        headers = self._reply.headers
        return kind(
            what,
            retryable=retryable,
            status=self._reply.status,
            request_id=_word(headers.get("x-request-id"), self._secret),
            retry_after=retry_after(headers.get("retry-after", "").strip(), time.time()),
            unspent=unspent,
        )


def _parsed(data: bytes) -> _Body | None:
    """A body with a choice whose text is Unicode; None for any other."""
    try:
        body = msgspec.json.decode(data, type=_Body)
        message = body.choices[0].message
        for text in (message.content, message.refusal):
            (text or "").encode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, IndexError):
        return None
    return body


def _word(value: object, secret: str) -> str:
    """A word of the server's that may be kept: printable, not long, and not the key."""
    if not isinstance(value, str) or not _WORD.fullmatch(value[:_LONGEST]):
        return ""
    return "" if secret and secret in value else value[:_LONGEST]


def _spent(usage: object) -> Spent | None:
    if not isinstance(usage, dict):
        return None
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(read) is not int or type(written) is not int:
        return None
    # A prompt always has tokens: a server that says 0 does not count.
    plausible = 0 < read < _MOST_TOKENS and 0 <= written < _MOST_TOKENS
    return Spent(read, written) if plausible else None
