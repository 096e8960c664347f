"""Watching processes of any parentage end: each holds a connection that closes with it."""

from __future__ import annotations

import contextlib
import socket
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 60.0
"""Seconds for something that is certain to happen."""

_DAEMON = """
import os, signal
there, here = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
{joins}
        os.write(here, b"!")
        watched.recv(1)
    os._exit(0)
os.wait()
os.read(there, 1)
"""


@dataclass(slots=True)
class Onlookers:
    """Who joined. ``joins`` is Python code by which a process lets itself be watched."""

    listener: socket.socket
    seen: list[socket.socket] = field(default_factory=list)

    @property
    def joins(self) -> str:
        port = self.listener.getsockname()[1]
        return (
            "import socket\n"
            f"watched = socket.create_connection(('127.0.0.1', {port}))\n"
            "watched.set_inheritable(False)\n"
        )

    @property
    def daemon(self) -> str:
        """Python code that leaves a process behind which joined, and minds no SIGTERM."""
        return _DAEMON.format(joins=textwrap.indent(self.joins, 8 * " "))

    def wait_for(self, count: int) -> None:
        """Until ``count`` more processes have joined."""
        for _ in range(count):
            self.listener.settimeout(PATIENCE)
            connection, _ = self.listener.accept()
            connection.settimeout(PATIENCE)
            self.seen.append(connection)

    def take_who_came(self) -> None:
        """Watch those that joined so far, however many they are."""
        self.listener.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                connection, _ = self.listener.accept()
                connection.settimeout(PATIENCE)
                self.seen.append(connection)

    def all_gone(self) -> bool:
        """Whether every process that is watched has ended; waits for it."""
        return all(_closed(one) for one in self.seen)


@contextmanager
def onlookers() -> Iterator[Onlookers]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Onlookers(listener)
        try:
            yield found
        finally:
            for one in found.seen:
                one.close()


def _closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
