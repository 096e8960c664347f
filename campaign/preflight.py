"""Everything that can be refused before money is spent, and what a campaign can cost at most."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from campaign.agentconfig import OwnAgent
from campaign.agentpreflight import agent_notes, agent_problems
from campaign.agents.base import Capabilities
from campaign.allocationcost import (
    CAP,
    allocation_notes,
    allocation_problems,
    by_allocation,
)
from campaign.config import CampaignConfig, CommandTask, MpiTask, PythonAgent, TaskConfig
from campaign.configfile import LoadedConfig
from campaign.costs import Cost, allocation_costs, costs_of, declared, first_call
from campaign.gateconfig import merged, policies
from campaign.limits import worst_case
from campaign.problems import ConfigError, Loc, Problem
from campaign.template import RESERVED, TemplateError, placeholders, render, render_file
from executors.base import CommandWork, MpiWork
from executors.config import ParslConfig
from executors.launch import check_work, default_launcher, script_of, unreadable
from executors.probe import Probe

Placed: TypeAlias = tuple[Loc, TaskConfig]
"""A task with its place in the config."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What preflight found. With no ``problems`` the campaign may run."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    costs: tuple[Cost, ...]
    agent: Capabilities


def inspect(loaded: LoadedConfig, begun: Probe | None = None) -> Inspection:
    """Look at everything the config names: files, modules, executables, caps. Runs no task.

    ``begun`` is a probe that may already import what the config names.
    """
    return weigh(loaded, unusable(loaded, tuple(tasks(loaded.config)), begun))


def weigh(loaded: LoadedConfig, reasons: Mapping[str, str]) -> Inspection:
    """Inspect, knowing by :func:`unusable` which functions cannot be imported."""
    problems = faults(loaded, tuple(tasks(loaded.config)), reasons)
    costs = tuple(costs_of(loaded))
    config = loaded.config
    notes = (
        *_notes(costs),
        *allocation_notes(config),
        *_gate_notes(config),
        *agent_notes(loaded),
    )
    agent = declared(loaded)
    can = Capabilities() if agent is None else agent.capabilities
    return Inspection(problems, notes, (*costs, *allocation_costs(config)), can)


def faults(
    loaded: LoadedConfig, those: Sequence[Placed], reasons: Mapping[str, str]
) -> tuple[Problem, ...]:
    """What is wrong with the agent, the caps and some tasks; for ``reasons`` see `unusable`."""
    config = loaded.config
    found = [
        *_absent(loaded, those, reasons),
        *_cap_problems(config, those),
        *_token_problems(loaded),
        *allocation_problems(config),
    ]
    return tuple(loaded.problem(loc, message) for loc, message in found)


def require_again(config: CampaignConfig, folder: Path, run_dir: Path) -> None:
    """Raise :class:`ConfigError` for what a run that goes on names and is not there any more."""
    loaded = LoadedConfig(config, run_dir, folder, {})
    those = tuple(tasks(config))
    found = _absent(loaded, those, unusable(loaded, those, None))
    if problems := [loaded.problem(loc, message) for loc, message in found]:
        raise ConfigError(problems, f"{run_dir}, whose campaign folder is {folder}")


def _absent(
    loaded: LoadedConfig, those: Sequence[Placed], reasons: Mapping[str, str]
) -> Iterator[tuple[Loc, str]]:
    """What the agent and the tasks name and is not there, or cannot be used."""
    config, folder = loaded.config, loaded.folder
    yield from agent_problems(config, folder)
    for loc, task in those:
        yield from _task_problems(loc, task, config, folder)
    yield from _import_problems(loaded, those, reasons)


def require(loaded: LoadedConfig, begun: Probe | None = None) -> Inspection:
    """Inspect, and raise :class:`ConfigError` with every problem when there is one."""
    found = inspect(loaded, begun)
    if found.problems:
        raise ConfigError(found.problems, str(loaded.path))
    return found


