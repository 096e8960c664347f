"""Linux process trees: who descends from whom, how to end all of them, who is who.

Standard library only: the guard, the lifeline and the driver all use it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
_TRACKER_PATIENCE = 1.0  # seconds
_STARTING = 1.0  # seconds in which a new process has its environment
_KERNEL_THREAD = 0x00200000  # among the flags of a process
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Orphans among our descendants become our children, so a daemon cannot slip away."""
    _libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Signal us when the parent's thread that forked us ends; at once if it has gone already."""
    _libc.prctl(_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def start_ticks(pid: int) -> int | None:
    """When ``pid`` started, in clock ticks since boot; None when it is dead or a zombie."""
    fields = _stat(pid)
    return None if fields is None or fields[0] in (b"Z", b"X") else int(fields[19])


def boot_id() -> str:
    """The kernel's name of this boot; process numbers mean nothing across two of them."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def children(pid: int) -> list[int]:
    """Direct children of ``pid``, zombies included."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - pathlib doubles the cost
        for thread in threads:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:  # noqa: PTH123
                found += map(int, listing.read().split())
    except FileNotFoundError:
        if Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
            return found  # the process went away meanwhile
        # A kernel built without the list.
        return [child for child, fields in _processes() if int(fields[1]) == pid]
    except (PermissionError, ProcessLookupError):
        pass
    return found


def descendants(pid: int, spare: Collection[int] = ()) -> list[int]:
    """Everything below ``pid``, nearest first; trees rooted in ``spare`` are left out."""
    found: list[int] = []
    front = [pid]
    while front:
        front = [c for p in front for c in children(p) if c not in spare and c not in found]
        found += front
    return found


def signal_descendants(pid: int, number: int, spare: Collection[int] = ()) -> bool:
    """Send a signal to everything below ``pid``; whether there was anything alive."""
    alive = False
    for child in descendants(pid, spare):
        if start_ticks(child) is None:
            continue  # a zombie: dead, waiting to be reaped
        alive = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child, number)
    return alive


def end_descendants(pid: int, grace: float) -> None:
    """SIGTERM for everything below ``pid``, and ``grace`` seconds later SIGKILL for the rest."""
    deadline = time.monotonic() + grace
    if signal_descendants(pid, signal.SIGTERM):
        while time.monotonic() < deadline and signal_descendants(pid, 0):
            time.sleep(0.005)
    kill_descendants(pid)


def kill_descendants(pid: int, spare: Collection[int] = (), seconds: float = 3.0) -> bool:
    """SIGKILL everything below ``pid`` until nothing is left; whether that was reached in time."""
    return _kill_all(lambda: descendants(pid, spare), seconds)


def kill_group(group: int, seconds: float = 3.0) -> bool:
    """SIGKILL a process group until nothing is left; whether that was reached in time."""
    return _kill_all(
        lambda: [pid for pid, fields in _processes() if int(fields[2]) == group], seconds
    )


def _kill_all(find: Callable[[], list[int]], seconds: float) -> bool:
    """Kill what ``find`` finds, again and again.

    Again, because what forks while it is being killed leaves orphans that show up a moment later.
    Python's resource trackers are left until last: they end by themselves when their processes are
    gone, and remove the semaphores and shared memory these would otherwise leave on the machine.
    """
    began = time.monotonic()
    while alive := [pid for pid in find() if start_ticks(pid) is not None]:
        waited = time.monotonic() - began
        if waited > seconds:
            return False
        for pid in alive:
            if waited > _TRACKER_PATIENCE or not _is_tracker(pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    return True


def kill_marked(marker: bytes, seconds: float = 3.0) -> bool:
    """SIGKILL every process of ours whose environment holds the entry ``marker``.

    Until none is left; returns whether that was reached in time. It is the last resort when
    whoever watched over them was itself killed.
    """
    return _kill_all(
        lambda: [pid for pid, fields in list(_processes()) if _bears(pid, fields, marker)], seconds
    )


def _bears(pid: int, fields: list[bytes], marker: bytes) -> bool:
    """Whether a process bears the mark; one that is being started is waited for to tell."""
    if pid == os.getpid() or fields[0] in (b"Z", b"X") or int(fields[6]) & _KERNEL_THREAD:
        return False
    deadline = time.monotonic() + _STARTING
    while (entries := _entries(pid, "environ")) == [b""] == _entries(pid, "cmdline"):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return marker in entries


def _entries(pid: int, name: str) -> list[bytes]:
    """What a file of a process under /proc lists; ``[b""]`` while it is being started."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as listing:  # noqa: PTH123
            return listing.read().split(b"\0")
    except OSError:
        return []


def kill_exactly(pid: int, ticks: int) -> None:
    """SIGKILL ``pid`` if it is still the process that started at ``ticks``."""
    if start_ticks(pid) == ticks:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat from the third on; the name before them may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - called for every process
            return stat.read().rpartition(b")")[2].split()
    except OSError:
        return None


def _processes() -> Iterator[tuple[int, list[bytes]]]:
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (fields := _stat(int(name))) is not None:
            yield int(name), fields


def _is_tracker(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:  # noqa: PTH123
            return b"multiprocessing.resource_tracker" in line.read()
    except OSError:
        return False
