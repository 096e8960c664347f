"""Steady heat conduction in a finned plate that air blows through: finite volumes on a unit cell.

A plate takes a uniform heat flux from below and carries straight rectangular fins on top. By
symmetry half a fin and half a gap are enough::

        x = 0: middle of a fin
        |----|                     fin: half its thickness wide, `height` tall
        |    |                     its side and its tip give heat to the air
        |    |
        |    +---------|           floor of the gap: gives heat to the air
        |              |           plate
        |--------------|           x = (thickness + spacing) / 2: middle of a gap
        ^ ^ ^ heat flux ^

Solid:  k (d2T/dx2 + d2T/dy2) = 0, k dT/dn = -h (T - T_air) where the solid meets the air, zero
flux on the two planes of symmetry, a given flux below (Incropera, DeWitt, Bergman, Lavine,
Fundamentals of Heat and Mass Transfer, 6th ed., sections 3.6 and 4.4).

Air:  a fan of fixed pressure drives fully developed laminar flow through the gaps, taken as
parallel plates: mean velocity u = s^2 dp / (12 mu L) and h = 8.235 k_air / (2 s) (ibid., table
8.1, uniform flux). Narrow gaps have a high h, but little air, which gets hot: this is why there is
a best spacing (Bejan and Sciubba, Int. J. Heat Mass Transfer 35, 3259 (1992)). The section solved
is the one at the outlet, where the air is hottest.

SI units throughout, temperatures in degrees Celsius; only a candidate is in millimetres.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]

CONDUCTIVITY = 200.0  # W/(m K), aluminium
DENSITY = 2700.0  # kg/m3, aluminium
HEAT_FLUX = 10e3  # W/m2, into the plate
PLATE = 4e-3  # m, thickness of the plate
LENGTH = 0.1  # m, along the flow
FAN_PRESSURE = 20.0  # Pa
INLET = 25.0  # degrees Celsius
AIR_CONDUCTIVITY = 0.026  # W/(m K); air at 300 K, as the three below
AIR_VISCOSITY = 1.85e-5  # Pa s
AIR_DENSITY = 1.16  # kg/m3
AIR_HEAT = 1007.0  # J/(kg K)
NUSSELT = 8.235  # parallel plates, uniform flux, on the hydraulic diameter 2 s

Candidate = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Section:
    """The cross-section of the solid and what acts on it.

    Without a ``plate`` and without ``spacing`` it is a fin heated at its root, without ``height`` a
    plain slab: the cases with an analytic solution.
    """

    height: float  # m, of a fin
    thickness: float  # m, of a fin
    spacing: float  # m, between two fins
    plate: float  # m
    convection: float  # W/(m2 K)
    flux: float = HEAT_FLUX  # W/m2
    conductivity: float = CONDUCTIVITY  # W/(m K)

    @property
    def slenderness(self) -> float:
        """m H = H sqrt(2 h / (k t)): above 2 or so the tip of a fin is cold and does little."""
        m = np.sqrt(2 * self.convection / (self.conductivity * self.thickness))
        return float(m * self.height)


@dataclass(frozen=True, slots=True)
class Solution:
    """Temperatures above the air's, in K, and heat per metre of fin length, in W/m."""

    peak: float  # on the heated face
    root: float  # mean over the foot of the fin
    fin_heat: float  # given to the air by the side and the tip of half a fin
    heat_in: float
    heat_out: float

    @property
    def imbalance(self) -> float:
        """Heat that got lost, as a fraction of what came in: round-off when all is well."""
        return abs(self.heat_in - self.heat_out) / self.heat_in


@dataclass(frozen=True, slots=True)
class Mesh:
    """Columns of ``dx``, the fin's first; rows of ``dy``, the plate's first."""

    dx: Field
    dy: Field
    fin_columns: int
    plate_rows: int
    number: NDArray[np.int64]  # (rows, columns): the number of a cell, -1 where there is air


Solver = Callable[[Section, int], Solution]


def build_mesh(section: Section, cells: int) -> Mesh:
    """``cells`` across half a fin, 2x that across half a gap and the plate, 4x up a fin."""
    widths = (section.thickness / 2, section.spacing / 2)
    heights = (section.plate, section.height)
    columns = [
        _split(width, count) for width, count in zip(widths, (cells, 2 * cells), strict=True)
    ]
    rows = [
        _split(width, count) for width, count in zip(heights, (2 * cells, 4 * cells), strict=True)
    ]
    dx, dy = np.concatenate(columns), np.concatenate(rows)
    solid = np.ones((len(dy), len(dx)), dtype=bool)
    solid[len(rows[0]) :, len(columns[0]) :] = False
    number = np.full(solid.shape, -1, dtype=np.int64)
    number[solid] = np.arange(solid.sum())
    return Mesh(dx, dy, len(columns[0]), len(rows[0]), number)


