"""Read what ``in.lj`` has written: the verdict of the short run, the pressure of the long one.

All values are in reduced units (energy epsilon, length sigma, mass m). Both readers are called with
the task directory after LAMMPS has ended with exit code 0; an output that is missing or torn raises
``OSError`` or ``ValueError``, which is a failure of the run and never a rejection.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]

# Without its thermostat a run of 500 atoms settles within 0.025 (one standard deviation) of the
# temperature it was held at; four of these are no accident.
TEMPERATURE_LIMIT = 0.10
# Energy per atom. At the time step of 0.006 the drift measured is at most 0.0004 over the range
# of the campaign; at 0.015, where the step is too long, it is above 0.003.
DRIFT_LIMIT = 0.002
# With its thermostat the mean temperature is right to 0.003: more says the run was not settled.
HELD_LIMIT = 0.02
LIQUID = 0.83  # the middle of the liquid's densities: what a rejected candidate should move towards
BLOCKS = 20


def read_verdict(task_dir: str) -> dict[str, object]:
    """Judge the short run from ``check.txt`` (step, temperature, energy per atom).

    Rejects where the atoms flew apart, where the energy drifts, and where the temperature leaves
    its set point once the thermostat is off, in this order: each makes the next meaningless.
    """
    setup, rows = _read(Path(task_dir), "check.txt", columns=3)
    metrics: dict[str, float] = {"density": setup["density"]}
    if len(rows) < setup["records"]:
        why = "the atoms overlap and fly apart within the first steps (T* above 20)"
        return _reject(why, setup, metrics)
    temperature, energy = rows[:, 1], rows[:, 2]
    quarter = max(1, len(rows) // 4)
    drift = float(energy[-quarter:].mean() - energy[:quarter].mean())
    mean = float(temperature.mean())
    metrics |= {"energy_drift": drift, "temperature": mean}
    if not abs(drift) <= DRIFT_LIMIT:
        why = f"energy drift: {drift:+.4f} per atom without a thermostat; {DRIFT_LIMIT} is allowed"
        return _reject(why, setup, metrics)
    if not abs(mean - setup["temperature"]) <= TEMPERATURE_LIMIT:
        why = (
            f"temperature: T* = {mean:.3f} without a thermostat; "
            f"{setup['temperature']:g} within {TEMPERATURE_LIMIT} is allowed"
        )
        return _reject(why, setup, metrics)
    return {"verdict": "pass", "metrics": metrics}


def read_pressure(task_dir: str) -> dict[str, float]:
    """Average ``pressure.txt`` (step, temperature, potential energy per atom, pressure).

    ``pressure_error`` is the standard error of the mean over ``BLOCKS`` blocks; a block of 500
    steps is 3 time units, some ten times the correlation time of the pressure.
    """
    setup, rows = _read(Path(task_dir), "pressure.txt", columns=4)
    if len(rows) < setup["records"]:
        raise ValueError(f"pressure.txt: {len(rows)} records; {setup['records']:g} were asked for")
    temperature, energy, pressure = (float(mean) for mean in rows[:, 1:].mean(axis=0))
    if not abs(temperature - setup["temperature"]) <= HELD_LIMIT:
        raise ValueError(
            f"pressure.txt: mean temperature {temperature:.3f}; "
            f"{setup['temperature']:g} within {HELD_LIMIT} is right"
        )
    return {
        "pressure": pressure,
        "pressure_error": block_error(rows[:, 3]),
        "temperature": temperature,
        "energy": energy,
    }


def block_error(samples: Rows) -> float:
    """Standard error of the mean of a correlated series, shape (n,) with n >= ``BLOCKS``.

    Flyvbjerg and Petersen, J. Chem. Phys. 91, 461 (1989), with blocks of one length.
    """
    length = len(samples) // BLOCKS
    if not length:
        raise ValueError(f"samples: {len(samples)} of them; at least {BLOCKS} are needed")
    means = samples[: length * BLOCKS].reshape(BLOCKS, length).mean(axis=1)
    return float(means.std(ddof=1) / np.sqrt(BLOCKS))


def _reject(why: str, setup: dict[str, float], metrics: dict[str, float]) -> dict[str, object]:
    density = setup["density"]
    way = "lower" if density > LIQUID else "raise"
    reason = (
        f"{why}; {way} the density (now {density:g}) towards {LIQUID}, where the liquid is stable"
    )
    return {"verdict": "reject", "reason": reason, "metrics": metrics}


def _read(folder: Path, name: str, *, columns: int) -> tuple[dict[str, float], Rows]:
    """``setup.json`` and the table ``name``: without the record that every run starts with.

    LAMMPS records the state a run starts from as well, so that a run of n records writes n + 1.
    """
    setup: dict[str, float] = json.loads((folder / "setup.json").read_text(encoding="utf-8"))
    lines = (folder / name).read_text(encoding="utf-8").splitlines()
    values = [[float(word) for word in line.split()] for line in lines if not line.startswith("#")]
    rows = np.array(values, dtype=float).reshape(-1, columns)[1:]
    if not np.isfinite(rows).all():
        raise ValueError(f"{name}: a value that is not finite; the run is not to be trusted")
    return setup, rows
