"""Sections of the picture of a run: what it may still spend, and who works for it."""

from __future__ import annotations

from rich.text import Text

from campaign.allocated import PILOT, Open
from campaign.budget import Counter, counted_by
from campaign.config import CampaignConfig, Cap
from campaign.lines import plain
from campaign.plot import Ink, Part, bar
from campaign.progress import Progress
from campaign.state import CampaignState
from campaign.status import CAPS
from executors.config import ExecutorConfig, capacity, pilot, shares_job

_FEWEST, _MOST = 6, 40  # cells of a bar
_ROOMY = 80  # cells from which on the bars stand below each other
_NAME = max(map(len, CAPS))
_IF_USED = CAPS[1:]  # without a cap they are shown once something counts


def budget_lines(progress: Progress, ink: Ink, width: int) -> list[Text]:
    """Each cap: spent, reserved and what is left, as a bar and in figures."""
    rows: list[tuple[str, Counter, Cap | None]] = []
    for name in CAPS:
        cap = progress.config.budgets.cap(name)
        counter = progress.state.usage.counter(counted_by(name, cap))
        if cap is None and name in _IF_USED and not counter.spent + counter.reserved:
            continue
        rows.append((name, counter, cap))
    ahead = _NAME if width >= _ROOMY else max(len(name) for name, _, _ in rows)
    figures = [fitting(_figures(counter, cap), width - ahead - 2) for _, counter, cap in rows]
    cells = min(_MOST, width - ahead - 4 - max(map(len, figures)))
    lines = []
    for (name, counter, cap), told in zip(rows, figures, strict=True):
        line = Text(f"{name.ljust(ahead)}  ")
        if cells >= _FEWEST:
            line.append_text(bar(_parts(counter, cap, ink), cells))
            line.pad_right(ahead + cells + 4 - line.cell_len)
        lines.append(line.append(told))
    return lines


def _parts(counter: Counter, cap: Cap | None, ink: Ink) -> list[Part]:
    if cap is None:
        return []
    spent = counter.used(cap.per)
    left = max(0.0, cap.limit - spent - counter.reserved)
    return [
        Part(spent, ink.spent, "bold"),
        Part(counter.reserved, ink.reserved, "yellow"),
        Part(left, ink.left, "dim"),
    ]


def _figures(counter: Counter, cap: Cap | None) -> tuple[str, ...]:
    """What is spent, reserved and left, from the longest way to say it to the shortest."""
    spent = counter.spent if cap is None else counter.used(cap.per)
    told, brief = f"{_amount(spent)} spent", _brief(spent)
    if counter.reserved:
        told += f", {_amount(counter.reserved)} reserved"
        brief += f"+{_brief(counter.reserved)}"
    if cap is None:
        return told, f"{brief} spent"
    left = cap.limit - spent - counter.reserved
    short = f"{_brief(left)} left"
    return f"{told}, {_amount(left)} left", f"{brief} of {_brief(cap.limit)}, {short}", short


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def fitting(ways: tuple[str, ...], width: int) -> str:
    """The first way to say it that is no longer than ``width``, else the last."""
    return next((one for one in ways if len(one) <= width), ways[-1])


def _brief(value: float) -> str:
    """A number in few characters: ``12.3M``, ``45.6k``, ``0.0078``."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (unit == 1e6 and abs(value) >= unit):
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def work_lines(progress: Progress, ink: Ink, width: int) -> list[Text]:
    """Each executor: workers that are busy, of how many, and what waits for one; then Slurm."""
    lines = [
        _executor(label, executor, progress, ink, width)
        for label, executor in progress.config.executors.items()
    ]
    if slurm := _slurm(progress.state):
        lines.append(Text(slurm))
    return lines


def _executor(
    label: str, executor: ExecutorConfig, progress: Progress, ink: Ink, width: int
) -> Text:
    taken = progress.busy[label]
    workers = _workers(executor, progress.config, progress.state)
    unit = "nodes" if executor.kind == "mpi" else "workers"
    name = f"{plain(label)} ({executor.kind})".ljust(_NAME if width >= _ROOMY else 0)
    if workers is None:
        return Text(f"{name}  {taken:,} {unit} wanted or busy")
    busy = min(taken, workers)
    told = f"{busy:,} of {workers:,} {unit} busy"
    if taken > busy:
        told += f", {taken - busy:,} waited for"
    parts = [Part(busy, ink.spent, "green"), Part(workers - busy, ink.left, "dim")]
    cells = min(_MOST, width - len(name) - len(told) - 4)
    if cells < _FEWEST or not workers:
        return Text(f"{name}  {told}")
    return Text.assemble(name, "  ", bar(parts, cells), "  ", told)


def _workers(executor: ExecutorConfig, config: CampaignConfig, state: CampaignState) -> int | None:
    """How many units of work an executor has room for now, None where the ledger cannot tell."""
    if shares_job(executor):
        own = state.allocations.own
        nodes = getattr(executor, "nodes", None) or (own.asked.nodes if own else None)
        return None if nodes is None else capacity(executor, nodes)
    if pilot(executor) is None:
        return capacity(executor, 1)
    if sum(pilot(one) is not None for one in config.executors.values()) > 1:
        return None  # which of them a pilot job is for is not told
    return capacity(executor, sum(one.asked.nodes for one in _pilots(state) if one.since))


def _pilots(state: CampaignState) -> list[Open]:
    return [one for one in state.allocations.open.values() if one.asked.what == PILOT]


def _slurm(state: CampaignState) -> str:
    """What of Slurm's the run has and waits for, as the ledger knows it."""
    pilots, told = _pilots(state), []
    if up := [one for one in pilots if one.since]:
        nodes = sum(one.asked.nodes for one in up)
        told.append(f"{_jobs(len(up))} with {nodes:,} nodes")
    if queued := [one.job for one in pilots if one.job and not one.since]:
        told.append(f"{_jobs(len(queued))} in the queue ({', '.join(queued)})")
    if state.slurm.ahead:
        told.append(f"job {', '.join(state.slurm.ahead)} goes on after this one")
    return f"Slurm: {'; '.join(told)}" if told else ""


def _jobs(count: int) -> str:
    return "1 pilot job" if count == 1 else f"{count:,} pilot jobs"


def agent_lines(progress: Progress, now: float) -> list[Text]:
    """What the agent is asked, since when, and what it has used; of the surrogate nothing."""
    asking, talks = progress.asking, progress.talks
    told = []
    if asking is not None:
        since = f"asked for r{asking.round} g{asking.generation}, {asking.slots:,} candidates"
        told.append(f"{since}, {max(0.0, now - asking.since):.0f} s ago")
        if asking.failed:
            told.append(f"call {asking.call} failed: {plain(asking.failed)}")
    if talks is not None:
        failed = talks.failed - (asking is not None and asking.call > 0 and not asking.failed)
        lost = f", {failed:,} without an answer" if failed > 0 else ""
        tokens = talks.input_tokens + talks.output_tokens
        told.append(f"{talks.calls:,} calls{lost}, {tokens:,} tokens")
    return [Text(f"agent: {'; '.join(told)}")] if told else []


def judge_lines(progress: Progress) -> list[Text]:
    """How often the judge was called, where a rule is judged."""
    votes = progress.state.votes
    if not votes.made:
        return []
    return [Text(f"judge: {votes.made:,} calls, {len(votes.open):,} of them open")]
