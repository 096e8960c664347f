"""The gate: one suite of seven rules against its peers, in the same run.

    python tests/bench/gate.py [--sizes 4,100,10000,1000000] [--repeats 3] [--venv FOLDER]

Four bounds, distinctness of six numbers, one expression over three fields, one word count. All
candidates pass; ours also has a batch of which every candidate fails every rule. Inputs: Python
objects (py), JSON with its parsing (json), columns in memory (cols). Everything, ours too, runs in
a venv that is made here, each measurement in a process of its own; the contestants take turns, so
that a busy machine is busy for all of them. What counts is the least CPU time of one call, for
whatever else the machine does only adds to it.

Memory is the peak of the process's resident set (ru_maxrss) over one call, and over the making of
the batch: what a machine has to have. tracemalloc sees neither what allocators keep nor all of what
other libraries' C code takes, and it slows down what it watches.

Goals are printed below the tables. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from gate_contestants import Run, batch, given, judge_of

ROOT = Path(__file__).parents[2]
PEERS = (
    "numpy", "scipy", "lark", "google-re2", "msgspec", "opentelemetry-api", "pydantic",
    "pandera[polars]", "polars", "agent-actions",
)  # fmt: skip
CONTESTANTS = {
    "ours": ("py", "json", "cols"),
    "loop": ("py", "json"),
    "numpy": ("cols",),
    "pydantic": ("py", "json"),
    "pandera on polars": ("cols", "json"),
    "agent-actions": ("py",),
}
SLOW = 10_000  # the largest batch for those who take 100 microseconds a candidate
LARGE = 1_000_000  # the batch whose memory is told: a process's own no longer shows beside it

Key = tuple[str, str, int, str]  # contestant, form, size, "passing" or "failing"
Measured = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default=f"4,100,{SLOW},{LARGE}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--venv", metavar="FOLDER", help="kept and used again")
    parser.add_argument("--one", nargs=4, metavar=("NAME", "FORM", "SIZE", "WHICH"))
    options = parser.parse_args()
    if options.one:
        name, form, size, which = options.one
        print(json.dumps(measure(name, form, int(size), failing=which == "failing")))
        return 0
    python = made(options.venv)
    sizes = [int(size) for size in options.sizes.split(",")]
    runs: dict[Key, list[Measured]] = {key: [] for key in plan(sizes)}
    for _ in range(options.repeats):
        for key, found in runs.items():
            found.append(in_process(python, key))
    return report({key: least(found) for key, found in runs.items()}, sizes)


def plan(sizes: list[int]) -> list[Key]:
    passing = [
        (name, form, size, "passing")
        for size in sizes
        for name, forms in CONTESTANTS.items()
        for form in forms
        if name != "agent-actions" or size <= SLOW
    ]
    return passing + [("ours", "py", size, "failing") for size in sizes]


def measure(name: str, form: str, size: int, *, failing: bool) -> Measured:
    """CPU seconds of one call, the least of several; bytes of the batch, and of judging it."""
    run = judge_of(name, form)
    run(given(name, form, batch(min(size, 100), failing=failing)))
    before = peak()
    data = given(name, form, batch(size, failing=failing))
    gc.collect()
    held = peak()
    first = timed(run, data, 1)
    grown = peak()
    calls = max(1, min(2000, int(0.1 / first)))
    later = [timed(run, data, calls) for _ in range(5 if first < 0.5 else 1)]
    return {"seconds": min(first, *later), "batch": held - before, "judging": grown - held}


def timed(run: Run, data: object, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        run(data)
    return (time.process_time() - start) / calls


def peak() -> float:
    """Bytes of memory the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def least(found: list[Measured]) -> Measured:
    return {what: min(one[what] for one in found) for what in found[0]}


def in_process(python: Path, key: Key) -> Measured:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1"}
    command = [str(python), __file__, "--one", *map(str, key)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{key}: {done.stderr}")
    found: Measured = json.loads(done.stdout.splitlines()[-1])
    return found


def made(folder: str | None) -> Path:
    """The Python of the venv everything runs in."""
    home = Path(folder or tempfile.mkdtemp(prefix="gate-"))
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def report(found: dict[Key, Measured], sizes: list[int]) -> int:
    print_times(found, sizes)
    if LARGE in sizes:
        print_memory(found)
    missed = False
    for text, reached, wanted in goals(found, sizes):
        fine = reached <= wanted
        missed |= not fine
        print(f"{'ok  ' if fine else 'MISS'} {text}: {reached:.3g}, at most {wanted:g}")
    return int(missed)


def print_times(found: dict[Key, Measured], sizes: list[int]) -> None:
    print("CPU microseconds a candidate:\n")
    print("| contestant | input | " + " | ".join(f"N={size:,}" for size in sizes) + " |")
    print("|---|---|" + "---|" * len(sizes))
    for name, form, which in dict.fromkeys((n, f, w) for n, f, _, w in found):
        keys = [(name, form, size, which) for size in sizes]
        cells = [f"{found[k]['seconds'] / k[2] * 1e6:.2f}" if k in found else "-" for k in keys]
        print(f"| {labelled(name, which)} | {form} | " + " | ".join(cells) + " |")
    print()


def print_memory(found: dict[Key, Measured]) -> None:
    print(f"Bytes a candidate of {LARGE:,} Python objects:\n")
    print("| contestant | the batch | judging it, at most | both, of the batch |")
    print("|---|---|---|---|")
    for key in [key for key in found if key[1:3] == ("py", LARGE)]:
        held, more = (found[key][what] / LARGE for what in ("batch", "judging"))
        cells = f"{held:.0f} | {more:.0f} | {1 + more / held:.2f}"
        print(f"| {labelled(key[0], key[3])} | {cells} |")
    print()


def labelled(name: str, which: str) -> str:
    return name if which == "passing" else f"{name}, all {which}"


def goals(found: dict[Key, Measured], sizes: list[int]) -> list[tuple[str, float, float]]:
    """What is promised: a ratio of ours to a peer's, and the most it may be."""

    def ratio(form: str, peer: str, size: int) -> float:
        mine, theirs = found["ours", form, size, "passing"], found[peer, form, size, "passing"]
        return mine["seconds"] / theirs["seconds"]

    promised = []
    if 4 in sizes:
        promised.append(("time of the plain loop's at 4", ratio("py", "loop", 4), 1.0))
    if SLOW in sizes:
        promised += [
            ("time of pandera's, JSON, 10,000", ratio("json", "pandera on polars", SLOW), 1.0),
            ("time of Pydantic's, JSON, 10,000", ratio("json", "pydantic", SLOW), 0.25),
            ("time of raw NumPy's, columns, 10,000", ratio("cols", "numpy", SLOW), 3.0),
            ("time of agent-actions', 10,000", ratio("py", "agent-actions", SLOW), 0.02),
        ]
    for size in sizes:
        good, bad = (found["ours", "py", size, which] for which in ("passing", "failing"))
        promised.append(
            (f"time of failing to passing at {size:,}", bad["seconds"] / good["seconds"], 5.0)
        )
    if LARGE in sizes:
        large = found["ours", "py", LARGE, "passing"]
        used = 1 + large["judging"] / large["batch"]
        promised.append(("memory, batch and judging, of the batch's", used, 1.5))
    return promised


if __name__ == "__main__":
    sys.exit(main())
