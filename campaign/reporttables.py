"""Reports on rules for a person: as tables and lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from campaign.lines import number, plain, point_text
from campaign.rejudge import Case
from campaign.rejudgecost import Bill, Hours
from campaign.replayreport import Comparison, notes, words, would_pass
from campaign.rulereport import RuleReport, Share, Tally

SHOWN = 50  # changes, and rounds, that are told one by one


def rule_tables(report: RuleReport) -> RenderableType:
    """Which rules fail, whose candidates, and when."""
    agents = report.agents
    by_rule = _table("Rules, most failing first", "rule", "severity")
    names = ("judged", "passed", "failed", "waived", "not checked", "pass rate")
    several = len(agents) > 1
    _numbers(by_rule, *names, *(f"failed by {agent}" for agent in agents if several))
    for rule in report.rules:
        total = rule.total()
        cells = [
            *_tallied(total),
            _percent(total.pass_rate),
            *(str(rule.total(agent).failed) for agent in agents if several),
        ]
        style = _style(total, gates=rule.severity == "error")
        by_rule.add_row(Text(plain(rule.id)), rule.severity, *cells, style=style)
    by_agent = _table("Candidates that passed", "agent")
    _numbers(by_agent, "candidates", "passed", "share", "answers without candidates")
    for agent, share in agents.items():
        by_agent.add_row(agent, *_shared(share), str(share.no_candidates))
    return Group(by_rule, by_agent, _rounds(report))


def _rounds(report: RuleReport) -> Table:
    last = f", the last {SHOWN}; --json has all" if len(report.shares) > SHOWN else ""
    table = _table(f"Rounds{last}", "round", "agent")
    _numbers(table, "candidates", "passed", "share")
    table.add_column("fails most", overflow="fold")
    for (round_, agent), share in list(report.shares.items())[-SHOWN:]:
        most = report.most_failing((round_, agent)) or ""
        table.add_row(str(round_), agent, *_shared(share), Text(plain(most)))
    return table


def replay_tables(found: Comparison) -> RenderableType:
    """What would have changed, what it comes to, and what the numbers leave out."""
    changes = found.changes
    parts: list[RenderableType] = [Text(line) for line in _counts(found)]
    if changes:
        parts.append(_changes(found, "What would have changed", changes))
    if found.unknown:
        parts.append(_changes(found, "What nobody can tell", found.unknown))
    if found.replay.checks:
        parts.append(_checks(found))
    if changes:
        parts += map(Text, _hours(found.bill))
    return Group(*parts, *(Text(plain(f"note: {one}")) for one in notes(found)))


def _counts(found: Comparison) -> Iterator[str]:
    counts = found.counts
    yield f"{_some(len(found.replay.cases))} judged again, each in the batch it was in:"
    told = {
        "same": "fare as they did",
        "would_pass": "were rejected and would pass",
        "would_fail": "passed and would not",
        "unknown": "hang on a rule that cannot be judged again",
    }
    for name, what in told.items():
        if counts[name] or name == "same":
            yield f"  {counts[name]:>6} {what}"


def _changes(found: Comparison, title: str, cases: Sequence[Case]) -> Table:
    more = f", the first {SHOWN}; --json has all" if len(cases) > SHOWN else ""
    table = _table(f"{title}{more}", "round", "slot", "gen")
    for name in ("candidate", "was", "would be", "why"):
        table.add_column(name, overflow="fold")
    _numbers(table, found.config.objective.name)
    for case in cases[:SHOWN]:
        generation = f"draw {case.draw}" if case.draw else str(case.generation)
        point = case.parameters
        shown = point_text(point) if isinstance(point, dict) else plain(repr(point))
        value = found.value(case)
        table.add_row(
            str(case.round),
            str(case.slot),
            generation,
            *(Text(plain(text)) for text in (shown, words(case.ended), words(case.now))),
            Text(plain(case.now.detail or case.ended.detail)),
            "" if value is None else number(value),
            style="green" if would_pass(case) else "red",
        )
    return table


def _checks(found: Comparison) -> Table:
    table = _table("Rules, in the run and now", "rule")
    _numbers(table, "failed then", "failed now", "not checked then", "not checked now")
    for one in found.replay.checks:
        cells = [
            "-" if tally is None else str(getattr(tally, name))
            for name in ("failed", "not_checked")
            for tally in (one.run, one.now)
        ]
        name = f"{one.check} (reworded)" if one.reworded else one.check
        table.add_row(Text(plain(name)), *cells)
    return table


def _hours(cost: Bill) -> Iterator[str]:
    yield "Node-hours"
    tasks = ", ".join(f"{task} {hours:.4g}" for task, hours in cost.saved.by_task.items())
    saved = f"spent on what would have been stopped before: {tasks or 'nothing'}"
    yield f"  saved      {_sum(cost.saved)}, {saved}"
    if cost.more.candidates:
        bases = [
            f"{one.task} {one.node_hours:.4g} "
            + (f"(the mean of {one.n})" if one.n else "(its worst case: none has run)")
            for one in cost.bases
            if one.task in cost.more.by_task
        ]
        yield f"  more       {_sum(cost.more)}, an ESTIMATE: {', '.join(bases)}"
    if cost.displaced.candidates:
        later = "spent on later candidates of slots that one now passing would have ended"
        yield f"  displaced  {_sum(cost.displaced)}, {later}"


def _sum(hours: Hours) -> str:
    return f"{hours.total:<9.4g} {_some(hours.candidates)}"


def _some(candidates: int) -> str:
    return "1 candidate" if candidates == 1 else f"{candidates} candidates"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _numbers(table: Table, *columns: str) -> None:
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")  # never cut


def _tallied(tally: Tally) -> tuple[str, ...]:
    found = (tally.judged, tally.passed, tally.failed, tally.waived, tally.not_checked)
    return tuple(map(str, found))


def _shared(share: Share) -> tuple[str, str, str]:
    return str(share.candidates), str(share.passed), _percent(share.percent)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}%"


def _style(tally: Tally, *, gates: bool) -> str | None:
    if tally.failed:
        return "red" if gates else "yellow"
    return None if tally.judged else "dim"
