"""The ledger: durable appends against SQLite's, and the time a long one takes to resume.

    python tests/bench/ledger.py [--directory DIR] [--appends 400] [--events 100000] [--out FILE]

Appends: events of 600 bytes, one at a time and in groups of 100, through ``Ledger.append`` and as
one transaction of SQLite (WAL, synchronous FULL; one row an event, the text ready). The two take
turns, one append each, so that a disk busy with something else is busy for both; what counts is
the geometric mean of SQLite's time over ours, turn by turn. The directory must lie on the disk to
be measured, not in memory.

Resume: read and fold a ledger of 100,000 events, in the mix of kinds that a campaign of three
verifiers leaves behind, in a process of its own; what counts is its CPU time.

Goals: appends at least 1.1 times as fast as SQLite's, single and grouped; resume under 2 s of
CPU. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from campaign import events
from campaign.events import Entry, Event, FindingRecord, JsonObject, VerdictRecord
from campaign.ledger import NAME, Ledger, read
from campaign.space import Point, content_hash
from campaign.state import fold

GOAL, RESUME_GOAL = 1.1, 2.0
SIZE, GROUP = 600, 100
CREATED = events.RunCreated(
    version=1, simgate="0.1.0", name="bench", mode="campaign", folder="/", config={}
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", type=Path, help="on the disk to measure; by default here")
    parser.add_argument("--appends", type=int, default=1000, help="of each size and contestant")
    parser.add_argument("--events", type=int, default=100_000, help="in the ledger to resume")
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.resume:
        print(json.dumps(resume(options.resume)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory or Path()) as folder:
        python, sqlite = platform.python_version(), sqlite3.sqlite_version
        machine = f"{platform.platform()}, Python {python}, SQLite {sqlite}"
        found = {
            "single": appends(Path(folder) / "single", 1, options.appends),
            "grouped": appends(Path(folder) / "grouped", GROUP, options.appends),
            "resume": resumes(Path(folder) / "long", options.events),
        }
    if options.out:
        options.out.write_text(json.dumps({"machine": machine, **found}, indent=2) + "\n")
    print(machine)
    return report(found)


def appends(directory: Path, group: int, repeats: int) -> dict[str, float]:
    """Seconds an append of ``group`` events takes, each contestant's median and fastest tenth."""
    directory.mkdir()
    event = _padded()
    line = msgspec.json.encode(Entry(1, time.time(), event)).decode()
    with Ledger(directory) as ledger:
        ledger.append(CREATED)
        database = _database(directory / "events.db")

        def ours() -> None:
            ledger.append(*[event] * group)

        def sqlite() -> None:
            with database:
                database.executemany("insert into events (line) values (?)", [(line,)] * group)

        seconds = _in_turn({"ours": ours, "sqlite": sqlite}, repeats)
        database.close()
    found = {}
    for name, measured in seconds.items():
        found[name] = statistics.median(measured)
        found[f"{name} p10"] = sorted(measured)[len(measured) // 10]
        found[f"{name} mean"] = statistics.fmean(measured)
    turns = zip(seconds["sqlite"], seconds["ours"], strict=True)
    return found | {"ratio": statistics.geometric_mean(theirs / ours for theirs, ours in turns)}


def _in_turn(contestants: dict[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(repeats):
        names = list(contestants)
        for name in names if number % 2 else reversed(names):
            began = time.perf_counter()
            contestants[name]()
            seconds[name].append(time.perf_counter() - began)
    return seconds


def _padded() -> events.JobEnded:
    """An event whose line has ``SIZE`` bytes."""
    event = events.JobEnded(job=1, outcome="done", reason="")
    short = len(msgspec.json.encode(Entry(1, time.time(), event))) + 1
    return events.JobEnded(job=1, outcome="done", reason="x" * (SIZE - short))


def _database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.execute("pragma journal_mode = wal")
    database.execute("pragma synchronous = full")
    database.execute("create table events (n integer primary key, line text not null)")
    database.commit()
    return database


def resumes(directory: Path, count: int) -> dict[str, float]:
    """The median of three resumes of a ledger of ``count`` events, each in a fresh process."""
    directory.mkdir()
    write(directory, count)
    runs = [
        json.loads(
            subprocess.run(
                [sys.executable, __file__, "--resume", str(directory)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(3)
    ]
    found = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return found | {"bytes": float((directory / NAME).stat().st_size)}


def resume(directory: Path) -> dict[str, float]:
    """The number of events, and CPU seconds of the parts and of this whole process, imports too."""
    began = time.process_time()
    entries = read(directory)
    after = time.process_time()
    fold(entries)
    end = time.process_time()
    return {
        "events": len(entries),
        "read": after - began,
        "fold": end - after,
        "cpu": time.process_time(),
    }


def write(directory: Path, count: int) -> None:
    """A ledger as a campaign of batches of 20 leaves it."""
    encoder = msgspec.json.Encoder()
    now = time.time()
    with (directory / NAME).open("wb") as file:
        for number, event in zip(range(1, count + 1), history(), strict=False):
            file.write(encoder.encode(Entry(number, now + number, event)) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def history() -> Iterator[Event]:
    yield CREATED
    yield events.JobStarted(job=1, host="node", pid=1, python="3.11", numpy="2.0")
    number = 0
    while True:
        number += 1
        yield from _round(number, 20)


def _round(number: int, batch: int) -> Iterator[Event]:
    points: list[dict[str, Any]] = [
        {"density": 0.7 + 1e-6 * (number * batch + i), "steps": i, "kind": "a"}
        for i in range(batch)
    ]
    slots = list(range(batch))
    passed = [FindingRecord(name, "domain", "pass") for name in ("missing", "type", "bounds")]
    yield events.RoundStarted(round=number)
    yield events.Asked(round=number, generation=1, slots=slots)
    yield events.Answered(round=number, generation=1, candidates=list(points))
    yield events.Judged(
        round=number, generation=1, verdicts=[VerdictRecord(slot, passed) for slot in slots]
    )
    for slot, point in enumerate(points):
        for task in ("short_run", "energy", "grid"):
            value = {"verdict": "pass", "metrics": {"drift": 1e-5, "temperature": 0.85}}
            yield from _task(task, number, slot, point, value)
        yield events.SlotEnded(
            round=number,
            slot=slot,
            disposition="accepted",
            generation=1,
            candidate=content_hash(point),
            parameters=point,
        )
        yield from _task("simulation", number, slot, point, {"pressure": 0.55, "energy": -5.0})
    yield events.RoundEnded(round=number)


def _task(task: str, number: int, slot: int, point: Point, value: JsonObject) -> Iterator[Event]:
    name = content_hash(point)
    yield events.TaskStarted(
        task=task, candidate=name, attempt=1, round=number, slot=slot, nodes=1, reserved=0.01
    )
    yield events.TaskEnded(
        task=task,
        candidate=name,
        attempt=1,
        status="done",
        spent=0.005,
        seconds=18.0,
        value=value,
        exit_code=0,
        host="node",
    )


def report(found: dict[str, dict[str, float]]) -> int:
    """Print the table; 1 when a goal was missed."""
    print(f"{'append':<10}{'':>10}{'median us':>11}{'p10 us':>9}{'mean us':>9}")
    missed = False
    for size in ("single", "grouped"):
        measured = found[size]
        for name in ("ours", "sqlite"):
            middle, best, mean = (measured[f"{name}{x}"] * 1e6 for x in ("", " p10", " mean"))
            print(f"{size:<10}{name:>10}{middle:>11.0f}{best:>9.0f}{mean:>9.0f}")
        missed |= _verdict(f"{size}: SQLite / ours", measured["ratio"], ">=", GOAL)
    long = found["resume"]
    print(
        f"resume of {long['events']:.0f} events, {long['bytes'] / 1e6:.1f} MB: "
        f"read {long['read']:.2f} s, fold {long['fold']:.2f} s of CPU"
    )
    missed |= _verdict("resume: CPU s", long["cpu"], "<", RESUME_GOAL)
    return int(missed)


def _verdict(what: str, value: float, sense: str, goal: float) -> bool:
    met = value >= goal if sense == ">=" else value < goal
    print(f"{what:<28}{value:6.2f}   goal {sense} {goal}   {'met' if met else 'MISSED'}")
    return not met


if __name__ == "__main__":
    sys.exit(main())
