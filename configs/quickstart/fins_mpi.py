"""The finned plate of ``fins.py``, solved by all MPI ranks together: each has a slab of rows.

Substructuring, a direct method (Smith, Bjorstad, Gropp, Domain Decomposition, 1996, chapter 4).
The first row of every slab but the lowest is an *edge*. What remains of a slab, its *inside*,
touches edges only, so that the insides do not know of each other::

        rank 1   inside          A = [ A_ii  A_ie ]     i: the insides, a block for each
                 edge                [ A_ei  A_ee ]     e: all edges
        rank 0   inside
                                 S = A_ee - A_ei A_ii^-1 A_ie

Each rank assembles and factorises its own slab. Rank 0 sums the ranks' parts of S, the small matrix
of the edges, and solves for them; with the edges known every rank solves its own inside.

A direct solution is off by up to 1e-8, because metal conducts a hundred million times better from
cell to cell than air takes heat from one. So the heat it leaves over is solved for again, until
nothing changes any more (iterative refinement: Higham, Accuracy and Stability of Numerical
Algorithms, chapter 12), and the number of ranks does not show in the answer.

Work that may fail on one rank alone is done in ``_together``: then every rank raises, and none is
left waiting for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import fins
import numpy as np
from fins import Candidate, Field, Mesh, Section, Solution, System

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

TOLERANCE = 1e-13  # the largest change of a temperature in the last step, over the highest
MAX_STEPS = 10  # three or four do

T = TypeVar("T")
Parts = Sequence[tuple[slice, Field]]  # of each rank: which of all edges, and their part


def simulate(candidate: Candidate, *, cells: int) -> dict[str, float]:
    """``fins.simulate``, called by every rank and answered on every rank."""
    return fins.simulate(candidate, cells=cells, solve=solve)


def verify(
    candidate: Candidate, *, cells: int, max_mass: float, max_error: float, max_imbalance: float
) -> dict[str, object]:
    """``fins.verify``, called by every rank and answered on every rank."""
    limits = {"max_mass": max_mass, "max_error": max_error, "max_imbalance": max_imbalance}
    return fins.verify(candidate, cells=cells, **limits, solve=solve)


def solve(section: Section, cells: int) -> Solution:
    """``fins.solve``, by all ranks. What one rank raises all raise.

    ``LinAlgError``: the matrix is not positive definite. ``ArithmeticError``: the temperatures do
    not settle. ``RuntimeError``: another rank raised one of these or something else.
    """
    from mpi4py import MPI  # here, since importing it starts MPI

    mesh, comm = fins.build_mesh(section, cells), MPI.COMM_WORLD
    share = _share(mesh, comm.rank, comm.size)
    slab = _together(comm, _assemble, section, mesh, share)
    temperatures = np.concatenate(comm.allgather(_settle(comm, slab)))
    return fins.solution_of(section, mesh, temperatures)


@dataclass(frozen=True, slots=True)
class Share:
    """What of the mesh is a rank's: some rows, or none where there are more ranks than work."""

    rows: slice
    cells: int  # of these rows
    below: int  # cells of the row below them
    lower: int  # cells of its own edge; the lowest slab has none
    upper: int  # cells of the row above, the edge of the next rank
    edges: slice  # where these two edges stand among all


@dataclass(frozen=True, slots=True)
class Slab:
    """A rank's part of the system. Its cells are its edge, its inside, the next rank's edge."""

    share: Share
    system: System  # of these cells; of the next rank's edge only what it exchanges with the inside
    factor: Field  # Cholesky's of A_ii, its bands
    coupling: Field  # A_ie, (inside, edges)
    spread: Field  # A_ii^-1 A_ie
    stiffness: Field  # the rank's part of S

    def condense(self, heat: Field) -> tuple[Field, Field]:
        """What ``heat`` does to the inside if the edges stay, and what it then is to the edges."""
        lower, cells = self.share.lower, self.share.cells
        inside = _solve_inside(self.factor, heat[lower:cells])
        edges = np.concatenate([heat[:lower], heat[cells:]])
        return inside, edges - self.coupling.T @ inside

    def expand(self, inside: Field, edges: Field) -> Field:
        """The change of every cell, given what the edges do."""
        lower = self.share.lower
        return np.concatenate([edges[:lower], inside - self.spread @ edges, edges[lower:]])


