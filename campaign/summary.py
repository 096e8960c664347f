"""The end of a campaign for a person: result, what the gate did, what it cost, where it all is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from campaign.config import CampaignConfig
from campaign.events import Judged, VerdictRecord
from campaign.lines import number, plain, point_text
from campaign.model import NOT_SIMULATED, SIMULATION, Disposition
from campaign.observations import best, reached, unproven
from campaign.state import CampaignState
from campaign.status import CAPS

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


def disposition_table(counts: Mapping[str, int]) -> Table:
    """How many slots ended which way."""
    table = Table(title="Slots by disposition", title_justify="left", title_style="bold")
    table.add_column("disposition")
    table.add_column("slots", justify="right")
    table.add_column("meaning")
    for name in Disposition:
        style = STYLES[name] if counts[name.value] else "dim"
        table.add_row(name.value, str(counts[name.value]), MEANING[name], style=style)
    return table


def budget_table(config: CampaignConfig, state: CampaignState) -> Table:
    """What was spent of what."""
    table = Table(title="Budgets", title_justify="left", title_style="bold")
    table.add_column("cap")
    for title in ("spent", "reserved", "limit"):
        table.add_column(title, justify="right")
    for name in CAPS:
        cap, counter = config.budgets.cap(name), state.usage.counter(name)
        limit = "none" if cap is None else f"{cap.limit:.4g}"
        table.add_row(name, f"{counter.spent:.4g}", f"{counter.reserved:.4g}", limit)
    return table


def gate_table(state: CampaignState) -> Table | None:
    """Rejections by the check or verifier that made them, None when there were none."""
    counts: dict[str, int] = {}
    for rounds in state.rounds.values():
        for answer in rounds.answers.values():
            if answer.stage:
                counts[answer.stage] = counts.get(answer.stage, 0) + 1
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
    table.add_column("check or verifier")
    table.add_column("rejected", justify="right")
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(Text(name), str(count))
    return table


def rejecting(judged: Judged, verdict: VerdictRecord) -> set[str]:
    """The checks and rules that rejected a candidate."""
    found = {one.check for one in verdict.findings if one.status == "reject"}
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
    gate = gate_table(state)
    return Group(
        Text(),
        ending,
        _result(config, state),
        *([gate] if gate else []),
        disposition_table(state.dispositions()),
        budget_table(config, state),
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
