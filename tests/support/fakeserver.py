"""A server of chat completions that behaves as a script says: well, badly, or not at all.

A real HTTP server, in threads, on a TCP port or a Unix socket::

    with FakeServer(busy(retry_after=2), answers(lambda body: [{"x": 0.5}])) as server:
        ...  # ask server.url, or the socket given by socket=
    assert server.calls == 2

Each POST plays the next behaviour of the script, the last one again and again. Every POST is kept
in ``requests`` and the tokens told are summed up. A GET plays ``gets`` in the same way, by default
200, and is kept by its path in ``looks``. A behaviour is a function of an :class:`Exchange`; the
ones below are made by calling, and can be wrapped by others (see :func:`only_formats`).

As a program it serves one good answer for ever, for what starts a server by itself::

    python fakeserver.py --socket PATH [--candidates JSON] [--loading N] [--stubborn] [--fails TEXT]
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket as sockets
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

_HEAD = 64 * 1024  # bytes of a request's head, at most
_PHRASES = {200: "OK", 400: "Bad Request", 429: "Too Many Requests", 503: "Service Unavailable"}


class ClientGoneError(Exception):
    """Nobody reads the answer any more."""


@dataclass(frozen=True)
class Request:
    """What was sent; the names of headers in small letters."""

    method: str
    path: str
    headers: Mapping[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw)
        return parsed


@dataclass
class Exchange:
    """One request and the connection it came by; ``number`` counts the calls, from 1."""

    server: FakeServer
    connection: sockets.socket
    request: Request
    number: int

    def send(self, data: bytes) -> None:
        """Send as it is; ``ClientGoneError`` where nobody listens."""
        try:
            self.connection.sendall(data)
        except OSError as error:
            raise ClientGoneError from error

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Something')}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    def reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A whole answer; JSON unless the headers say otherwise."""
        usual = {"content-type": "application/json", "content-length": str(len(body))}
        self.head(status, usual | dict(headers or {}))
        self.send(body)

    def listens(self, seconds: float | None) -> bool:
        """Wait; whether the client is still there after it. ``None`` waits until it is not."""
        ready, _, _ = select.select([self.connection], [], [], seconds)
        return not ready

    def reset(self) -> None:
        """End the connection at once, without the goodbye of TCP."""
        self.connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


Behaviour: TypeAlias = Callable[[Exchange], None]


