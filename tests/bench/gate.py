"""The gate: one suite of seven rules against its peers, in the same run.

    python tests/bench/gate.py [--sizes 4,100,10000,1000000] [--repeats 3] [--venv FOLDER]

Four bounds, distinctness of six numbers, one expression over three fields, one word count; all
candidates pass, or with --failing every candidate fails every rule. Inputs: Python objects (py),
JSON with its parsing (json), columns in memory (cols). Everything, ours too, runs in a venv that
is made here, each measurement in a process of its own; the contestants take turns, so that a busy
machine is busy for all of them. What counts is the median of the CPU time of one call.

Goals are printed below the table. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PEERS = (
    "numpy", "scipy", "lark", "google-re2", "opentelemetry-api", "orjson", "pydantic",
    "pandera[polars]", "polars", "agent-actions",
)  # fmt: skip
NUMBERS = tuple("abcdef")
TEXT = "refine the wall layer because the shear there is still too high"
CONTESTANTS = {
    "ours": ("py", "json", "cols"),
    "loop": ("py", "json"),
    "numpy": ("cols",),
    "pydantic": ("py", "json"),
    "pandera on polars": ("cols", "json"),
    "agent-actions": ("py",),
}
SLOW = 10_000  # the largest batch for those who take 100 microseconds a candidate

Records = list[dict[str, Any]]
Run = Callable[[Any], object]


def rules() -> list[dict[str, Any]]:
    bounds = [
        {"type": "value_between", "field": name, "params": {"min": 0, "max": 1}} for name in "abcd"
    ]
    return [
        *bounds,
        {"type": "distinct", "field": list(NUMBERS)},
        {"type": "expression", "params": {"condition": "a * b / c <= 0.5"}},
        {"type": "word_count_between", "field": "text", "params": {"min": 3, "max": 60}},
    ]


def batch(size: int, *, failing: bool) -> Records:
    rng = random.Random(7)
    if failing:
        one = {"a": 2.0, "b": 3.0, "c": 1.5, "d": 1.25, "e": 0.5, "f": 0.5, "text": "none"}
        return [dict(one) for _ in range(size)]
    return [
        {
            "a": rng.random() / 2, "b": rng.random() / 2, "c": 0.5 + rng.random() / 2,
            "d": rng.random(), "e": rng.random(), "f": rng.random(), "text": TEXT,
        }
        for _ in range(size)
    ]  # fmt: skip


def ours(form: str) -> Run:
    import orjson

    from checks import compile_suite

    suite = compile_suite(rules())
    if form == "cols":
        return suite.judge_columns
    return suite.judge_batch if form == "py" else lambda raw: suite.judge_batch(orjson.loads(raw))


def loop(form: str) -> Run:
    import orjson

    def judge(records: Records) -> list[list[str]]:
        seen: set[tuple[float, ...]] = set()
        found = []
        for record in records:
            bad = [n for n in "abcd" if not (type(record[n]) is float and 0 <= record[n] <= 1)]
            key = tuple([round(record[name], 10) for name in NUMBERS])
            if key in seen:
                bad.append("distinct")
            seen.add(key)
            if not record["a"] * record["b"] / record["c"] <= 0.5:
                bad.append("expression")
            if not 3 <= len(record["text"].split()) <= 60:
                bad.append("words")
            found.append(bad)
        return found

    return judge if form == "py" else lambda raw: judge(orjson.loads(raw))


def numpy(_: str) -> Run:
    import numpy as np

    def judge(columns: dict[str, Any]) -> object:
        inside = [(columns[name] >= 0) & (columns[name] <= 1) for name in "abcd"]
        below = columns["a"] * columns["b"] / columns["c"] <= 0.5
        matrix = np.round(np.column_stack([columns[name] for name in NUMBERS]), 10)
        rows = np.ascontiguousarray(matrix).view(f"V{8 * len(NUMBERS)}").ravel()
        distinct = len(set(rows.tolist())) == len(rows)
        counts = np.array([len(text.split()) for text in columns["text"]])
        return [*inside, below, distinct, (counts >= 3) & (counts <= 60)]

    return judge


def pydantic(form: str) -> Run:
    from typing import Annotated

    from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError
    from pydantic import model_validator as validator

    def words(text: str) -> str:
        if not 3 <= len(text.split()) <= 60:
            raise ValueError("3 to 60 words")
        return text

    unit = Annotated[float, Field(ge=0, le=1)]

    class Candidate(BaseModel):
        a: unit
        b: unit
        c: unit
        d: unit
        e: float
        f: float
        text: Annotated[str, AfterValidator(words)]

        @validator(mode="after")
        def stable(self) -> Any:
            if not self.a * self.b / self.c <= 0.5:
                raise ValueError("a * b / c is above 0.5")
            return self

    adapter = TypeAdapter(list[Candidate])

    def judge(found: list[Candidate]) -> int:
        return len({tuple([round(getattr(one, n), 10) for n in NUMBERS]) for one in found})

    def judged(given: Any) -> object:
        read = adapter.validate_python if form == "py" else adapter.validate_json
        try:
            return judge(read(given))
        except ValidationError as fault:
            return fault.errors()

    return judged


def pandera(form: str) -> Run:
    import pandera.polars as pa
    import polars as pl
    from pandera.errors import SchemaErrors

    def words(data: Any) -> Any:
        counted = pl.col(data.key).str.split(" ").list.len().is_between(3, 60)
        return data.lazyframe.select(counted)

    def stable(data: Any) -> Any:
        return data.lazyframe.select((pl.col("a") * pl.col("b") / pl.col("c")) <= 0.5)

    def distinct(data: Any) -> Any:
        rounded = [pl.col(name).round(10) for name in NUMBERS]
        return data.lazyframe.select(~pl.struct(rounded).is_duplicated())

    unit = {name: pa.Column(float, pa.Check.in_range(0, 1)) for name in "abcd"}
    schema = pa.DataFrameSchema(
        {
            **unit, "e": pa.Column(float), "f": pa.Column(float),
            "text": pa.Column(str, pa.Check(words)),
        },
        checks=[pa.Check(stable), pa.Check(distinct)],
    )  # fmt: skip

    def judge(frame: Any) -> object:
        try:
            return schema.validate(frame, lazy=True)
        except SchemaErrors as fault:
            return fault.failure_cases

    return judge if form == "cols" else lambda raw: judge(pl.read_json(raw))


def agent_actions(_: str) -> Run:
    build = importlib.import_module("agent_actions.expectations.loader").build_inline_suite
    run_suite = importlib.import_module("agent_actions.expectations.runner").run_suite
    conditions = [f"{name} >= 0 and {name} <= 1" for name in "abcd"]
    entries = [{"type": "expression", "params": {"condition": c}} for c in conditions]
    # It has no arithmetic and no distinctness: two plain rules stand for them.
    entries += [
        {"type": "not_null", "field": "e"},
        {"type": "expression", "params": {"condition": "a <= c"}},
        rules()[-1],
    ]
    suite = build(entries, "gate")
    return lambda records: [run_suite(suite, record) for record in records]


MAKERS: dict[str, Callable[[str], Run]] = {
    "ours": ours, "loop": loop, "numpy": numpy, "pydantic": pydantic,
    "pandera on polars": pandera, "agent-actions": agent_actions,
}  # fmt: skip


def given(name: str, form: str, records: Records) -> Any:
    if form == "json":
        return json.dumps(records).encode()
    if form == "py":
        return records
    columns = {key: [record[key] for record in records] for key in records[0]}
    if name == "pandera on polars":
        return importlib.import_module("polars").DataFrame(columns)
    array = importlib.import_module("numpy").array
    return {key: array(column) if key != "text" else column for key, column in columns.items()}


def measure(name: str, form: str, size: int, *, failing: bool) -> dict[str, float]:
    """CPU seconds of one call, the best of several, and by how much the process grew."""
    run = MAKERS[name](form)
    data = given(name, form, batch(size, failing=failing))
    run(data if size <= 100 else given(name, form, batch(100, failing=failing)))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls = max(1, min(2000, 20_000 // size))
    best = math.inf
    slow = size >= 1_000_000 or name == "agent-actions"
    for _ in range(1 if slow else 5):
        start = time.process_time()
        for _ in range(calls):
            found = run(data)
        best = min(best, (time.process_time() - start) / calls)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    del found
    return {"seconds": best, "grown": (after - before) * 1024.0}


def in_process(python: Path, arguments: list[str]) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "POLARS_MAX_THREADS": "1"}
    command = [str(python), __file__, "--one", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def made(folder: str | None) -> Path:
    """The Python of the venv everything runs in."""
    home = Path(folder or tempfile.mkdtemp(prefix="gate-"))
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return python


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default="4,100,10000,1000000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--venv", metavar="FOLDER", help="kept and used again")
    parser.add_argument("--one", nargs=4, metavar=("NAME", "FORM", "SIZE", "ALL"))
    options = parser.parse_args()
    if options.one:
        name, form, size, which = options.one
        print(json.dumps(measure(name, form, int(size), failing=which == "failing")))
        return 0
    python = made(options.venv)
    sizes = [int(size) for size in options.sizes.split(",")]
    plan = [
        (name, form, size, which)
        for size in sizes
        for name, forms in CONTESTANTS.items()
        for form in forms
        for which in (("passing", "failing") if name == "ours" and form == "py" else ("passing",))
        if name != "agent-actions" or size <= SLOW
    ]
    runs: dict[tuple[str, str, int, str], list[dict[str, float]]] = {one: [] for one in plan}
    for _ in range(options.repeats):
        for one in plan:
            runs[one].append(in_process(python, [one[0], one[1], str(one[2]), one[3]]))
    return report(runs, sizes)


def report(runs: dict[tuple[str, str, int, str], list[dict[str, float]]], sizes: list[int]) -> int:
    median = {one: statistics.median(r["seconds"] for r in found) for one, found in runs.items()}
    print("| contestant | input | " + " | ".join(f"N={size:,}" for size in sizes) + " |")
    print("|---|---|" + "---|" * len(sizes))
    for name, form, which in dict.fromkeys((n, f, w) for n, f, _, w in runs):
        label = name if which == "passing" else f"{name}, all failing"
        cells = [
            f"{median[key] / size * 1e6:.2f}" if (key := (name, form, size, which)) in runs else "-"
            for size in sizes
        ]
        print(f"| {label} | {form} | " + " | ".join(cells) + " |")
    print("\nmicroseconds of CPU a candidate\n")
    missed = False
    for text, reached, wanted in goals(median, runs, sizes):
        fine = reached <= wanted
        missed |= not fine
        print(f"{'ok  ' if fine else 'MISS'} {text}: {reached:.2f}, at most {wanted:g}")
    return int(missed)


def goals(
    median: dict[tuple[str, str, int, str], float],
    runs: dict[tuple[str, str, int, str], list[dict[str, float]]],
    sizes: list[int],
) -> list[tuple[str, float, float]]:
    """What is promised: a ratio of ours to a peer's, and the most it may be."""

    def ratio(form: str, peer: str, peer_form: str, size: int) -> float:
        return median["ours", form, size, "passing"] / median[peer, peer_form, size, "passing"]

    found = []
    if 4 in sizes:
        found.append(("of the plain loop at 4", ratio("py", "loop", "py", 4), 1.0))
    if 10_000 in sizes:
        found += [
            (
                "of pandera, JSON, 10,000",
                ratio("json", "pandera on polars", "json", 10_000),
                1.0,
            ),
            ("of Pydantic, JSON, 10,000", ratio("json", "pydantic", "json", 10_000), 0.25),
            ("of raw NumPy, columns, 10,000", ratio("cols", "numpy", "cols", 10_000), 3.0),
            ("of agent-actions, 10,000", ratio("py", "agent-actions", "py", 10_000), 0.02),
        ]
    for size in sizes:
        failing = median["ours", "py", size, "failing"] / median["ours", "py", size, "passing"]
        found.append((f"failing to passing at {size:,}", failing, 5.0))
    if 1_000_000 in sizes:
        grown = statistics.median(r["grown"] for r in runs["ours", "py", 1_000_000, "passing"])
        found.append(("memory, of the batch's own, at 1,000,000", grown / weight(), 1.5))
    return found


def weight() -> float:
    """Bytes of a million candidates as Python objects."""
    one = batch(1, failing=False)[0]
    parts = sys.getsizeof(one) + sum(sys.getsizeof(value) for value in one.values())
    return 1_000_000.0 * (parts + 8)


if __name__ == "__main__":
    sys.exit(main())
