"""Where the nodes' time went: busy, idle and lost, over the run and by node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from campaign.allocated import LOST
from campaign.report.chronicle import Chronicle
from campaign.state import CampaignState

Array = NDArray[np.float64]
BINS = 160


@dataclass(frozen=True, slots=True)
class Timeline:
    """Mean numbers of nodes in equal spans of time; ``edges`` are hours since the start.

    ``had`` are those Slurm gave, zeros where no allocation is counted: then what a node did
    without a task is not known either. Arrays are of the length of ``edges`` less one.
    """

    edges: Array
    busy: Array
    lost: Array
    had: Array
    allocated: bool

    @property
    def idle(self) -> Array:
        """Nodes that were had and ran nothing."""
        free: Array = np.maximum(self.had - self.busy - self.lost, 0.0)
        return free


@dataclass(frozen=True, slots=True)
class Host:
    """What ran on one node; hours of tries, each times the nodes it kept busy."""

    name: str
    tries: int
    busy: float
    lost: float
    first: float  # seconds since the epoch
    last: float


@dataclass(frozen=True, slots=True)
class Nodes:
    """The bill is None without allocations; hosts, the busiest first."""

    timeline: Timeline
    hosts: tuple[Host, ...]
    bill: dict[str, float] | None


def nodes(state: CampaignState, told: Chronicle) -> Nodes:
    """From the tries that have ended and the allocations until now."""
    found = state.allocations.bill(state.changed_at)
    bill = None
    if found is not None:
        bill = {
            "allocated": found.allocated,
            "tasks": found.tasks,
            "idle": found.idle,
            "lost": found.lost,
        }
    return Nodes(_timeline(state, told), _hosts(told), bill)


def _timeline(state: CampaignState, told: Chronicle) -> Timeline:
    start, end = state.started_at, max(state.changed_at, state.started_at + 1e-3)
    edges = np.linspace(start, end, BINS + 1)
    tries = told.tries
    lost = np.array([status in LOST for status in tries.status], dtype=bool)
    began, ended, width = (np.array(one) for one in (tries.began, tries.ended, tries.nodes))
    held = [(one.began, one.ended, float(one.nodes)) for one in told.held]
    had = np.array(held).reshape(-1, 3)
    return Timeline(
        (edges - start) / 3600,
        _mean(edges, began[~lost], ended[~lost], width[~lost]),
        _mean(edges, began[lost], ended[lost], width[lost]),
        _mean(edges, had[:, 0], had[:, 1], had[:, 2]),
        bool(state.allocations.count),
    )


def _mean(edges: Array, began: Array, ended: Array, width: Array) -> Array:
    """The mean height in each bin of steps of ``width`` from ``began`` to ``ended``."""
    until = _integral(edges, began, width) - _integral(edges, ended, width)
    out: Array = np.diff(until) / np.diff(edges)
    return out


def _integral(edges: Array, at: Array, height: Array) -> Array:
    """The integral up to each edge of steps up by ``height`` at each of ``at``."""
    order = np.argsort(at)
    at, height = at[order], height[order]
    before = np.searchsorted(at, edges)
    sums = np.concatenate([[0.0], np.cumsum(height)])[before]
    moments = np.concatenate([[0.0], np.cumsum(height * (at - edges[0]))])[before]
    out: Array = sums * (edges - edges[0]) - moments
    return out


def _hosts(told: Chronicle) -> tuple[Host, ...]:
    tries = told.tries
    names = sorted({name for name in tries.host if name})
    index = {name: place for place, name in enumerate(names)}
    of = np.array([index.get(name, -1) for name in tries.host], dtype=int)
    lost = np.array([status in LOST for status in tries.status], dtype=bool)
    began, ended = np.array(tries.began), np.array(tries.ended)
    hours = (ended - began) * np.array(tries.nodes) / 3600
    found = []
    for name, place in index.items():
        mine = of == place
        total, gone = float(hours[mine].sum()), float(hours[mine & lost].sum())
        span = float(began[mine].min()), float(ended[mine].max())
        found.append(Host(name, int(mine.sum()), total - gone, gone, *span))
    return tuple(sorted(found, key=lambda one: (-one.busy, one.name)))
