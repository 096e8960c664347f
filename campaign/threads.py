"""One BLAS thread for a while: the same digits whatever the machine's thread count.

A threaded BLAS cuts its sums by the number of threads, so results differ in the last digits and a
search that follows them differs in all. On small matrices, beside busy workers, it is also many
times slower than one thread. OpenBLAS is what the wheels of NumPy and SciPy carry, and Debian's
package; with any other library, or outside Linux, nothing is changed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias

_Switch: TypeAlias = "tuple[Callable[[], int], Callable[[int], None]]"

_NAMES = tuple(
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "", "_")
)
_lock = threading.Lock()
_inside: list[int] = []  # thread counts to restore, while anyone is inside
_users = [0]


@contextmanager
def one_thread() -> Iterator[None]:
    """Process-wide; callers may overlap, the last to leave restores what the first found."""
    switches = _switches()
    with _lock:
        if not _users[0]:
            _inside[:] = [get() for get, _ in switches]
        _users[0] += 1
        for _, put in switches:
            put(1)
    try:
        yield
    finally:
        with _lock:
            _users[0] -= 1
            if not _users[0]:
                for (_, put), count in zip(switches, _inside, strict=True):
                    put(count)


@lru_cache(maxsize=1)
def _switches() -> tuple[_Switch, ...]:
    """Of every OpenBLAS loaded: import what uses one before the first call."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return ()
    paths = sorted({line.split(maxsplit=5)[-1] for line in lines if "openblas" in line})
    return tuple(found for path in paths if (found := _switch(path)) is not None)


def _switch(path: str) -> _Switch | None:
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    for get_name, put_name in _NAMES:
        if hasattr(library, put_name):
            get, put = getattr(library, get_name), getattr(library, put_name)
            put.argtypes, put.restype = [ctypes.c_int], None
            return get, put
    return None
