"""One writer per run directory, without ``flock``: a lock file made by ``link``.

``link`` is atomic on every file system a cluster mounts, network ones included. The file names
the host, pid, start time and boot of its holder. On the holder's host a dead holder is seen at
once; on another host it is presumed dead when its heartbeat (the file's time stamp) is older
than ``LEASE`` seconds by the file server's own clock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
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
        self._fd = -1  # kept open, so that no later file can get its inode's number
        self._inode = 0

    def acquire(self) -> None:
        """Take the lock, or raise :class:`LockHeldError` naming who has it."""
        mine = self.path.with_name(f"{NAME}.{socket.gethostname()}.{os.getpid()}")
        # One left by a driver of the same pid may be that driver's lock: never write into it.
        mine.unlink(missing_ok=True)
        # Closed before anybody can see it: only then is it all there on a network file system.
        mine.write_bytes(msgspec.json.encode(asdict(Holder.me())))
        try:
            self._fd = os.open(mine, os.O_RDONLY | os.O_CLOEXEC)
            _claim(mine, self.path)
            self._inode = os.fstat(self._fd).st_ino
        except BaseException:
            self._forget()
            raise
        finally:
            mine.unlink(missing_ok=True)
        self._stop.clear()
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
            self._beat = None
        with contextlib.suppress(OSError):  # dead by our own end as well
            if self.held():
                self.path.unlink(missing_ok=True)
        self._forget()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _forget(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._inode = -1, 0

    def _beats(self) -> None:
        while not self._stop.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self._fd)


def _claim(mine: Path, path: Path) -> None:
    """Make ``path`` a link to ``mine``; raise :class:`LockHeldError` while a living one has it.

    Two who see the same dead holder must not remove each other's fresh lock. So whoever wants to
    remove a dead one first claims the turn to do it, a file named after what the dead one wrote,
    and looks again. A turn whose owner died is a dead one like any other.
    """
    while True:
        try:
            os.link(mine, path)
            return
        except FileExistsError:
            if _same_file(mine, path):  # a network file system lost the first answer
                return
        dead = _content(path)
        if dead is None:
            continue
        _refuse_alive(path)
        turn = path.with_name(f"{NAME}.after.{hashlib.sha256(dead).hexdigest()[:16]}")
        _claim(mine, turn)
        try:
            if _content(path) == dead:
                _refuse_alive(path)
                path.unlink(missing_ok=True)
        finally:
            turn.unlink(missing_ok=True)


def _refuse_alive(path: Path) -> None:
    holder = _alive(path)
    if holder is not None:
        raise LockHeldError(holder, path.parent)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def alive_holder(directory: Path) -> Holder | None:
    """Who writes the run in ``directory`` now; None when nobody does or the holder is dead."""
    return _alive(directory / NAME)


def seen(directory: Path) -> tuple[Holder, float] | None:
    """Who has the lock, and the time stamp of its last heartbeat; None where there is no lock.

    Nothing is written, so the stamp is by a clock that may not be ours.
    """
    path = directory / NAME
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=Holder)
        return holder, path.stat().st_mtime
    except (OSError, msgspec.DecodeError):
        return None


def lives_here(holder: Holder) -> bool | None:
    """Whether a holder on this host lives; None for one on another, of which only a beat tells."""
    if holder.host != socket.gethostname():
        return None
    return holder.boot == _boot_id() and holder.started == _start_ticks(holder.pid)


def bury(directory: Path, holder: Holder) -> None:
    """Let the next driver take the lock of a holder on another host that is known to be dead.

    Its heartbeat is set back, on the very file it left; were it alive, it would beat again.
    """
    with contextlib.suppress(OSError, msgspec.DecodeError):
        fd = os.open(directory / NAME, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if msgspec.json.decode(os.read(fd, 4096), type=Holder) == holder:
                os.utime(fd, (0, 0))
        finally:
            os.close(fd)


def _alive(path: Path) -> Holder | None:
    try:
        holder = msgspec.json.decode(path.read_bytes(), type=Holder)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None
    here = lives_here(holder)
    alive = _age(path) < LEASE if here is None else here
    return holder if alive else None


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