@dataclass(frozen=True, slots=True)
class System:
    """The balance of every cell: sum of conductance * (T - T of the neighbour) = heat in."""

    heat: Field  # (cells,) W/m into each cell
    contact: Field  # (cells,) W/(m K) from each cell to the air
    links: NDArray[np.int64]  # (2, links): two cells that exchange heat, the lower number first
    conductance: Field  # (links,) W/(m K)

    def bands(self) -> Field:
        """The lower bands of the symmetric matrix: row d is the d-th below the diagonal."""
        one, other = self.links
        bands = np.zeros((int((other - one).max(initial=0)) + 1, len(self.heat)))
        bands[0] = self.contact
        bands[0] += np.bincount(one, self.conductance, bands.shape[1])
        bands[0] += np.bincount(other, self.conductance, bands.shape[1])
        bands[other - one, one] = -self.conductance
        return bands

    def left_over(self, temperature: Field) -> Field:
        """Heat in less heat out of every cell.

        Summed as flows: in matrix times temperature it drowns among large numbers that cancel.
        """
        one, other = self.links
        flow = self.conductance * (temperature[one] - temperature[other])
        left = self.heat - self.contact * temperature
        left -= np.bincount(one, flow, len(left))
        left += np.bincount(other, flow, len(left))
        return left


def heat_of(section: Section, mesh: Mesh) -> Field:
    """Heat into each cell, in W/m: the flux from below into the first row."""
    heat = np.zeros(mesh.number.shape)
    heat[0] = section.flux * mesh.dx
    return heat


def contact_of(section: Section, mesh: Mesh) -> Field:
    """Conductance from the centre of each cell to the air, in W/(m K): half a cell, then 1/h."""

    def to_air(length: Field, across: Field) -> Field:
        return length / (across / (2 * section.conductivity) + 1 / section.convection)

    contact = np.zeros(mesh.number.shape)
    if section.height > 0:
        fin = slice(mesh.plate_rows, None)
        contact[fin, mesh.fin_columns - 1] += to_air(mesh.dy[fin], mesh.dx[mesh.fin_columns - 1])
        contact[-1, : mesh.fin_columns] += to_air(mesh.dx[: mesh.fin_columns], mesh.dy[-1])
    if section.plate > 0:
        floor = slice(mesh.fin_columns if section.height > 0 else 0, None)
        contact[mesh.plate_rows - 1, floor] += to_air(mesh.dx[floor], mesh.dy[mesh.plate_rows - 1])
    return contact


def assemble(section: Section, mesh: Mesh, contact: Field, heat: Field) -> System:
    """The balances of the cells of a mesh, or of some rows of one; the fields are per cell."""
    number, k = mesh.number, section.conductivity
    along = 2 * k * mesh.dy[:, None] / (mesh.dx[1:] + mesh.dx[:-1])
    upward = 2 * k * mesh.dx / (mesh.dy[1:] + mesh.dy[:-1])[:, None]
    pairs = np.hstack(
        [
            [number[:, :-1].ravel(), number[:, 1:].ravel()],
            [number[:-1].ravel(), number[1:].ravel()],
        ]
    )
    solid, linked = number >= 0, (pairs >= 0).all(axis=0)
    conductance = np.append(along, upward)[linked]
    return System(heat[solid], contact[solid], pairs[:, linked], conductance)


def solve(section: Section, cells: int) -> Solution:
    """Solve the balances of all cells.

    Second order in the size of the cells where the solution is smooth; at the foot of a fin, whose
    corner is concave, the flux is singular and the error falls off a little more slowly.

    The direct solution is off by up to 1e-8, because metal conducts a hundred million times better
    from cell to cell than air takes heat from one; solving twice more, for the heat that is left
    over, makes it good to the last digits.
    """
    from scipy.linalg import cho_solve_banded, cholesky_banded  # so that inspecting need not wait

    mesh = build_mesh(section, cells)
    system = assemble(section, mesh, contact_of(section, mesh), heat_of(section, mesh))
    factor = cholesky_banded(system.bands(), lower=True, check_finite=False)
    temperature = np.zeros(len(system.heat))
    for _ in range(3):
        left = system.left_over(temperature)
        temperature += cho_solve_banded((factor, True), left, check_finite=False)
    return solution_of(section, mesh, temperature)


