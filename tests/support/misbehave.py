"""Task functions that behave, and others that do what tasks should not do."""

# ruff: noqa: ARG001 - a task is called with its candidate whether it looks at it or not
# ruff: noqa: PTH109

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

Candidate = Mapping[str, Any]


class KeywordOnlyError(Exception):
    """Cannot be unpickled: its constructor takes no positional argument."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")


def double(candidate: Candidate, *, factor: float = 2.0) -> dict[str, float]:
    return {"y": factor * candidate["x"]}


def surroundings(candidate: Candidate) -> dict[str, Any]:
    """What a task sees, and a few things it moves."""
    seen = {
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "greeting": os.environ.get("GREETING"),
        "left": os.environ.get("LEFT_BEHIND"),
        "threads": os.environ["OMP_NUM_THREADS"],
        "parsl": [name for name in os.environ if name.startswith("PARSL_")],
        "sigterm": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "stdin": sys.stdin.read(),
        "here": sys.path[0] == str(Path(__file__).parent),
    }
    print("hello from", candidate["x"])
    print("careful", file=sys.stderr)
    subprocess.run(["sh", "-c", "echo child"], check=True)
    os.environ["LEFT_BEHIND"] = "yes"
    sys.path.insert(0, "/nowhere")
    os.chdir("/")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return seen


def closes_streams(candidate: Candidate) -> str:
    print("before")
    sys.stdout.close()
    os.close(1)
    os.close(2)
    return "closed"


def numpy_values(candidate: Candidate) -> dict[str, Any]:
    import numpy as np

    return {
        "scalar": np.float64(1.5),
        "single": np.float32(0.5),
        "count": np.int64(3),
        "flag": np.bool_(True),
        "field": np.arange(4).reshape(2, 2),
    }


def answer(candidate: Candidate) -> Any:
    """Whatever ``candidate["kind"]`` says, most of it no answer at all."""
    loop: list[Any] = []
    loop.append(loop)
    return {
        "nan": {"p": [1, {"q": float("nan")}]},
        "object": {"p": [1, object()]},
        "set": {"p": {1, 2}},
        "key": {("a", 1): 2},
        "loop": loop,
        "large": "x" * (2 << 20),
        "bytes": b"raw",
    }[candidate["kind"]]


def raises(candidate: Candidate) -> NoReturn:
    errors: dict[str, Callable[[], BaseException]] = {
        "keyword_only": lambda: KeywordOnlyError(code=3),
        "plain": lambda: ValueError("density\nis negative"),
        "exit": lambda: SystemExit(3),
        "interrupt": KeyboardInterrupt,
        "mute": Mute,
    }
    raise errors[candidate["kind"]]()


def crashes(candidate: Candidate) -> NoReturn:
    """End the process without a word."""
    if candidate["kind"] == "exit":
        os._exit(7)
    os.kill(os.getpid(), getattr(signal, candidate["kind"]))
    time.sleep(60)
    raise AssertionError


def kills_its_guard(candidate: Candidate) -> NoReturn:
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
    raise AssertionError


def prints_much(candidate: Candidate) -> dict[str, int]:
    line = b"x" * 1023 + b"\n"
    for _ in range(1024 * candidate["megabytes"]):
        os.write(1, line)
    print("the end")
    return {"megabytes": candidate["megabytes"]}


def prints_forever(candidate: Candidate) -> NoReturn:
    while True:
        os.write(1, b"x" * 65536)


def sleeps(candidate: Candidate) -> None:
    print("going to sleep")
    time.sleep(600)


def ignores_sigterm(candidate: Candidate) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sh", "-c", "trap '' TERM; while true; do sleep 1; done"])
    while True:
        time.sleep(1)


def forks_a_daemon(candidate: Candidate) -> dict[str, int]:
    """Leave a process behind that detached itself in every way there is; answers its number."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        daemon = os.fork()
        if daemon == 0:
            os.closerange(0, 100)
            os.chdir("/")
            time.sleep(600)
        os.write(writing, str(daemon).encode())
        os._exit(0)
    os.wait()
    return {"daemon": int(os.read(reading, 20))}


def leaves_a_thread(candidate: Candidate) -> int:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    return os.getpid()


def deletes_its_directory(candidate: Candidate) -> dict[str, int]:
    shutil.rmtree(os.getcwd())
    return {"deleted": 1}


def touches(candidate: Candidate) -> dict[str, int]:
    """Say on disk that it ran, how often, and then wait for the word to go on."""
    folder = Path(candidate["folder"])
    with (folder / candidate["name"]).open("a") as log:
        log.write(f"{os.getpid()}\n")
    while candidate.get("wait") and not (folder / "go").exists():
        time.sleep(0.01)
    return {"x": 1}


def reads(directory: str) -> dict[str, Any]:
    """A reader: the sum of what the program wrote."""
    words = (Path(directory) / "numbers.txt").read_text().split()
    return {"sum": sum(map(float, words)), "cwd": os.getcwd() == directory}


async def asynchronous(candidate: Candidate) -> None:
    return None


not_a_function = 3
