"""The solver of configs/quickstart on several ranks: the serial answers, and no rank that waits."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from campaign.config import CampaignConfig
from campaign.configfile import load_config
from campaign.taskconfig import MpiTask, PythonTask
from executors.launch import default_launcher
from folders import process

FOLDER = Path(__file__).parents[2] / "configs" / "quickstart"
GOOD = {"height": 38.0, "spacing": 2.2, "thickness": 0.3}
CANDIDATES = [
    GOOD,
    {"height": 20.0, "spacing": 1.2, "thickness": 0.3},
    {"height": 10.0, "spacing": 0.8, "thickness": 1.0},  # sturdy
    {"height": 45.0, "spacing": 1.8, "thickness": 0.8},  # too heavy
    {"height": 50.0, "spacing": 2.0, "thickness": 0.14},  # too slender
]
CORNERS = [
    dict(zip(("height", "spacing", "thickness"), corner, strict=True))
    for corner in itertools.product((10.0, 50.0), (0.8, 2.5), (0.1, 1.0))
]

PROGRAM = """
import json, sys
import fins_mpi
from mpi4py import MPI

def outcome(function, candidate, arguments):
    try:
        return getattr(fins_mpi, function)(candidate, **arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

asked = json.loads(sys.argv[1])
vars(fins_mpi).update(asked["settings"])
answers = MPI.COMM_WORLD.gather([outcome(*call) for call in asked["calls"]])
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(answers))
"""

Call = tuple[str, Mapping[str, Any], Mapping[str, Any]]

pytestmark = [pytest.mark.mpi, pytest.mark.slow]


@pytest.fixture(scope="module")
def fins() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("fins")


@pytest.fixture(scope="module")
def config() -> CampaignConfig:
    return load_config(FOLDER / "mpi.yaml").config


@pytest.fixture(scope="module")
def arguments(config: CampaignConfig) -> dict[str, dict[str, Any]]:
    """What the campaign gives each of its functions."""
    tasks = [config.simulation, *config.verifiers]
    found = {t.function: dict(t.arguments) for t in tasks if isinstance(t, MpiTask)}
    return {name: found[f"fins_mpi:{name}"] for name in ("simulate", "verify")}


def launch(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    launcher = default_launcher(ranks)
    assert launcher is not None
    return subprocess.run(
        [*launcher, sys.executable, "-m", "mpi4py", "-c", *words],
        env=os.environ | {"PYTHONPATH": str(FOLDER), "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def answered(ranks: int, calls: Sequence[Call], **settings: Any) -> list[list[Any]]:
    """What every rank answers to every call, one after the other; the text of what it raises."""
    ran = launch(ranks, PROGRAM, json.dumps({"calls": calls, "settings": settings}))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: list[list[Any]] = json.loads(ran.stdout)
    assert len(found) == ranks
    return found


def compare(answer: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Equal texts, and numbers to 1e-12; those that are fractions may be all round-off."""
    found, right = dict(answer), dict(expected)
    if "verdict" in right:
        answer, expected = found.pop("metrics"), right.pop("metrics")
        assert found == right
        found, right = dict(answer), dict(expected)
    assert found == pytest.approx(right, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_every_rank_answers_what_the_serial_solver_does(
    fins: ModuleType, arguments: dict[str, dict[str, Any]], ranks: int
) -> None:
    calls = [(name, one, arguments[name]) for name in arguments for one in CANDIDATES]
    expected = [getattr(fins, name)(one, **given) for name, one, given in calls]
    assert {one.get("verdict") for one in expected} == {None, "pass", "reject"}
    for answers in answered(ranks, calls):
        for answer, right in zip(answers, expected, strict=True):
            compare(answer, right)


def test_the_number_of_ranks_does_not_show_even_in_the_corners_of_the_space(
    arguments: dict[str, dict[str, Any]],
) -> None:
    calls = [(name, one, arguments[name]) for name in arguments for one in CORNERS]
    (alone,) = answered(1, calls)
    for ranks in (2, 5):
        first, *others = answered(ranks, calls)
        assert others == [first] * (ranks - 1)
        for answer, right in zip(first, alone, strict=True):
            compare(answer, right)


def test_ranks_for_which_there_are_no_rows_are_idle(fins: ModuleType) -> None:
    """Six rows make three slabs of an edge and an inside."""
    section = fins.section_of(GOOD)
    assert len(fins.build_mesh(section, 1).dy) == 6
    expected = fins.simulate(GOOD, cells=1)
    for (answer,) in answered(7, [("simulate", GOOD, {"cells": 1})]):
        compare(answer, expected)


@pytest.mark.parametrize(
    ("change", "cells", "raised"),
    [
        ({"spacing": -1.0}, 24, "LinAlgError: Matrix is not positive definite"),
        ({"height": 0.0}, 24, "ZeroDivisionError: float division by zero"),
        ({}, 0, "ZeroDivisionError: "),
        ({"thickness": None}, 24, "TypeError: "),
    ],
)
def test_what_cannot_be_solved_raises_on_every_rank_and_the_next_call_is_answered(
    change: dict[str, Any], cells: int, raised: str
) -> None:
    calls = [("simulate", GOOD | change, {"cells": cells}), ("simulate", GOOD, {"cells": 2})]
    failed, after = zip(*answered(3, calls), strict=True)
    assert failed[0].startswith(raised)
    assert all(text.removeprefix("RuntimeError: rank 0 failed: ") == failed[0] for text in failed)
    assert after == (after[0],) * 3
    assert "peak_temperature" in after[0]


def test_an_error_of_another_rank_is_raised_with_its_number() -> None:
    """Of fins without end the slab of rank 0, the plate, knows nothing."""
    answers = answered(3, [("simulate", GOOD | {"height": float("inf")}, {"cells": 1})])
    (first,), (second,), (third,) = answers
    assert second.startswith("ValueError: ")
    assert third.startswith("ValueError: ")
    assert first == f"RuntimeError: rank 1 failed: {second}"


def test_temperatures_that_do_not_settle_are_an_error_with_residual_and_tolerance() -> None:
    answers = answered(2, [("simulate", GOOD, {"cells": 2})], MAX_STEPS=1)
    texts = {text for (text,) in answers}
    assert len(texts) == 1
    pattern = (
        r"ArithmeticError: temperatures: still change by \d\.\de\+01 K after 1 steps, at most "
        r"\d\.\de-12 K is right; residual \d\.\de[+-]\d\d W/m"
    )
    assert re.fullmatch(pattern, texts.pop())


def test_an_error_that_nobody_catches_ends_all_ranks() -> None:
    bad = GOOD | {"spacing": -1.0}
    ran = launch(3, f"import fins_mpi; fins_mpi.simulate({bad}, cells=24)")
    assert ran.returncode != 0
    assert "LinAlgError" in ran.stderr


def test_the_campaign_with_mpi_is_the_quickstart_but_for_its_tasks(config: CampaignConfig) -> None:
    def rest(one: CampaignConfig) -> dict[str, Any]:
        return one.model_dump(exclude={"name", "verifiers", "simulation"})

    serial = load_config(FOLDER).config
    assert rest(config) == rest(serial)
    tasks = zip(
        [config.simulation, *config.verifiers],
        [serial.simulation, *serial.verifiers],
        strict=True,
    )
    for parallel, alone in tasks:
        assert isinstance(parallel, MpiTask)
        assert isinstance(alone, PythonTask)
        assert parallel.function == alone.function.replace("fins:", "fins_mpi:")
        differs = {"kind", "ranks", "function", "launcher"}
        assert parallel.model_dump(exclude=differs) == alone.model_dump(exclude=differs)


def test_the_campaign_runs_on_two_ranks_and_finds_the_serial_answers(
    fins: ModuleType, arguments: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    ran = process("run", FOLDER / "mpi.yaml", "--run-dir", tmp_path / "run", "--set", "rounds=1")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    best = json.loads(process("status", tmp_path / "run", "--json").stdout)["best"]
    expected = fins.simulate(best["candidate"], **arguments["simulate"])
    assert best["value"] == pytest.approx(expected["peak_temperature"], rel=1e-10)