def tasks(config: CampaignConfig) -> Iterator[Placed]:
    """Every task with its place in the config."""
    for index, verifier in enumerate(config.verifiers):
        yield ("verifiers", index), verifier
    yield ("simulation",), config.simulation


def _task_problems(
    loc: Loc, task: TaskConfig, config: CampaignConfig, folder: Path
) -> Iterator[tuple[Loc, str]]:
    if isinstance(task, CommandTask):
        yield from _program_problems((*loc, "command"), task.command[0], folder)
        yield from _script_problems((*loc, "command"), task, folder)
        names = dict.fromkeys((*config.parameters, *RESERVED), "0")
        for name, source in task.files.items():
            yield from _file_problems((*loc, "files", name), folder / source, names)
    if isinstance(task, CommandTask | MpiTask):
        if task.launcher is not None:
            yield from _program_problems((*loc, "launcher"), task.launcher[0], folder)
        elif _needs_launcher(task) and default_launcher(task.ranks) is None:
            yield (
                loc,
                f"{task.ranks} ranks and no launcher; name one, or install simgate[mpi], "
                "which brings an mpiexec of its own",
            )
    if isinstance(task, MpiTask):
        launcher = default_launcher(task.ranks) or (sys.executable,)
        for problem in check_work(MpiWork(task.function, launcher)):
            yield loc, problem


def _needs_launcher(task: CommandTask | MpiTask) -> bool:
    return isinstance(task, MpiTask) or task.ranks > 1


def _program_problems(loc: Loc, word: str, folder: Path) -> Iterator[tuple[Loc, str]]:
    fixed = {"campaign_dir": str(folder), "python": sys.executable}
    if not fixed.keys() >= set(placeholders(word)):
        return  # depends on the candidate: only a run can tell
    program = render(word, fixed)
    if "/" in program and not program.startswith("/"):
        yield (
            loc,
            f"{program!r} is relative to a task's own directory; "
            f"write {{campaign_dir}}/{program.removeprefix('./')}",
        )
        return
    for problem in check_work(CommandWork((program,))):
        yield loc, problem.removeprefix("command ")


def _script_problems(loc: Loc, task: CommandTask, folder: Path) -> Iterator[tuple[Loc, str]]:
    fixed = {"campaign_dir": str(folder), "python": sys.executable}
    words = task.command[:2]
    if not fixed.keys() >= {name for word in words for name in placeholders(word)}:
        return  # depends on the candidate: only a run can tell
    script = script_of([render(word, fixed) for word in words])
    if script is None or str(Path(script)) in task.files:
        return
    if not Path(script).is_absolute():
        named = script.removeprefix("./")
        said = f"{script!r} is relative to a task's own directory; write {{campaign_dir}}/{named}"
        yield (*loc, 1), said
    elif why := unreadable(Path(script)):
        yield (*loc, 1), f"{script!r}: {why}; name a file to run"


def _file_problems(loc: Loc, source: Path, names: Mapping[str, str]) -> Iterator[tuple[Loc, str]]:
    try:
        render_file(source.read_text(encoding="utf-8"), names)
    except OSError as error:
        yield loc, f"{source}: {error.strerror}; it lies in the campaign folder"
    except UnicodeDecodeError:
        yield loc, f"{source}: not UTF-8 text; a template is text"
    except TemplateError as error:
        yield loc, f"{source}: {error}"


def unusable(
    loaded: LoadedConfig, those: Sequence[Placed], begun: Probe | None
) -> Mapping[str, str]:
    """Import every function of the agent, tasks and executors, in a process of its own.

    Those that cannot be used, with the reason.
    """
    folder = loaded.folder
    functions = sorted({function for _, function in _functions(loaded.config, those)})
    if begun is not None and (begun.folder, *begun.names) == (str(folder), *functions):
        return begun.reasons()
    with Probe(functions, str(folder)) as probe:
        return probe.reasons()


