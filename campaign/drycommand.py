"""What ``run --dry-run`` looks at and says: before it runs what is cut, after it the real bill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from campaign.clibase import print_costs
from campaign.configfile import LoadedConfig
from campaign.dryrun import ROUNDS, DryRun, cores, dry_run, forbidden, running
from campaign.outlet import say
from campaign.preflight import Inspection, faults, tasks, unusable, weigh
from campaign.problems import ConfigError, Problem
from executors.probe import Probe


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A dry run that may start, and what a real run on this machine would stumble over."""

    run: DryRun
    real: Inspection


def rehearse(loaded: LoadedConfig, begun: Probe | None = None) -> Rehearsal:
    """Prepare the dry run; ``ConfigError`` where something it would run cannot.

    What only a real run needs, such as the simulation's own program, may be missing here.
    """
    config = loaded.config
    reasons = unusable(loaded, (*tasks(config), *running(config)), begun)
    rounds = config.rounds if loaded.overridden(("rounds",)) else ROUNDS
    run = dry_run(config, cores(), rounds)
    found = [
        *faults(replace(loaded, config=run.config), tuple(running(run.config)), reasons),
        *(loaded.problem(loc, message) for loc, message in forbidden(run.config)),
    ]
    if found:
        raise ConfigError(found, str(loaded.path))
    return Rehearsal(run, weigh(loaded, reasons))


def announce(loaded: LoadedConfig, rehearsal: Rehearsal) -> None:
    """Say what is left out, line by line."""
    say(f"{loaded.config.name}: dry run on this machine, nothing is submitted")
    for line in rehearsal.run.cuts:
        say(f"  {line}")


def conclude(loaded: LoadedConfig, rehearsal: Rehearsal, real_dir: Path) -> None:
    """Say what a real run would cost and what would be submitted for it, in ``real_dir``."""
    say("\nA real run would cost")
    print_costs(rehearsal.real)
    _refusals("simgate run", rehearsal.real.problems)
    if loaded.config.job is None:
        return
    from campaign.submit import batch_script, require_job

    try:
        require_job(loaded)
        text = batch_script(loaded.config, real_dir, loaded.folder)
    except ConfigError as error:
        _refusals("simgate submit", error.problems)
        return
    say(f"\nsimgate submit would give this to Slurm\n\n{text}", nl=False)


def _refusals(command: str, problems: Iterable[Problem]) -> None:
    for problem in problems:
        say(f"  {command} would refuse this here: {problem}")
