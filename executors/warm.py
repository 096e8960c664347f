"""The guard's side of its warm runner. Standard library only."""

from __future__ import annotations

import os
import signal
import socket

from executors import processes, wire
from executors.spool import Spool


class RunnerProcess:
    """The guard's side of a runner: its process, its socket and what it prints."""

    def __init__(self, made_for: tuple[list[str], dict[str, str]], outer: socket.socket) -> None:
        self.made_for = made_for
        self.answer: bytes | None = None
        self.sock, theirs = socket.socketpair()
        self.spool = Spool()
        self._lost = False
        guard = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                for number in (signal.SIGCHLD, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                outer.close()
                self.sock.close()
                os.environ.update(made_for[1])
                from executors import runner

                runner.serve(theirs, guard, self.spool.become_writer())
            finally:
                os._exit(70)
        theirs.close()
        self.spool.become_reader()
        self.fds = (self.sock.fileno(), *self.spool.fds)

    def ready(self, fd: int) -> None:
        """Take in what one of our descriptors has to say."""
        if fd != self.sock.fileno():
            self.spool.drain()
            return
        self.answer = wire.receive(self.sock)
        self._lost = self.answer is None

    def answered(self) -> bool:
        """Whether the call is over: an answer came, or none ever will."""
        return self.answer is not None or self._lost

    def gone(self) -> bool:
        """Whether the process ended while nobody asked anything of it."""
        return (
            self._lost
            or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        )

    def end(self) -> int:
        """Kill, collect, close; the exit code as subprocess counts it."""
        if not self._lost:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        processes.kill_descendants(os.getpid())
        self.spool.drain()
        self.spool.close()
        self.sock.close()
        return os.waitstatus_to_exitcode(status)
