"""One writer per run directory, without ``flock``: a lock file made by ``link``.

``link`` is atomic on every file system a cluster mounts, network ones included. The file names
the host, pid, start time and boot of its holder. On the holder's host a dead holder is seen at
once; on another host it is presumed dead when its heartbeat (the file's time stamp) is older
than ``LEASE`` seconds by the file server's own clock.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

NAME = "writer.lock"
BEAT = 10.0
LEASE = 120.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes: enough to tell whether it still lives."""

    host: str
    pid: int
    started: str  # clock ticks since boot, from /proc: a recycled pid differs
    boot: str

    @classmethod
    def me(cls) -> Self:
        pid = os.getpid()
        return cls(socket.gethostname(), pid, _start_ticks(pid), _boot_id())


class LockHeldError(Exception):
    """Another driver writes this run; says which."""

    def __init__(self, holder: Holder, directory: Path) -> None:
        super().__init__(holder, directory)
        self.holder = holder
        self.directory = directory

    def __str__(self) -> str:
        return (
            f"{self.directory}: written by process {self.holder.pid} on host "
            f"{self.holder.host!r}; wait for it to end, or stop it there"
        )


class WriterLock:
    """The right to write a run, kept by a heartbeat until :meth:`release`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._stop = threading.Event()
        self._beat: threading.Thread | None = None
        self._inode = 0

    def acquire(self) -> None:
        """Take the lock, or raise :class:`LockHeldError` naming who has it."""
        mine = self.path.with_name(f"{NAME}.{socket.gethostname()}.{os.getpid()}")
        mine.write_bytes(msgspec.json.encode(asdict(Holder.me())))
        try:
            self._link(mine)
            self._inode = mine.stat().st_ino
        finally:
            mine.unlink(missing_ok=True)
        self._beat = threading.Thread(target=self._beats, name="ledger-lock", daemon=True)
        self._beat.start()

    def held(self) -> bool:
        """Whether the lock file is still ours; a driver that slept past its lease lost it."""
        try:
            return self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def release(self) -> None:
        self._stop.set()
        if self._beat is not None:
            self._beat.join()
        if self.held():
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.release()

    def _link(self, mine: Path) -> None:
        for _ in range(20):
            try:
                os.link(mine, self.path)
            except FileExistsError:
                holder = alive_holder(self.path.parent)
                if holder is not None:
                    raise LockHeldError(holder, self.path.parent) from None
                # Dead: move it aside under a name of its own, so that two who see the same
                # dead holder cannot remove each other's fresh lock.
                aside = mine.with_suffix(".dead")
                with contextlib.suppress(FileNotFoundError):
                    self.path.rename(aside)
                    aside.unlink()
            else:
                return
        raise LockHeldError(Holder("unknown", 0, "", ""), self.path.parent)

    def _beats(self) -> None:
        while not self._stop.wait(BEAT):
            with contextlib.suppress(OSError):
                if self.held():
                    os.utime(self.path)


def alive_holder(directory: Path) -> Holder | None:
    """Who writes the run in ``directory`` now; None when nobody does or the holder is dead."""
    path = directory / NAME
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=Holder)
    except (FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
        return None
    if holder.host == socket.gethostname():
        same = holder.boot == _boot_id() and holder.started == _start_ticks(holder.pid)
        return holder if same else None
    return holder if _age(path) < LEASE else None


def _age(path: Path) -> float:
    """Seconds since ``path`` was touched, by the clock of the file system it lies on."""
    probe = path.with_name(f"{NAME}.clock.{os.getpid()}")
    try:
        probe.write_bytes(b"")
        now = probe.stat().st_mtime
        probe.unlink()
    except OSError:  # a reader without write permission
        now = time.time()
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return LEASE


def _start_ticks(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