class FakeServer:
    """See the module. ``input_tokens`` and ``output_tokens`` are what the answers' usage said."""

    def __init__(
        self,
        *script: Behaviour,
        socket: Path | None = None,
        gets: Sequence[Behaviour] = (),
    ) -> None:
        self.script, self.socket = script or (says("{}"),), socket
        self.gets = tuple(gets) or (healthy(),)
        self.requests: list[Request] = []
        self.looks: list[str] = []
        self.input_tokens = self.output_tokens = 0
        self._lock = threading.Lock()
        self._open: set[sockets.socket] = set()
        self._threads: list[threading.Thread] = []
        family = sockets.AF_INET if socket is None else sockets.AF_UNIX
        self._listener = sockets.socket(family, sockets.SOCK_STREAM)
        self._listener.bind(("127.0.0.1", 0) if socket is None else str(socket))
        self._listener.listen(64)
        self._closed = False

    @property
    def calls(self) -> int:
        """POST requests so far."""
        return len(self.requests)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.body for request in self.requests]

    @property
    def address(self) -> str:
        """``127.0.0.1:PORT``."""
        return "{}:{}".format(*self._listener.getsockname())

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    @property
    def https_url(self) -> str:
        """As if it spoke TLS, which it does not."""
        return f"https://{self.address}/v1"

    def __enter__(self) -> FakeServer:
        self._begin(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def die(self) -> None:
        """Refuse further connections, and end those that are open."""
        with self._lock:
            self._closed = True
            _hang_up(self._listener)  # wakes the thread that accepts
            self._listener.close()
            for connection in self._open:
                _hang_up(connection)

    def told(self, usage: Mapping[str, int]) -> None:
        """Sum up what an answer says it used."""
        with self._lock:
            self.input_tokens += usage["prompt_tokens"]
            self.output_tokens += usage["completion_tokens"]

    def _begin(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._open.add(connection)
                self._begin(self._serve, connection)

    def _serve(self, connection: sockets.socket) -> None:
        try:
            request = _received(connection)
            if request is None:
                _send_quietly(connection, b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                return
            behaviour, number = self._next(request)
            behaviour(Exchange(self, connection, request, number))
        except (ClientGoneError, OSError):
            pass  # the client gave up, or the server was closed
        finally:
            with self._lock:
                self._open.discard(connection)
            _hang_up(connection)
            connection.close()

    def _next(self, request: Request) -> tuple[Behaviour, int]:
        with self._lock:
            if request.method != "POST":
                self.looks.append(request.path)
                return self.gets[min(len(self.looks), len(self.gets)) - 1], len(self.looks)
            self.requests.append(request)
            return self.script[min(self.calls, len(self.script)) - 1], self.calls


def answers(make: Callable[[dict[str, Any]], Iterable[object]], **more: Any) -> Behaviour:
    """A good answer: the candidates that ``make`` gives for the request's body.

    ``more`` as for :func:`says`; ``rationale`` is the answer's.
    """
    rationale = more.pop("rationale", "as the test wants it")

    def behave(exchange: Exchange) -> None:
        candidates = list(make(exchange.request.body))
        says(json.dumps({"rationale": rationale, "candidates": candidates}), **more)(exchange)

    return behave


def says(
    content: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    usage: Mapping[str, int] | bool | None = True,
    response_id: str | None = None,
) -> Behaviour:
    """A completion with this content.

    ``usage`` True counts four bytes as a token, None leaves it out. Each answer has an id of its
    own unless one is given.
    """

    def behave(exchange: Exchange) -> None:
        message: dict[str, object] = {"role": "assistant", "content": content}
        if refusal is not None:
            message["refusal"] = refusal
        body: dict[str, object] = {
            "id": f"chatcmpl-{exchange.number}" if response_id is None else response_id,
            "object": "chat.completion",
            "model": exchange.request.body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        }
        counted = _usage(exchange.request.raw, content or "") if usage is True else usage
        if counted:
            exchange.server.told(counted)
            body["usage"] = dict(counted)
        exchange.reply(200, json.dumps(body).encode(), {"x-request-id": f"req-{exchange.number}"})

    return behave


def canned(
    body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None
) -> Behaviour:
    """Exactly this body, whatever is asked."""
    data = body.encode() if isinstance(body, str) else body
    return lambda exchange: exchange.reply(status, data, headers)


def recorded(case: Path) -> Behaviour:
    """The answer in a file of recorded exchanges."""
    response = json.loads(case.read_text())["response"]
    headers = {k: v for k, v in response["headers"].items() if k != "content-length"}
    return canned(response["body"], response["status"], headers)


def fails(
    status: int,
    kind: str = "server_error",
    message: str = "no",
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    """An error as OpenAI's servers word it."""
    error = {"error": {"message": message, "type": kind, "code": status}}
    named = {"x-request-id": "req-failed"} | dict(headers or {})
    return canned(json.dumps(error), status, named)


def busy(retry_after: str | float | None = None) -> Behaviour:
    """429, with or without the time to wait: seconds, or a date as HTTP writes it."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return fails(429, "rate_limit_error", "slow down", headers)


def loading() -> Behaviour:
    """503 of a server whose model is not there yet."""
    return fails(503, "unavailable_error", "Loading model")


def only_formats(*kinds: str, then: Behaviour) -> Behaviour:
    """400 on any ``response_format`` but those of these types; else what ``then`` does."""

    def behave(exchange: Exchange) -> None:
        wanted = exchange.request.body.get("response_format")
        if wanted is not None and wanted["type"] not in kinds:
            said = f"response_format: {wanted['type']} is not supported"
            fails(400, "invalid_request_error", said)(exchange)
        else:
            then(exchange)

    return behave


def drops(after: bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{") -> Behaviour:
    """The connection ends after these bytes."""
    return lambda exchange: exchange.send(after)


def resets() -> Behaviour:
    """The connection is torn down without a byte."""
    return lambda exchange: exchange.reset()


def drips(every: float = 0.02) -> Behaviour:
    """200, and then a blank now and then, until the client gives up."""

    def behave(exchange: Exchange) -> None:
        exchange.head(200, {"content-type": "application/json"})
        while exchange.listens(every):
            exchange.send(b" ")

    return behave


def hangs() -> Behaviour:
    """Nothing at all, until the client gives up."""

    def behave(exchange: Exchange) -> None:
        exchange.listens(None)

    return behave


def floods(size: int = 10 * 2**20, told: bool = True) -> Behaviour:
    """A completion of ``size`` bytes; ``told`` whether its length is said beforehand."""

    def behave(exchange: Exchange) -> None:
        frame = b'{"choices":[{"message":{"content":"%s"}}]}'
        body = frame % (b"x" * (size - len(frame) + 2))
        exchange.head(200, {"content-length": str(size)} if told else {})
        exchange.send(body)

    return behave


def html() -> Behaviour:
    """200 with the page of some portal."""
    page = "<!doctype html><html><body>Please sign in</body></html>"
    return canned(page, headers={"content-type": "text/html"})


def babbles() -> Behaviour:
    """What is no HTTP."""
    return lambda exchange: exchange.send(b"220 smtp.example.org ESMTP ready\r\n")


def dies() -> Behaviour:
    """The server goes away: this connection and all later ones."""
    return lambda exchange: exchange.server.die()


def crashes() -> Behaviour:
    """The process of the server ends at once, in the middle of an answer."""
    return lambda _: os.kill(os.getpid(), signal.SIGKILL)


def healthy() -> Behaviour:
    return canned('{"status":"ok"}')


def _usage(asked: bytes, content: str) -> dict[str, int]:
    read, written = len(asked) // 4 + 1, len(content.encode(errors="replace")) // 4 + 1
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
    }


def _received(connection: sockets.socket) -> Request | None:
    """A whole request; None for what is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        data += more
        if not more or len(data) > _HEAD or not data[:1].isalpha():
            return None
    head, _, raw = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    while len(raw) < int(headers.get("content-length", "0")):
        more = connection.recv(65536)
        if not more:
            return None
        raw += more
    method, path, _ = first.split(" ")
    return Request(method, path, headers, raw)


def _send_quietly(connection: sockets.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        return


def _hang_up(connection: sockets.socket) -> None:
    try:
        connection.shutdown(sockets.SHUT_RDWR)
    except OSError:
        return


def main() -> None:
    """Serve for ever, as the arguments say; see the module."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--candidates", type=json.loads, default=[])
    parser.add_argument("--loading", type=int, default=0)
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--fails", default="")
    parser.add_argument("--crash-once", type=Path, help="unless this is there")
    options = parser.parse_args()
    if options.fails:
        print(options.fails, flush=True)
        sys.exit(3)
    if options.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(f"serving as process {os.getpid()}", flush=True)
    script = [good := answers(lambda _: options.candidates)]
    if options.crash_once is not None and not options.crash_once.exists():
        options.crash_once.touch()
        script = [good, crashes()]
    looks = [*[loading()] * options.loading, healthy()]
    with FakeServer(*script, socket=options.socket, gets=looks):
        signal.pause()


if __name__ == "__main__":
    main()
