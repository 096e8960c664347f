"""The client of a server of chat completions: one request for each call, by a deadline.

The only module that knows httpx, which is imported by the first call. It never retries, follows no
redirect, and takes nothing from the environment but a key it was told to take there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from campaign.agentconfig import JudgeConfig, OpenAIAgent
from campaign.agents.base import AgentError
from campaign.agents.chatspan import chat
from campaign.agents.wire import Completion, Reply, completion, refused
from campaign.template import render, unknown_placeholders

if TYPE_CHECKING:
    import httpx

Server: TypeAlias = OpenAIAgent | JudgeConfig
"""Whose endpoint is asked, and by what limits."""

_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
_ERROR_BYTES = 64 * 1024  # of an error's body that are looked at
_SOCKET_BYTES = 107  # of a Unix socket's path, by the kernel
_PATIENCE = 5.0  # seconds for a server to say whether it is ready
_ours: ContextVar[bool] = ContextVar("simgate_call", default=False)


@dataclass(frozen=True, slots=True)
class ChatClient:
    """Asks one server; keeps nothing between two calls, so it needs no closing.

    The key is read when a call is made. It is in no message, repr, pickle or log.
    """

    server: Server
    folder: Path
    run_dir: Path

    @property
    def where(self) -> str:
        """The server in a message: host and port, or the socket."""
        if self.server.url is None:
            return str(self.server.socket)
        return urlsplit(self.server.url).netloc.rpartition("@")[2]

    @property
    def socket(self) -> Path | None:
        """The Unix socket, as an absolute path; None for a server with a URL."""
        if self.server.socket is None:
            return None
        return self.folder / render(self.server.socket, {"run_dir": str(self.run_dir)})

    def body(
        self, messages: Sequence[Mapping[str, str]], max_tokens: int | None = None
    ) -> dict[str, object]:
        """The request for these messages, as the configuration of the server has it."""
        server = self.server
        settings = {"temperature": server.temperature, "top_p": server.top_p}
        return {
            **server.body,
            "model": server.model,
            "messages": [dict(message) for message in messages],
            **{name: value for name, value in settings.items() if value is not None},
            "max_tokens": server.max_tokens if max_tokens is None else max_tokens,
        }

    async def complete(self, body: Mapping[str, object]) -> Completion:
        """Send one request and read its answer, both within ``timeout`` seconds.

        Raises :class:`AgentError` where there is no answer, whatever the reason.
        """
        # ASCII, so that text which is no Unicode is refused by the server and not by us.
        sent = json.dumps(body, separators=(",", ":")).encode()
        key = self._key()
        with chat(body, *self._address()) as call:
            reply = await self._exchange("POST", "/chat/completions", sent, key)
            if reply.status != 200:
                raise refused(reply, self.where, secret=key)
            digest = hashlib.sha256(sent).hexdigest()
            return call.answered(completion(reply, self.where, request=digest, secret=key))

    async def status(self, path: str) -> int:
        """The HTTP status of a GET of ``path`` on the server's host; 0 where nothing answers.

        Raises :class:`AgentError` where it cannot even be asked: no key, no such address.
        """
        key = self._key()
        try:
            return (await self._exchange("GET", path, None, key)).status
        except AgentError as error:
            if not error.retryable:
                raise
            return 0

    def _address(self) -> tuple[str, int | None]:
        """The server's host and port, or its socket, for a span."""
        try:
            parts = urlsplit(self.server.url or "")
            return parts.hostname or str(self.server.socket), parts.port
        except ValueError:  # no URL, which the call itself says
            return "", None

    async def _exchange(self, method: str, path: str, sent: bytes | None, key: str) -> Reply:
        import httpx

        if found := "; ".join(self.problems()):
            raise AgentError(found, retryable=False, unspent=True)
        request = self._request(method, path, sent, key)
        seconds = min(self.server.timeout, _PATIENCE) if sent is None else self.server.timeout
        try:
            with _unlogged():
                async with asyncio.timeout(seconds), self._transport() as transport:
                    return await self._reply(transport, request)
        except TimeoutError:
            failure = AgentError(f"{self.where}: no answer within {seconds:g} s; see `timeout`")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            what = f"{self.where}: cannot be reached: {_printable(error)}; is the server there?"
            failure = AgentError(what, unspent=True)
        except (httpx.TransportError, OSError):
            what = "the connection ended before the answer was whole, or it spoke no HTTP"
            failure = AgentError(f"{self.where}: {what}; see the server's log")
        # Out here it has no context: httpx's exceptions hold the request, and so the key.
        raise failure

    async def _reply(self, transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> Reply:
        import httpx

        response = await transport.handle_async_request(request)
        try:
            headers = {name.lower(): value for name, value in response.headers.items()}
            if response.status_code == 200:
                return Reply(200, headers, await self._read(response, self.server.max_bytes))
            body = b""
            with contextlib.suppress(AgentError, httpx.TransportError):
                body = await self._read(response, _ERROR_BYTES)  # the status says enough
            return Reply(response.status_code, headers, body)
        finally:
            await response.aclose()

    async def _read(self, response: httpx.Response, most: int) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise AgentError(f"{self.where}: a compressed answer, which nobody asked for")
        pieces: list[bytes] = []
        size = 0
        async for piece in response.aiter_raw():
            size += len(piece)
            if size > most:
                what = f"{self.where}: an answer of more than {most} bytes; see `max_bytes`"
                raise AgentError(what)
            pieces.append(piece)
        return b"".join(pieces)

    def _transport(self) -> httpx.AsyncHTTPTransport:
        import httpx

        # The system's certificates: a site's own authority is among them, not in httpx's bundle.
        secure = (self.server.url or "").lower().startswith("https:")
        return httpx.AsyncHTTPTransport(
            verify=ssl.create_default_context() if secure else False,
            trust_env=False,
            uds=None if self.socket is None else str(self.socket),
            retries=0,
        )

    def _request(self, method: str, path: str, sent: bytes | None, key: str) -> httpx.Request:
        import httpx

        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": "simgate",
        }
        if sent is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Authorization"] = f"Bearer {key}"
        try:
            url = httpx.URL(self.server.url or "http://localhost/v1")
            if sent is None:
                url = url.copy_with(raw_path=path.encode())
            else:
                url = url.copy_with(path=url.path.rstrip("/") + path)
        except httpx.InvalidURL:
            what = "url: no URL; write it as http://127.0.0.1:8080/v1"
            raise AgentError(what, retryable=False, unspent=True) from None
        return httpx.Request(method, url, headers=headers, content=sent)

    def problems(self) -> Iterator[str]:
        """What of the server's address cannot be right, wherever it is; nothing is contacted."""
        server = self.server
        if (server.url is None) == (server.socket is None):
            found = "none of the two" if server.url is None else "both"
            yield f"found {found} of url and socket; give one of them"
        if server.url is not None:
            yield from url_problems(server.url)
        unknown = tuple(unknown_placeholders(server.socket or "", ("run_dir",)))
        yield from (f"socket: {one}" for one in unknown)
        path = b"" if unknown or self.socket is None else os.fsencode(self.socket)
        if len(path) > _SOCKET_BYTES:
            yield (
                f"socket: a path of {len(path)} bytes; the system takes at most {_SOCKET_BYTES}, "
                "name one in /tmp or in another short folder"
            )

    def without_key(self, text: str) -> str:
        """Somebody else's text, with the key blotted out."""
        try:
            key = self._key()
        except AgentError:
            return text
        return text.replace(key, "***") if key else text

    def _key(self) -> str:
        """The key, ``""`` where there is none to send."""
        where = self.server.key
        if where is None:
            return ""
        if where.env is not None:
            name, key = f"the environment variable {where.env!r}", os.environ.get(where.env)
        else:
            name, key = f"the file {where.file!r}", _content(self.folder / (where.file or ""))
        if key is None:
            fault = f"key: {name} is not there, or cannot be read; set it before the run"
        elif not _KEY.fullmatch(key.strip()):
            fault = f"key: {name} does not hold a key; one line of printable ASCII, without blanks"
        else:
            return key.strip()
        raise AgentError(fault, retryable=False, unspent=True)


def url_problems(url: str) -> Iterator[str]:
    """What is wrong with the URL of a server; it is not quoted, since it may hold a password."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        yield "url: no URL; write it as http://127.0.0.1:8080/v1"
        return
    if parts.scheme not in ("http", "https") or not host:
        yield "url: not http:// or https:// and a host; write it as http://127.0.0.1:8080/v1"
    if parts.username is not None or parts.password is not None:
        yield "url: holds a user's name or password; give a key by `key`"
    if not re.fullmatch(r"[\x21-\x7e]+", url, re.ASCII):
        yield "url: holds blanks or other than ASCII; write them as %-escapes"


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """No line of httpcore's about what is done here: it logs headers and addresses."""
    for name in ("httpcore.connection", "httpcore.http11"):
        logging.getLogger(name).addFilter(_of_others)
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


def _of_others(_: logging.LogRecord) -> bool:
    return not _ours.get()


def _content(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeError):
        return None


def _printable(error: Exception) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", str(error))[:200]