def _functions(config: CampaignConfig, those: Sequence[Placed]) -> Iterator[tuple[Loc, str]]:
    if isinstance(config.agent, PythonAgent):
        yield ("agent", "function"), config.agent.function
    for label, executor in config.executors.items():
        if isinstance(executor, ParslConfig):
            yield ("executors", label, "function"), executor.function
    for loc, task in those:
        if not isinstance(task, CommandTask):
            yield (*loc, "function"), task.function
        if task.output is not None and task.output.reader is not None:
            yield (*loc, "output", "reader"), task.output.reader


def _import_problems(
    loaded: LoadedConfig, those: Sequence[Placed], reasons: Mapping[str, str]
) -> Iterator[tuple[Loc, str]]:
    for loc, function in _functions(loaded.config, those):
        if function in reasons:
            where = f"modules are looked for in {loaded.folder} first"
            yield loc, f"{function!r}: {reasons[function]}; {where}"


def _cap_problems(config: CampaignConfig, those: Sequence[Placed]) -> Iterator[tuple[Loc, str]]:
    """A cap below a single step lets nothing run at all."""
    for loc, task in those:
        names = ("node_hours",) if loc[0] == "simulation" else ("node_hours", "verifier_node_hours")
        for name in names:
            if name == CAP and by_allocation(config):
                continue
            cap, cost = config.budgets.cap(name), worst_case(task)
            if cap is not None and cost > cap.limit:
                yield (
                    ("budgets", name),
                    f"{cap.limit:g} node-hours; one try of {'.'.join(map(str, loc))} reserves "
                    f"{cost:.4g} (nodes x walltime): raise the cap or lower the walltime",
                )


_AT_THE_CAP = {
    "generations": "the surrogate proposes what is left",
    "tokens of the agent": "the surrogate proposes what is left",
    "votes of the judge": "no further vote is asked",
}


def _token_problems(loaded: LoadedConfig) -> Iterator[tuple[Loc, str]]:
    """A cap that cannot be kept, or that lets nobody be asked."""
    cap, agent = loaded.config.budgets.tokens, loaded.config.agent
    if cap is None:
        return
    if isinstance(agent, OwnAgent) and agent.tokens_per_call is None:
        yield (
            ("agent", "tokens_per_call"),
            "not given, so the cap budgets.tokens could not be kept; give the most tokens one "
            "call of this agent can use (0 where it asks no model)",
        )
    elif (one := first_call(loaded)) > cap.limit:
        own = isinstance(agent, OwnAgent)
        setting = "agent.tokens_per_call" if own else "agent.max_tokens"
        parts = "" if own else f" (a token for each byte it is sent, and {setting})"
        yield (
            ("budgets", "tokens"),
            f"{cap.limit:,} tokens; the first call of the agent reserves {one:,}{parts}: "
            f"raise the cap or lower {setting}",
        )


def _notes(costs: tuple[Cost, ...]) -> Iterator[str]:
    for cost in costs:
        if cost.cap is not None and cost.most > cost.cap:
            yield (
                f"{cost.what}: at most {cost.most:.4g}, the cap is {cost.cap:.4g}; "
                f"{_AT_THE_CAP.get(cost.what, 'the campaign ends by that name')} if it gets there"
            )


def _gate_notes(config: CampaignConfig) -> Iterator[str]:
    """What the gate lets happen that may surprise."""
    block, policy = merged(config), policies(config)
    own = config.expectations is not None or any(
        parameter.expectations is not None for parameter in config.parameters.values()
    )
    if own and {"suite", "expectations"} & block.keys():
        yield (
            "the rules on the parameters and under expectations do not run: expect names others; "
            "simgate rules shows those"
        )
    if "return_last" in (policy.structural_failure, policy.semantic_rejection):
        slots = config.rounds * config.batch_size
        tries = 1 + config.simulation.retries
        most = slots * worst_case(config.simulation) * tries
        unguarded = "" if config.simulation.guard else "; a guard on the simulation can filter them"
        yield (
            f"return_last simulates candidates that were rejected: at most {slots} of them, "
            f"{most:.4g} node-hours{unguarded}"
        )
