"""What jobs of Slurm's take of a campaign's budget, as far as its configuration tells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from campaign.budget import ALLOCATED, counted_by
from campaign.config import CampaignConfig
from campaign.fields import duration_text
from campaign.problems import Loc
from executors.allocation import pilot_nodes
from executors.config import SlurmConfig, granted, pilot, shares_job

CAP = "node_hours"


@dataclass(frozen=True, slots=True)
class Reservation:
    """What is reserved for one job of Slurm's; ``at_once`` is how many there may be."""

    what: str
    nodes: int
    seconds: float
    at_once: int = 1

    @property
    def node_hours(self) -> float:
        return self.nodes * self.seconds / 3600

    def __str__(self) -> str:
        nodes = "1 node" if self.nodes == 1 else f"{self.nodes} nodes"
        size = f"{nodes} x {duration_text(self.seconds)}"
        return f"{self.what} reserves {self.node_hours:.4g} node-hours ({size})"


def by_allocation(config: CampaignConfig) -> bool:
    """Whether the cap on node-hours counts nodes that Slurm gave, not tasks."""
    return counted_by(CAP, config.budgets.node_hours) == ALLOCATED


def reservations(config: CampaignConfig) -> Iterator[Reservation]:
    """The pilot jobs of every executor, and the job that `simgate submit` runs the driver in."""
    for label, executor in config.executors.items():
        if (asks := pilot(executor)) is not None:
            at_once = executor.max_pilots if isinstance(executor, SlurmConfig) else 1
            what, nodes = f"a pilot job of executors.{label}", pilot_nodes(executor)
            yield Reservation(what, nodes, granted(asks.walltime), at_once)
    if config.job is not None and any(map(shares_job, config.executors.values())):
        yield Reservation("a job of the driver", config.job.nodes, granted(config.job.walltime))


def allocation_problems(config: CampaignConfig) -> Iterator[tuple[Loc, str]]:
    """Caps on allocation that mean nothing, or that let no job be submitted at all."""
    verifiers = config.budgets.verifier_node_hours
    if verifiers is not None and verifiers.count == "allocation":
        yield (
            ("budgets", "verifier_node_hours", "count"),
            "'allocation'; nodes are had for verifiers and simulations alike: give count: tasks, "
            "or put it on node_hours",
        )
    cap = config.budgets.node_hours
    if cap is None or not by_allocation(config):
        return
    executors = config.executors.values()
    if not any(pilot(one) is not None or shares_job(one) for one in executors):
        kinds = " and ".join(sorted({one.kind for one in executors}))
        yield (
            ("budgets", CAP, "count"),
            f"'allocation'; executors of kind {kinds} have no nodes that Slurm counts: "
            "give count: tasks, or executors of kind slurm, allocation or mpi",
        )
    for one in reservations(config):
        if one.node_hours > cap.limit:
            yield (
                ("budgets", CAP),
                f"{cap.limit:g} node-hours; {one}: raise the cap or lower the walltime",
            )


def allocation_notes(config: CampaignConfig) -> Iterator[str]:
    """What a cap on allocation means for the jobs that are submitted."""
    cap = config.budgets.node_hours
    if cap is None or not by_allocation(config):
        return
    yield "budgets.node_hours counts the nodes Slurm gives, with or without tasks on them"
    for one in reservations(config):
        fits = int((cap.limit + 1e-12) // one.node_hours)
        fewer = f"; at most {fits} of {one.at_once} at once" if fits < one.at_once else ""
        yield f"{one} before it starts{fewer}"
