"""The gate's contestants: each judges one batch by the same seven rules, as it best can.

Each is a function of the form of its input (py, json, cols) that gives the function to measure.
What it imports is in the benchmark's own venv.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from typing import Any

NUMBERS = tuple("abcdef")
TEXT = "refine the wall layer because the shear there is still too high"

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
    """Candidates that pass every rule, or that all fail every rule."""
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
    from msgspec.json import decode

    from checks import compile_suite

    suite = compile_suite(rules())
    if form == "cols":
        return suite.judge_columns
    return suite.judge_batch if form == "py" else lambda raw: suite.judge_batch(decode(raw))


def loop(form: str) -> Run:
    from msgspec.json import decode

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

    return judge if form == "py" else lambda raw: judge(decode(raw))


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

    from pydantic import (
        AfterValidator,
        BaseModel,
        Field,
        TypeAdapter,
        ValidationError,
        model_validator as validator,
    )

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


def judge_of(name: str, form: str) -> Run:
    return MAKERS[name](form)


def given(name: str, form: str, records: Records) -> Any:
    """The records in the form in which a contestant takes them."""
    if form == "json":
        return json.dumps(records).encode()
    if form == "py":
        return records
    columns = {key: [record[key] for record in records] for key in records[0]}
    if name == "pandera on polars":
        return importlib.import_module("polars").DataFrame(columns)
    array = importlib.import_module("numpy").array
    return {key: array(column) if key != "text" else column for key, column in columns.items()}
