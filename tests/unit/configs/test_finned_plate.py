"""The solver of configs/quickstart against analytic solutions, and its verifier and recording."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from campaign.agents.replay import load_recording
from campaign.config import CampaignConfig
from campaign.configfile import load_config
from campaign.taskconfig import PythonTask

FOLDER = Path(__file__).parents[3] / "configs" / "quickstart"
GOOD = {"height": 38.0, "spacing": 2.2, "thickness": 0.3}


@pytest.fixture(scope="module")
def fins() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield importlib.import_module("fins")


@pytest.fixture(scope="module")
def config() -> CampaignConfig:
    return load_config(FOLDER).config


@pytest.fixture(scope="module")
def limits(config: CampaignConfig) -> dict[str, Any]:
    """The arguments that the campaign gives its verifier."""
    (verifier,) = config.verifiers
    assert isinstance(verifier, PythonTask)
    return dict(verifier.arguments)


@pytest.fixture(scope="module")
def fin(fins: ModuleType) -> Any:
    """A fin heated at its root, without a plate: 10 mm tall, 2 mm thick."""
    return fins.Section(
        height=0.01, thickness=0.002, spacing=0.0, plate=0.0, convection=2000.0, conductivity=20.0
    )


def exact_fin_peak(section: Any, terms: int = 200) -> float:
    """Separation of variables on half a fin: theta = sum of C_n cos(l_n x) Y_n(y), at x = y = 0."""
    half, k, h = section.thickness / 2, section.conductivity, section.convection
    biot = h * half / k
    peak = 0.0
    for n in range(terms):
        root = brentq(
            lambda z: z * np.sin(z) - biot * np.cos(z), n * np.pi, n * np.pi + np.pi / 2, xtol=1e-14
        )
        decay = root / half
        tip = h / (k * decay)
        # Y_n / -Y_n' at the root, without the overflow of cosh and sinh.
        tanh = np.tanh(decay * section.height)
        ratio = (1 + tip * tanh) / (decay * (tanh + tip))
        share = (np.sin(root) / decay) / (half / 2 + np.sin(2 * root) / (4 * decay))
        peak += share * section.flux / k * ratio
    return peak


def orders(errors: list[float]) -> list[float]:
    return [float(np.log2(a / b)) for a, b in pairwise(errors)]


@pytest.mark.parametrize("cells", [1, 3, 8])
def test_a_slab_with_flux_and_convection_is_exact_on_every_grid(
    fins: ModuleType, cells: int
) -> None:
    slab = fins.Section(height=0.0, thickness=1e-3, spacing=2e-3, plate=5e-3, convection=80.0)
    exact = slab.flux / slab.convection + slab.flux * slab.plate / slab.conductivity
    assert fins.solve(slab, cells).peak == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("height", [0.01, 0.04, 0.1])
def test_a_thin_fin_follows_the_one_dimensional_fin_with_a_convective_tip(
    fins: ModuleType, height: float
) -> None:
    fin = fins.Section(height=height, thickness=5e-4, spacing=0.0, plate=0.0, convection=60.0)
    m = np.sqrt(2 * fin.convection / (fin.conductivity * fin.thickness))
    tip = fin.convection / (m * fin.conductivity)
    tanh = np.tanh(m * height)
    exact = fin.flux / (fin.conductivity * m) * (1 + tip * tanh) / (tanh + tip)
    assert fin.slenderness == pytest.approx(m * height)
    assert fins.solve(fin, 24).peak == pytest.approx(exact, rel=5e-4)


def test_a_thick_fin_follows_the_two_dimensional_series(fins: ModuleType, fin: Any) -> None:
    assert fins.solve(fin, 32).peak == pytest.approx(exact_fin_peak(fin), rel=2e-4)


def test_the_error_of_a_fin_falls_with_the_square_of_the_cells(fins: ModuleType, fin: Any) -> None:
    exact = exact_fin_peak(fin)
    errors = [abs(fins.solve(fin, cells).peak - exact) for cells in (4, 8, 16, 32)]
    assert all(1.9 < order < 2.1 for order in orders(errors)), orders(errors)


def test_the_concave_corner_of_the_whole_section_costs_half_an_order(fins: ModuleType) -> None:
    section = fins.section_of({"height": 30.0, "spacing": 2.0, "thickness": 0.5})
    peaks = [fins.solve(section, cells).peak for cells in (2, 4, 8, 16)]
    steps = [abs(a - b) for a, b in pairwise(peaks)]
    assert all(1.3 < order < 2.1 for order in orders(steps)), orders(steps)


def test_heat_in_is_heat_out_to_round_off_everywhere_in_the_space(
    fins: ModuleType, config: CampaignConfig
) -> None:
    low = np.array([one.min for one in config.parameters.values()])  # type: ignore[union-attr]
    high = np.array([one.max for one in config.parameters.values()])  # type: ignore[union-attr]
    for point in np.random.default_rng(0).uniform(low, high, size=(50, len(low))):
        candidate = dict(zip(config.parameters, map(float, point), strict=True))
        assert fins.solve(fins.section_of(candidate), 8).imbalance < 1e-8


def test_the_efficiency_of_a_fin_on_a_plate_is_that_of_the_textbook(fins: ModuleType) -> None:
    section = fins.section_of({"height": 30.0, "spacing": 2.0, "thickness": 0.5})
    corrected = section.slenderness * (1 + section.thickness / 2 / section.height)
    exact = np.tanh(corrected) / corrected
    assert fins.fin_efficiency(section, fins.solve(section, 24)) == pytest.approx(exact, rel=0.005)


def test_a_better_conductor_and_more_convection_both_cool_the_plate(fins: ModuleType) -> None:
    section = fins.section_of(GOOD)
    peak = fins.solve(section, 8).peak
    assert fins.solve(replace(section, conductivity=400.0), 8).peak < peak
    assert fins.solve(replace(section, convection=2 * section.convection), 8).peak < peak


def test_mass_and_warming_of_the_air_follow_from_the_sizes(fins: ModuleType) -> None:
    section = fins.section_of({"height": 30.0, "spacing": 2.0, "thickness": 0.5})
    assert fins.mass(section) == pytest.approx(2700 * (0.004 + 0.030 * 0.5 / 2.5))
    velocity = 0.002**2 * 20.0 / (12 * 1.85e-5 * 0.1)
    heat, flow = 10e3 * 0.0025 * 0.1, 1.16 * velocity * 0.002 * 0.030
    assert fins.air_rise(section) == pytest.approx(heat / (flow * 1007.0))


def test_the_flow_is_laminar_in_the_widest_gap(fins: ModuleType, config: CampaignConfig) -> None:
    widest = config.parameters["spacing"].max * 1e-3  # type: ignore[union-attr]
    velocity = widest**2 * fins.FAN_PRESSURE / (12 * fins.AIR_VISCOSITY * fins.LENGTH)
    assert fins.AIR_DENSITY * velocity * 2 * widest / fins.AIR_VISCOSITY < 2300


def test_the_simulation_is_converged_to_a_hundredth_of_a_kelvin(
    fins: ModuleType, config: CampaignConfig
) -> None:
    assert isinstance(config.simulation, PythonTask)
    cells = config.simulation.arguments["cells"]
    assert isinstance(cells, int)
    once = fins.simulate(GOOD, cells=cells)
    finer = fins.simulate(GOOD, cells=2 * cells)
    assert once["peak_temperature"] == pytest.approx(finer["peak_temperature"], abs=0.01)
    assert set(once) >= {config.objective.name, "mass", "efficiency"}


def test_the_verifier_passes_a_sound_candidate_with_its_metrics(
    fins: ModuleType, limits: dict[str, Any]
) -> None:
    verdict = fins.verify(GOOD, **limits)
    assert verdict["verdict"] == "pass"
    assert set(verdict["metrics"]) == {"mass", "grid_error", "imbalance"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"thickness": 0.8},
            r"^mass: 38\.2 kg/m2, at most 25; lower height or thickness, or raise spacing$",
        ),
        (
            {"thickness": 0.12},
            r"^grid convergence: 2\.\d\d% on halved cells, at most 1\.50%; "
            r"lower height or raise thickness \(m H = 2\.4\)$",
        ),
        ({"height": 50.0, "spacing": 0.8, "thickness": 0.25}, r"^mass: .*; grid convergence: "),
    ],
)
def test_a_rejection_says_what_was_found_what_is_allowed_and_which_way_to_move(
    fins: ModuleType, limits: dict[str, Any], change: dict[str, float], reason: str
) -> None:
    verdict = fins.verify(GOOD | change, **limits)
    assert verdict["verdict"] == "reject"
    assert re.search(reason, verdict["reason"]), verdict["reason"]


def test_an_energy_balance_that_is_off_is_rejected(
    fins: ModuleType, limits: dict[str, Any]
) -> None:
    verdict = fins.verify(GOOD, **limits | {"max_imbalance": -1.0})
    assert verdict["verdict"] == "reject"
    assert verdict["reason"].startswith("energy balance: ")


def test_the_recording_gives_every_layer_of_the_gate_something_to_catch(
    fins: ModuleType, limits: dict[str, Any]
) -> None:
    answers = load_recording(FOLDER / "answers.yaml").answers
    found: dict[tuple[int, int], list[str]] = {}
    tried: list[Any] = []
    for place in sorted(answers):
        found[place] = []
        for candidate in answers[place].candidates:
            if candidate["height"] > 50:
                found[place].append("bounds")
            elif candidate in tried:
                found[place].append("distinct")
            else:
                found[place].append(fins.verify(candidate, **limits)["verdict"])
            tried.append(candidate)
    assert found == {
        (1, 1): ["pass", "pass", "bounds", "pass"],
        (1, 2): ["pass"],
        (2, 1): ["pass", "reject", "pass", "reject"],
        (2, 2): ["pass", "reject"],  # the surrogate fills this slot
        (3, 1): ["distinct", "pass", "pass", "pass"],
        (3, 2): ["pass"],
    }
