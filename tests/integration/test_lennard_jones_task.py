"""The tasks of configs/lennard-jones, run as the campaign runs them, against published values.

Reference: NIST Standard Reference Simulation Website, Lennard-Jones fluid, cut at 3 sigma with
long-range corrections, 500 particles, T* = 0.85.
"""

from __future__ import annotations

import importlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from campaign.config import CampaignConfig
from campaign.configfile import load_config
from campaign.taskconfig import CommandTask

FOLDER = Path(__file__).parents[2] / "configs" / "lennard-jones"
NIST_PRESSURE = {0.780: 0.047924, 0.820: 0.55355, 0.860: 1.2660}

pytestmark = [pytest.mark.lammps, pytest.mark.slow]


@pytest.fixture(scope="module")
def config() -> CampaignConfig:
    return load_config(FOLDER).config


@pytest.fixture(scope="module")
def lj() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("lj")


def run(
    task: Any, where: Path, density: float, *, seed: int = 7, changes: tuple[str, ...] = ()
) -> Path:
    """Run a task's command line in a directory of its own, answer the directory.

    ``changes`` are further LAMMPS options; of two values for one variable LAMMPS takes the first,
    so they go before the task's own.
    """
    assert isinstance(task, CommandTask)
    values = {"campaign_dir": FOLDER, "density": density, "seed": seed, "ranks": task.ranks}
    program, *options = [part.format(**values) for part in task.command]
    launcher = [part.format(**values) for part in task.launcher or ()]
    where.mkdir(parents=True)
    subprocess.run(
        [*launcher, program, *changes, *options],
        cwd=where,
        env=os.environ | dict(task.env),
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=task.walltime,
    )
    return where


@pytest.mark.slow
@pytest.mark.parametrize(("density", "ranks"), [(0.780, 1), (0.820, 1), (0.820, 2), (0.860, 1)])
def test_the_simulation_gives_the_published_pressure(
    config: CampaignConfig, lj: ModuleType, tmp_path: Path, density: float, ranks: int
) -> None:
    task = config.simulation.model_copy(update={"ranks": ranks})
    answer = lj.read_pressure(str(run(task, tmp_path / "run", density)))
    assert 0.005 < answer["pressure_error"] < 0.025
    # Four standard errors, and 0.005 for the time step.
    allowed = 4 * 0.0125 + 0.005
    assert answer["pressure"] == pytest.approx(NIST_PRESSURE[density], abs=allowed)
    assert answer["temperature"] == pytest.approx(0.85, abs=0.006)


def test_the_seed_decides_the_run_to_the_last_digit(config: CampaignConfig, tmp_path: Path) -> None:
    (verifier,) = config.verifiers
    tables = [
        (run(verifier, tmp_path / str(number), 0.82, seed=seed) / "check.txt").read_text()
        for number, seed in enumerate((7, 7, 2**63 - 1))
    ]
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


@pytest.mark.parametrize("density", [0.70, 0.82, 0.95])
def test_the_short_run_passes_a_liquid_over_the_whole_range(
    config: CampaignConfig, lj: ModuleType, tmp_path: Path, density: float
) -> None:
    (verifier,) = config.verifiers
    verdict = lj.read_verdict(str(run(verifier, tmp_path / "run", density)))
    assert verdict["verdict"] == "pass", verdict["reason"]
    assert abs(verdict["metrics"]["energy_drift"]) < lj.DRIFT_LIMIT / 3


@pytest.mark.parametrize(
    ("density", "changes", "reason"),
    [
        pytest.param(3.0, (), "the atoms overlap and fly apart", id="too dense"),
        pytest.param(0.82, ("-var", "timestep", "0.016"), "energy drift: ", id="too long a step"),
        pytest.param(0.82, ("-var", "settle", "10"), "temperature: ", id="not settled"),
    ],
)
def test_the_short_run_rejects_what_is_really_wrong(
    config: CampaignConfig,
    lj: ModuleType,
    tmp_path: Path,
    density: float,
    changes: tuple[str, ...],
    reason: str,
) -> None:
    (verifier,) = config.verifiers
    verdict = lj.read_verdict(str(run(verifier, tmp_path / "run", density, changes=changes)))
    assert verdict["verdict"] == "reject"
    assert verdict["reason"].startswith(reason)
    assert "the density (now" in verdict["reason"]
