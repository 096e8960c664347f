"""What the readers of configs/lennard-jones make of good, bad and torn output."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import ArrayLike

FOLDER = Path(__file__).parents[3] / "configs" / "lennard-jones"
RECORDS = 400


@pytest.fixture(scope="module")
def lj() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("lj")


def write(
    folder: Path, name: str, *columns: ArrayLike, records: int = RECORDS,
    density: float = 0.90,
) -> str:  # fmt: skip
    """A task directory as LAMMPS leaves it: a comment, the state at the start, then the records."""
    setup = {"density": density, "temperature": 0.85, "timestep": 0.006, "records": RECORDS}
    (folder / "setup.json").write_text(json.dumps(setup))
    filled = [np.broadcast_to(np.asarray(column, float), records) for column in columns]
    rows = np.column_stack([np.arange(10, 10 * records + 10, 10), *filled])
    lines = ["# TimeStep ...", " ".join(["0"] + ["99"] * len(columns))]
    lines += [" ".join(f"{value:.10g}" for value in row) for row in rows]
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder)


def test_the_mean_pressure_leaves_out_the_state_the_run_started_from(
    lj: ModuleType, tmp_path: Path
) -> None:
    folder = write(tmp_path, "pressure.txt", 0.85, -5.79, np.linspace(0.0, 1.0, RECORDS))
    answer = lj.read_pressure(folder)
    assert answer["pressure"] == pytest.approx(0.5)
    assert answer["temperature"] == pytest.approx(0.85)
    assert answer["energy"] == pytest.approx(-5.79)


def test_the_error_of_a_correlated_series_is_not_that_of_its_samples(lj: ModuleType) -> None:
    rng, correlation, n = np.random.default_rng(3), 0.9, 20_000
    series = np.zeros(n)
    for i in range(1, n):
        series[i] = correlation * series[i - 1] + rng.normal()
    exact = 1 / (1 - correlation) / np.sqrt(n)
    naive = series.std() / np.sqrt(n)
    assert lj.block_error(series) == pytest.approx(exact, rel=0.4)
    assert naive < exact / 3


def test_too_short_a_series_has_no_error(lj: ModuleType) -> None:
    with pytest.raises(ValueError, match="samples: 7 of them; at least 20 are needed"):
        lj.block_error(np.zeros(7))


def test_a_torn_table_is_a_failure_and_never_a_pressure(lj: ModuleType, tmp_path: Path) -> None:
    folder = write(tmp_path, "pressure.txt", 0.85, -5.79, 0.5, records=RECORDS - 1)
    with pytest.raises(ValueError, match="399 records; 400 were asked for"):
        lj.read_pressure(folder)


def test_a_row_cut_short_and_a_missing_file_are_failures(lj: ModuleType, tmp_path: Path) -> None:
    folder = write(tmp_path, "pressure.txt", 0.85, -5.79, 0.5)
    with (tmp_path / "pressure.txt").open("a") as table:
        table.write("5000 0.8")
    with pytest.raises(ValueError, match="inhomogeneous"):
        lj.read_pressure(folder)
    with pytest.raises(OSError, match=r"check\.txt"):
        lj.read_verdict(folder)


def test_a_value_that_is_not_finite_is_a_failure(lj: ModuleType, tmp_path: Path) -> None:
    folder = write(tmp_path, "pressure.txt", 0.85, -5.79, [np.nan] * RECORDS)
    with pytest.raises(ValueError, match="not finite"):
        lj.read_pressure(folder)


def test_a_pressure_at_another_temperature_is_a_failure(lj: ModuleType, tmp_path: Path) -> None:
    folder = write(tmp_path, "pressure.txt", 0.90, -5.79, 0.5)
    with pytest.raises(ValueError, match=r"mean temperature 0\.900; 0\.85 within 0\.02 is right"):
        lj.read_pressure(folder)


def test_a_steady_run_passes(lj: ModuleType, tmp_path: Path) -> None:
    verdict = lj.read_verdict(write(tmp_path, "check.txt", 0.87, -3.96))
    assert verdict["verdict"] == "pass"
    assert verdict["metrics"]["temperature"] == pytest.approx(0.87)


@pytest.mark.parametrize(
    ("density", "temperature", "energy", "records", "reason"),
    [
        (1.9, 0.85, -4.0, 0, "the atoms overlap and fly apart within the first steps "
         "(T* above 20); lower the density (now 1.9) towards 0.83, where the liquid is stable"),
        (0.9, 0.85, np.linspace(-4.0, -3.9, RECORDS), RECORDS, "energy drift: +0.0752 per atom "
         "without a thermostat; 0.002 is allowed; "
         "lower the density (now 0.9) towards 0.83, where the liquid is stable"),
        (0.7, 0.97, -4.0, RECORDS, "temperature: T* = 0.970 without a thermostat; 0.85 within 0.1 "
         "is allowed; raise the density (now 0.7) towards 0.83, where the liquid is stable"),
    ],
)  # fmt: skip
def test_a_rejection_says_what_was_found_what_is_allowed_and_which_way_to_move(
    lj: ModuleType,
    tmp_path: Path,
    density: float,
    temperature: float,
    energy: ArrayLike,
    records: int,
    reason: str,
) -> None:
    folder = write(tmp_path, "check.txt", temperature, energy, records=records, density=density)
    verdict = lj.read_verdict(folder)
    assert verdict["verdict"] == "reject"
    assert verdict["reason"] == reason