def solution_of(section: Section, mesh: Mesh, temperatures: Field) -> Solution:
    """What the temperatures of all cells, in the order of their numbers, come to."""
    temperature = np.zeros(mesh.number.shape)
    temperature[mesh.number >= 0] = temperatures
    lost = contact_of(section, mesh) * temperature
    face = temperature[0] + section.flux * mesh.dy[0] / (2 * section.conductivity)
    return Solution(
        peak=float(face.max()),
        root=_root(section, mesh, temperature),
        fin_heat=float(lost[mesh.plate_rows :].sum()),
        heat_in=float(heat_of(section, mesh).sum()),
        heat_out=float(lost.sum()),
    )


def peak_above_air(section: Section, cells: int) -> float:
    """The highest temperature of the solid, in K above the air's."""
    return solve(section, cells).peak


def section_of(candidate: Candidate) -> Section:
    """The section of a candidate ``{height, spacing, thickness}`` in millimetres."""
    height, spacing, thickness = (
        candidate[name] * 1e-3 for name in ("height", "spacing", "thickness")
    )
    convection = NUSSELT * AIR_CONDUCTIVITY / (2 * spacing)
    return Section(height, thickness, spacing, PLATE, convection)


def air_rise(section: Section) -> float:
    """How much warmer the air leaves the gaps than it came, in K: heat over the flow's capacity."""
    velocity = section.spacing**2 * FAN_PRESSURE / (12 * AIR_VISCOSITY * LENGTH)
    capacity = AIR_DENSITY * AIR_HEAT * velocity * section.spacing * section.height
    return section.flux * (section.thickness + section.spacing) * LENGTH / capacity


def mass(section: Section) -> float:
    """Of plate and fins, in kg per m2 of plate."""
    share = section.thickness / (section.thickness + section.spacing)
    return DENSITY * (section.plate + section.height * share)


def fin_efficiency(section: Section, solution: Solution) -> float:
    """Heat a fin gives, over what it would give if all of it were as warm as its root."""
    surface = section.height + section.thickness / 2
    return solution.fin_heat / (section.convection * surface * solution.root)


def simulate(candidate: Candidate, *, cells: int, solve: Solver = solve) -> dict[str, float]:
    """The simulation: peak temperature (degrees Celsius) and what explains it."""
    section = section_of(candidate)
    solution = solve(section, cells)
    rise = air_rise(section)
    return {
        "peak_temperature": INLET + rise + solution.peak,
        "air_rise": rise,
        "mass": mass(section),
        "efficiency": fin_efficiency(section, solution),
        "imbalance": solution.imbalance,
    }


def verify(
    candidate: Candidate,
    *,
    cells: int,
    max_mass: float,
    max_error: float,
    max_imbalance: float,
    solve: Solver = solve,
) -> dict[str, object]:
    """The verifier: two coarse solutions, one with cells of half the size, must agree.

    ``max_mass`` is in kg/m2, ``max_error`` a fraction of the peak's rise over the air and
    ``max_imbalance`` one of the heat. The reason names every defect, each with the way to move.
    """
    section = section_of(candidate)
    coarse, fine = solve(section, cells), solve(section, 2 * cells)
    weight, error = mass(section), abs(coarse.peak - fine.peak) / fine.peak
    imbalance = max(coarse.imbalance, fine.imbalance)
    defects = []
    if not weight <= max_mass:
        defects.append(
            f"mass: {weight:.1f} kg/m2, at most {max_mass:g}; "
            "lower height or thickness, or raise spacing"
        )
    if not error <= max_error:
        defects.append(
            f"grid convergence: {error:.2%} on halved cells, at most {max_error:.2%}; "
            f"lower height or raise thickness (m H = {section.slenderness:.1f})"
        )
    if not imbalance <= max_imbalance:
        defects.append(
            f"energy balance: {imbalance:.1e} of the heat is lost, at most {max_imbalance:.0e}; "
            "choose less extreme ratios"
        )
    metrics = {"mass": weight, "grid_error": error, "imbalance": imbalance}
    if defects:
        return {"verdict": "reject", "reason": "; ".join(defects), "metrics": metrics}
    return {"verdict": "pass", "metrics": metrics}


def _split(width: float, count: int) -> Field:
    return np.full(count, width / count) if width > 0 else np.empty(0)


def _root(section: Section, mesh: Mesh, temperature: Field) -> float:
    """Mean temperature of the foot of the fin; the heated face's where the fin has no plate."""
    if not section.height:
        return 0.0
    row, columns = mesh.plate_rows, slice(mesh.fin_columns)
    above = temperature[row, columns]
    if not section.plate:
        return float((above + section.flux * mesh.dy[0] / (2 * section.conductivity)).mean())
    below, up, down = temperature[row - 1, columns], mesh.dy[row], mesh.dy[row - 1]
    return float(((above * down + below * up) / (up + down)).mean())
