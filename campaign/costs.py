"""What a campaign can use of everything that has a cap: the bill before anything is run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from campaign.agentconfig import Calls
from campaign.agents.base import Agent
from campaign.allocationcost import by_allocation, reservations
from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig
from campaign.gateconfig import iterations, structural_budget
from campaign.limits import DRAWS, worst_case
from campaign.model import Ask
from campaign.problems import ConfigError
from campaign.template import TemplateError


@dataclass(frozen=True, slots=True)
class Cost:
    """One line of the bill: the least and the most a campaign can use of something.

    ``least`` is every candidate passing at once and taking no time to speak of; ``most`` is
    every answer rejected at the last moment, every retry used, every task at its walltime.
    """

    what: str
    least: float
    most: float
    cap: float | None


def costs_of(loaded: LoadedConfig) -> Iterator[Cost]:
    """Every line of the bill of a campaign."""
    config = loaded.config
    slots = config.rounds * config.batch_size
    rounds, tries = config.rounds, iterations(config) + DRAWS
    verifiers = sum(worst_case(task) * (1 + task.retries) for task in config.verifiers)
    simulation = worst_case(config.simulation) * (1 + config.simulation.retries)
    budgets = config.budgets
    answers = iterations(config) + (structural_budget(config) or 0)
    yield _cost("generations", rounds, rounds * answers, budgets.generations)
    yield from _asking_costs(loaded, rounds * answers)
    runs = sum(1 + task.retries for task in config.verifiers)
    yield _cost("verifier runs", slots * len(config.verifiers), slots * tries * runs, None)
    yield _cost("simulation runs", slots, slots * (1 + config.simulation.retries), None)
    verifying = slots * tries * verifiers
    yield _cost("verifier node-hours", 0, verifying, budgets.verifier_node_hours)
    cap = None if by_allocation(config) else budgets.node_hours
    yield _cost("node-hours", 0, verifying + slots * simulation, cap)


def _asking_costs(loaded: LoadedConfig, answers: int) -> Iterator[Cost]:
    """Calls of the agent and of the judge, and the tokens of the first."""
    config, budgets = loaded.config, loaded.config.budgets
    if isinstance(config.agent, Calls):
        calls = answers * (1 + config.agent.retries)
        yield _cost("calls of the agent", config.rounds, calls, None)
        if one := first_call(loaded):
            yield _cost("tokens of the agent", 0, calls * one, budgets.tokens)
    judged = [] if loaded.expect is None else [r for r in loaded.expect.suite.rules if r.judged]
    if judged:
        votes = sum(int(str(rule.params["votes"])) for rule in judged)
        slots = config.rounds * config.batch_size
        most = slots * votes * (iterations(config) + DRAWS)
        yield _cost("votes of the judge", 0, most, budgets.judge_calls)


def declared(loaded: LoadedConfig) -> Agent | None:
    """The agent, to be looked at and not asked; None for the surrogate, and for a faulty one."""
    config = loaded.config
    from campaign.agents.make import agent_of
    from campaign.render import Place

    suite = None if loaded.expect is None else loaded.expect.suite
    try:
        return agent_of(config, Place(loaded.folder, loaded.folder, config.seed), suite)
    except (ConfigError, TemplateError):  # reported for themselves
        return None


def first_call(loaded: LoadedConfig) -> int:
    """Tokens that the first call of an agent reserves."""
    agent, config = declared(loaded), loaded.config
    slots = tuple(range(config.batch_size))
    return 0 if agent is None else agent.worst(Ask(1, 1, slots, batch=len(slots)))


def allocation_costs(config: CampaignConfig) -> Iterator[Cost]:
    """What jobs of Slurm's reserve: the smallest one alone, and all that may be there at once."""
    found = list(reservations(config))
    if found:
        least = min(one.node_hours for one in found)
        most = sum(one.node_hours * one.at_once for one in found)
        cap = config.budgets.node_hours if by_allocation(config) else None
        yield _cost("node-hours in jobs", least, most, cap)


def _cost(what: str, least: float, most: float, cap: object) -> Cost:
    limit = getattr(cap, "limit", None)
    return Cost(what, float(least), float(most), None if limit is None else float(limit))