def _share(mesh: Mesh, rank: int, ranks: int) -> Share:
    """Rows in equal numbers of two at least, an edge and an inside; the last ranks may get none."""
    rows = len(mesh.dy)
    busy = min(ranks, rows // 2)
    first = [rows * min(r, busy) // busy for r in range(ranks + 1)]
    cells = [*(mesh.number >= 0).sum(axis=1).tolist(), 0]
    edges = [cells[row] if row else 0 for row in first]
    start, lower, upper = sum(edges[:rank]), edges[rank], edges[rank + 1]
    return Share(
        rows=slice(first[rank], first[rank + 1]),
        cells=sum(cells[first[rank] : first[rank + 1]]),
        below=cells[first[rank] - 1] if rank else 0,
        lower=lower,
        upper=upper,
        edges=slice(start, start + lower + upper),
    )


def _assemble(section: Section, mesh: Mesh, share: Share) -> Slab:
    """Everything of a slab, from the mesh of its rows and the two beside them."""
    from scipy.linalg import cholesky_banded
    from scipy.sparse import dia_array

    near = slice(max(share.rows.start - 1, 0), share.rows.stop + 1)
    number = mesh.number[near]
    piece = replace(mesh, dy=mesh.dy[near], number=np.where(number < 0, -1, number - number[0, 0]))
    contact, heat = fins.contact_of(section, mesh)[near], fins.heat_of(section, mesh)[near]
    system = fins.assemble(section, piece, contact, heat)
    bands = system.bands()[:, share.below :]
    matrix = dia_array((bands, -np.arange(len(bands))), shape=(bands.shape[1],) * 2).tocsr()

    own, inside = slice(share.lower), slice(share.lower, share.cells)
    factor = cholesky_banded(bands[:, inside], lower=True)
    coupling = np.hstack([matrix[inside, own].toarray(), matrix[share.cells :, inside].toarray().T])
    spread = _solve_inside(factor, coupling)
    stiffness = -coupling.T @ spread
    triangle = matrix[own, own].toarray()
    stiffness[own, own] += triangle + np.tril(triangle, -1).T
    return Slab(share, _without_neighbours(system, share), factor, coupling, spread, stiffness)


def _without_neighbours(system: System, share: Share) -> System:
    """The slab's part: neither the row below nor what is within the row above."""
    links = system.links - share.below
    ours = (links[0] >= 0) & (links[0] < share.cells)
    heat, contact = system.heat[share.below :].copy(), system.contact[share.below :].copy()
    heat[share.cells :] = contact[share.cells :] = 0
    return System(heat, contact, links[:, ours], system.conductance[ours])


def _settle(comm: Intracomm, slab: Slab) -> Field:
    """The temperatures of the rank's own cells; every step solves for what the last left over."""
    edges = slab.share.edges
    factor = _together(comm, _factorise_edges, comm.gather((edges, slab.stiffness)))
    temperature = np.zeros(len(slab.system.heat))
    for _ in range(MAX_STEPS):
        left = slab.system.left_over(temperature)
        inside, heat = _together(comm, slab.condense, left)
        answer = _together(comm, _solve_edges, factor, comm.gather((edges, heat)))
        change = slab.expand(inside, comm.bcast(answer)[edges])
        temperature += change
        sizes = comm.allgather([abs(of).max(initial=0.0) for of in (left, change, temperature)])
        residual, last, highest = np.max(sizes, axis=0)  # the same on all ranks; NaN if one is
        if last <= TOLERANCE * highest:
            return temperature[: slab.share.cells]
    raise ArithmeticError(
        f"temperatures: still change by {last:.1e} K after {MAX_STEPS} steps, at most "
        f"{TOLERANCE * highest:.1e} K is right; residual {residual:.1e} W/m"
    )


def _solve_inside(factor: Field, heat: Field) -> Field:
    from scipy.linalg import cho_solve_banded

    # SciPy before 1.14 takes nothing empty: an idle rank's inside, the edges of a rank alone.
    return cho_solve_banded((factor, True), heat) if heat.size else heat


def _factorise_edges(parts: Parts | None) -> Field | None:
    """Cholesky's factor of S on rank 0, which alone has the parts."""
    return None if parts is None else np.linalg.cholesky(_summed(parts))


def _solve_edges(factor: Field | None, parts: Parts | None) -> Field | None:
    from scipy.linalg import cho_solve

    if factor is None or parts is None:
        return None
    heat = _summed(parts)
    return cho_solve((factor, True), heat) if heat.size else heat


def _summed(parts: Parts) -> Field:
    """A vector or a matrix over all edges, summed in the order of the ranks."""
    whole = np.zeros([max(edges.stop for edges, _ in parts)] * parts[0][1].ndim)
    for edges, part in parts:
        whole[(edges,) * part.ndim] += part
    return whole


def _together(comm: Intracomm, work: Callable[..., T], *arguments: object) -> T:
    """What ``work(*arguments)`` gives on this rank; if it raises on one rank, all raise.

    It must not communicate.
    """
    error = None
    try:
        done = work(*arguments)
    except Exception as raised:  # whatever it is, the other ranks must not wait for this one
        error = raised
    failures = comm.allgather("" if error is None else f"{type(error).__name__}: {error}")
    if error is not None:
        raise error
    for rank, failure in enumerate(failures):
        if failure:
            raise RuntimeError(f"rank {rank} failed: {failure}")
    return done
