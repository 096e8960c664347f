"""The end of a campaign for a person: result, what the gate did, what it cost, where it all is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from campaign.budget import counted_by
from campaign.config import CampaignConfig
from campaign.events import Judged, VerdictRecord
from campaign.lines import number, plain, point_text
from campaign.model import NOT_SIMULATED, SIMULATION, Disposition
from campaign.observations import best, reached, unproven
from campaign.state import CampaignState
from campaign.status import CAPS
from campaign.talks import talks
from checks.finding import Status

STYLES = {
    Disposition.ACCEPTED: "green",
    Disposition.REPAIRED: "cyan",
    Disposition.FALLBACK: "yellow",
    Disposition.RETURNED: "red",
    Disposition.TOMBSTONE: "red",
}
MEANING = {
    Disposition.ACCEPTED: "proposed by the agent and passed",
    Disposition.REPAIRED: "passed after the agent was asked again",
    Disposition.FALLBACK: "filled by the surrogate: no proposal passed",
    Disposition.RETURNED: "run although it was rejected, by policy",
    Disposition.TOMBSTONE: "left empty",
}
_IF_USED = ("tokens", "judge_calls")  # counters that many runs have no use for


def disposition_table(counts: Mapping[str, int]) -> Table:
    """How many slots ended which way."""
    table = Table(title="Slots by disposition", title_justify="left", title_style="bold")
    table.add_column("disposition", no_wrap=True)
    table.add_column("slots", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name in Disposition:
        style = STYLES[name] if counts[name.value] else "dim"
        table.add_row(name.value, str(counts[name.value]), MEANING[name], style=style)
    return table


def budget_table(config: CampaignConfig, state: CampaignState) -> Table:
    """What was spent of what."""
    table = Table(title="Budgets", title_justify="left", title_style="bold")
    table.add_column("cap", overflow="fold")
    for title in ("spent", "reserved", "limit"):
        table.add_column(title, justify="right", no_wrap=True)
    for name in CAPS:
        cap = config.budgets.cap(name)
        counter = state.usage.counter(counted_by(name, cap))
        limit = "none" if cap is None else _amount(cap.limit)
        if name in _IF_USED and cap is None and not counter.spent + counter.reserved:
            continue
        table.add_row(name, _amount(counter.spent), _amount(counter.reserved), limit)
    return table


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def allocation_table(state: CampaignState) -> Table | None:
    """Where the node-hours went that Slurm gave, None for a run that had none."""
    bill = state.allocations.bill(state.changed_at)
    if bill is None:
        return None
    open_ = f", {bill.open} not over yet" if bill.open else ""
    rows = (
        ("allocated", bill.allocated, f"nodes x time of Slurm's jobs{open_}"),
        ("tasks", bill.tasks, "tries that ended by themselves"),
        ("idle", bill.idle, "nodes that nothing ran on"),
        ("lost", bill.lost, "tries that were lost or cancelled"),
    )
    table = Table(title="Allocation", title_justify="left", title_style="bold")
    table.add_column("part", no_wrap=True)
    table.add_column("node-hours", justify="right", no_wrap=True)
    table.add_column("meaning")
    for part, hours, meaning in rows:
        table.add_row(part, f"{hours:.4g}", meaning)
    return table


def gate_table(state: CampaignState) -> Table | None:
    """Rejections by the check or verifier that made them, None when there were none."""
    counts: dict[str, int] = {}
    for rounds in state.rounds.values():
        for generation in rounds.answers:
            if stage := rounds.refused(generation)[0]:
                counts[stage] = counts.get(stage, 0) + 1
        for judged in rounds.judged.values():
            for verdict in judged.verdicts:
                for check in rejecting(judged, verdict):
                    counts[check] = counts.get(check, 0) + 1
    for (task, _), tries in state.tasks.items():
        if tries.rejects:
            counts[task] = counts.get(task, 0) + 1
    if not counts:
        return None
    table = Table(title="What the gate rejected", title_justify="left", title_style="bold")
    table.add_column("check or verifier", overflow="fold")
    table.add_column("rejected", justify="right", no_wrap=True)
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(Text(name), str(count))
    return table


def rejecting(judged: Judged, verdict: VerdictRecord) -> set[str]:
    """The checks and rules that rejected a candidate."""
    found = {one.check for one in verdict.findings if one.status == Status.REJECT}
    if judged.observed:
        return found
    failed, skipped = (verdict.expect.get(key, ()) for key in ("failed", "skipped"))
    return found | (set(failed) - set(skipped) - set(verdict.errors))


def summary(
    config: CampaignConfig, state: CampaignState, run_dir: Path, how: tuple[str, str]
) -> RenderableType:
    """Everything a person wants to know at the end; ``how`` is the run's state and why."""
    name = f"{config.name}, dry run" if state.dry_run else config.name
    ending = Text.assemble((f"{name}: {how[0]}", "bold"), f" ({plain(how[1])})" if how[1] else "")
    gate, allocation = gate_table(state), allocation_table(state)
    return Group(
        Text(),
        ending,
        _result(config, state),
        *([Text(f"Agent: {asked}")] if (asked := talks(state)) else []),
        *([gate] if gate else []),
        disposition_table(state.dispositions()),
        budget_table(config, state),
        *([allocation] if allocation else []),
        # Never broken: it is there to be copied.
        Text(f"Everything is in {run_dir}", no_wrap=True, overflow="ignore"),
    )


def _result(config: CampaignConfig, state: CampaignState) -> Text:
    found = best(state, config)
    if found is None:
        tried = any(task == SIMULATION for task, _ in state.tasks)
        rehearsed = state.dry_run and not tried
        return Text(f"Result: {NOT_SIMULATED if rehearsed else 'no simulation has succeeded'}")
    objective = config.objective
    text = Text.assemble(
        "Result: ",
        (f"{objective.name} = {number(found.value)}", "bold"),
        f" at {point_text(found.slot.parameters)}",
        f" (round {found.round}, slot {found.slot.slot}, {found.slot.disposition})",
    )
    if state.dry_run:
        text.append("; by simulation.dry_run, not the simulation", style="yellow")
    if objective.target is not None:
        hit = "reached" if reached(state, config) else "NOT reached"
        text.append(f"; target {objective.target:g} ± {objective.tolerance:g} {hit}")
    if left := unproven(state, found.slot):
        text.append(f"; validation incomplete: {', '.join(left)}", style="red")
    return text
