"""Dispatch: tasks of no work through our executors against bare Parsl, in the same run.

    python tests/bench/dispatch.py [--tasks 2000] [--repeats 5]

Each measurement is a process of its own; the contestants take turns, so that a busy machine is busy
for all of them; what counts is the median. Bare Parsl submits every task at once and waits for all;
so do we, and besides we make a directory, a result file and a deadline for each.

Goals, for each kind of executor, against bare Parsl as it comes (its log on): at most 1.15 times
its time, and at most 1 KB of the driver's memory kept per finished task, that is: by how much it
grows over the tasks when it has run as many before. The time against Parsl with its log off is
shown beside it. Files go to memory (/dev/shm) where there is one, or a slow disk would decide
between those who write more and those who write less: --folder for another place.
Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORKERS = 2
TIME_GOAL, MEMORY_GOAL = 1.15, 1024
MODULE = "def nothing(candidate):\n    return {'value': 1.0}\n"
MODES = ("ours", "parsl", "parsl, log off")
KINDS = ("local", "threads")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "MODE"), help="one measurement, as JSON")
    options = parser.parse_args()
    if options.one:
        kind, mode = options.one
        print(json.dumps(_measure(kind, mode, options.tasks, options.folder)))
        return 0
    missed = False
    for kind in KINDS:
        runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
        for _ in range(options.repeats):
            for mode in MODES:
                runs[mode].append(_in_process(kind, mode, options))
        missed |= _report(kind, options.tasks, runs)
    return int(missed)


def _report(kind: str, tasks: int, runs: dict[str, list[dict[str, float]]]) -> bool:
    """Print one kind's table; whether a goal was missed."""
    middle = {m: statistics.median(run["seconds"] / tasks for run in rs) for m, rs in runs.items()}
    kept = {m: statistics.median(run["bytes"] / tasks for run in rs) for m, rs in runs.items()}
    print(f"\n{kind}: {tasks} tasks, {WORKERS} workers, median of {len(runs['ours'])}")
    print(f"{'':<16}{'us/task':>9}{'min':>8}{'max':>8}{'tasks/s':>9}{'driver B/task':>15}")
    for mode, measured in runs.items():
        each = [run["seconds"] / tasks * 1e6 for run in measured]
        print(
            f"{mode:<16}{middle[mode] * 1e6:>9.0f}{min(each):>8.0f}{max(each):>8.0f}"
            f"{1 / middle[mode]:>9.0f}{kept[mode]:>15.0f}"
        )
    ratio, quiet = (middle["ours"] / middle[mode] for mode in MODES[1:])
    late, fat = ratio > TIME_GOAL, kept["ours"] > MEMORY_GOAL
    print(f"time / parsl          {ratio:7.2f}  goal <= {TIME_GOAL}  {'MISSED' if late else 'met'}")
    print(f"time / parsl, log off {quiet:7.2f}")
    print(
        f"bytes kept per task   {kept['ours']:7.0f}  goal <= {MEMORY_GOAL}  "
        f"{'MISSED' if fat else 'met'}",
        flush=True,
    )
    return late or fat


def _in_process(kind: str, mode: str, options: argparse.Namespace) -> dict[str, float]:
    argv = [sys.executable, __file__, "--tasks", str(options.tasks), "--one", kind, mode]
    argv += ["--folder", options.folder] if options.folder else []
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{kind}, {mode}: exit code {done.returncode}\n{done.stderr}")
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _measure(kind: str, mode: str, tasks: int, place: str | None) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="dispatch-", dir=place) as folder:
        if mode == "ours":
            sys.path.insert(0, str(ROOT))
            return asyncio.run(_ours(kind, tasks, Path(folder)))
        return _parsl(kind, mode, tasks, Path(folder))


async def _ours(kind: str, tasks: int, folder: Path) -> dict[str, float]:
    from executors import PythonWork, Resources, Task, open_executors
    from executors.config import ExecutorConfig, LocalConfig, ThreadsConfig

    (folder / "bench_nothing.py").write_text(MODULE)
    config: ExecutorConfig = (
        LocalConfig(kind="local", workers=WORKERS)
        if kind == "local"
        else ThreadsConfig(kind="threads", workers=WORKERS)
    )

    def task(name: str) -> Task:
        return Task(
            id=name,
            directory=folder / "tasks" / name,
            work=PythonWork("bench_nothing:nothing"),
            resources=Resources(walltime=60.0),
            candidate={"x": 0.5},
            import_path=(str(folder),),
        )

    async with open_executors({"default": config}, folder) as executors:

        async def batch(name: str, number: int) -> None:
            answers = await asyncio.gather(
                *(executors.run(task(f"{name}-{index}")) for index in range(number))
            )
            bad = [answer for answer in answers if answer.status != "done"]
            if bad:
                raise SystemExit(f"{len(bad)} tasks failed: {bad[0]}")

        await batch("warm", tasks)
        before, start = _rss(), time.perf_counter()
        await batch("task", tasks)
        return {"seconds": time.perf_counter() - start, "bytes": _rss() - before}


def _parsl(kind: str, mode: str, tasks: int, folder: Path) -> dict[str, float]:
    import parsl
    from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
    from parsl.providers import LocalProvider

    # Parsl finds its programs through PATH only.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    executor: Any = ThreadPoolExecutor(label="bare", max_threads=WORKERS)
    if kind == "local":
        executor = HighThroughputExecutor(
            label="bare",
            address="127.0.0.1",
            max_workers_per_node=WORKERS,
            cores_per_worker=0.001,
            heartbeat_period=1,
            heartbeat_threshold=20,
            provider=LocalProvider(init_blocks=1, max_blocks=1),  # type: ignore[no-untyped-call]
        )
    config = parsl.Config(
        executors=[executor],
        run_dir=str(folder / "parsl"),
        strategy="none",
        strategy_period=0.2,
        initialize_logging=mode == "parsl",
    )
    with parsl.load(config):
        nothing = parsl.python_app(_nothing)

        def batch(number: int) -> None:
            for future in [nothing({"x": 0.5}) for _ in range(number)]:
                future.result()

        batch(tasks)
        before, start = _rss(), time.perf_counter()
        batch(tasks)
        return {"seconds": time.perf_counter() - start, "bytes": _rss() - before}


def _nothing(candidate: dict[str, float]) -> dict[str, float]:  # noqa: ARG001 - a task's own form
    return {"value": 1.0}


def _rss() -> float:
    """Bytes of this process in memory, garbage gone."""
    gc.collect()
    resident = Path("/proc/self/statm").read_text().split()[1]
    return float(resident) * 4096


if __name__ == "__main__":
    sys.exit(main())
