"""The report on a long run: time, memory and the size of the page.

    python tests/bench/report.py [--candidates 100000] [--directory DIR] [--out FILE]

The ledger is written, not run. ``simgate report RUN --html FILE`` is a process of its own; what
counts is its CPU time, the peak of its resident memory, and the bytes of its page.

Goals for 100,000 candidates: under 20 s, 1 GB and 10 MB. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from campaign.ledger import NAME
from longrun import write

GOALS = {"cpu": 20.0, "memory": 1e9, "page": 10e6}
_UNITS = {"cpu": (1.0, "s of CPU"), "memory": (1e6, "MB of memory"), "page": (1e6, "MB of page")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--directory", type=Path, help="where the run is made; by default here")
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory or Path()) as folder:
        write(Path(folder) / "run", options.candidates)
        found = measured(Path(folder) / "run", Path(folder) / "report.html")
    if options.out:
        options.out.write_text(json.dumps(found, indent=2) + "\n")
    return told(options.candidates, found)


def measured(run: Path, page: Path) -> dict[str, float]:
    """Seconds of CPU and of wall clock, bytes of memory, of the page and of the ledger."""
    code = "from campaign.cli import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    words = [sys.executable, "-c", code, "report", str(run), "--html", str(page)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "wall": wall,
        "memory": after.ru_maxrss * 1024.0,
        "page": float(page.stat().st_size),
        "ledger": float((run / NAME).stat().st_size),
    }


def told(candidates: int, found: dict[str, float]) -> int:
    """Print the figures; 1 when a goal was missed."""
    print(f"{candidates:,} candidates, a ledger of {found['ledger'] / 1e6:.1f} MB")
    missed = False
    for name, goal in GOALS.items():
        scale, unit = _UNITS[name]
        met = found[name] < goal
        missed |= not met
        word = "met" if met else "MISSED"
        print(f"{unit:<14}{found[name] / scale:>10.2f}   goal < {goal / scale:g}   {word}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
