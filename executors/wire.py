"""What travels between driver, worker, guard and runner: plain JSON bytes, length first.

Standard library only.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from executors.base import (
    CommandWork,
    MpiWork,
    PythonWork,
    Task,
    TaskResult,
    TaskStatus,
)

TASK_DIR = "SIMGATE_TASK_DIR"
"""Environment entry that marks every process of a try with the try's directory."""
TRACEPARENT = "TRACEPARENT"
"""Environment entry by which a process joins a trace, in the form of the W3C's Trace Context."""
TRACE = "traceparent"
"""Where a result repeats it."""
_LENGTH = struct.Struct("!I")


def request(task: Task) -> bytes:
    """Everything a worker needs to know of ``task``; raises ``ValueError`` for NaN in it."""
    return json.dumps(
        {
            "id": task.id,
            "directory": str(task.directory),
            **_work(task),
            "walltime": task.resources.walltime,
            "ranks": task.resources.ranks,
            "candidate": dict(task.candidate),
            "output": _output(task),
            "files": dict(task.files),
            "env": {**task.env, TASK_DIR: str(task.directory)},
            "path": list(task.import_path),
            "reader": False,
        },
        allow_nan=False,
    ).encode()


def result(answer: bytes) -> TaskResult:
    """The result a worker answered; raises ``ValueError`` when it is not one."""
    try:
        fields = json.loads(answer)
        owner = fields["owner"]
        return TaskResult(
            status=TaskStatus(fields["status"]),
            value=fields["value"],
            reason=fields["reason"],
            exit_code=fields["exit_code"],
            log_tail=fields["log_tail"],
            seconds=fields["seconds"],
            host=owner["host"],
            began=float(owner.get("time", 0.0)),
            pid=int(owner.get("pid", 0)),
            traceparent=str(fields.get(TRACE, "")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a task result: {error!r}") from error


def send(sock: socket.socket, body: bytes) -> None:
    """Write one message."""
    sock.sendall(_LENGTH.pack(len(body)) + body)


def receive(sock: socket.socket) -> bytes | None:
    """Read one message; None when the other side is gone."""
    try:
        head = sock.recv(65536)
        if not head:
            return None
        while len(head) < 4:
            more = sock.recv(4 - len(head))
            if not more:
                return None
            head += more
        size = _LENGTH.unpack_from(head)[0] + 4
        if len(head) == size:  # nearly always: one message in one read
            return head[4:]
        parts, got = [head[4:]], len(head)
        while got < size:
            part = sock.recv(min(size - got, 1 << 20))
            if not part:
                return None
            parts.append(part)
            got += len(part)
        return b"".join(parts)
    except (ConnectionError, TimeoutError):
        return None


def _work(task: Task) -> dict[str, Any]:
    match task.work:
        case PythonWork(function=function, arguments=arguments):
            return {"kind": "python", "function": function, "arguments": dict(arguments)}
        case MpiWork(function=function, launcher=launcher, arguments=arguments):
            return {
                "kind": "mpi",
                "function": function,
                "arguments": dict(arguments),
                "argv": list(launcher),
            }
        case CommandWork(argv=argv):
            return {"kind": "command", "argv": list(argv)}


def _output(task: Task) -> dict[str, Any]:
    output = task.output
    if output.json is not None:
        return {"json": output.json}
    if output.exit_codes is not None:
        return {"exit_codes": {str(code): said for code, said in output.exit_codes.items()}}
    return {} if output.reader is None else {"reader": output.reader}
