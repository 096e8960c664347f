"""The picture of a run: lines of text that fit a terminal, made of its state and nothing else.

Every line is cut to the width, so none is ever broken. What does not fit the height is left out,
in the order of :data:`STEPS`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text

from campaign.lines import number, plain, point_text
from campaign.model import Disposition, Mode
from campaign.observations import unproven
from campaign.outlet import STAND_IN
from campaign.pictureparts import agent_lines, budget_lines, fitting, judge_lines, work_lines
from campaign.plot import ASCII, BLOCKS, Ink, Part, bar, is_wide, plot
from campaign.progress import LAST, Progress
from campaign.summary import STYLES

RUNNING = "running"
PLOT = 6  # rows of the plot where there is room
_NARROW = 20  # cells the plot has at the least beside a caption in full
BAR = 60  # cells of a bar at the most
_MODES = {Mode.SURROGATE_ONLY: "surrogate only", Mode.DRY_RUN: "dry run"}


@dataclass(frozen=True, slots=True)
class Scene:
    """What is shown: the run, how it stands (a state and why), and the time it is."""

    progress: Progress
    now: float  # seconds since the epoch
    how: tuple[str, str] = (RUNNING, "")


@dataclass(frozen=True, slots=True)
class Canvas:
    """Where it is shown: cells and rows, and whether there is more than ASCII to draw with."""

    width: int
    height: int
    ascii: bool = False

    @property
    def ink(self) -> Ink:
        return ASCII if self.ascii else BLOCKS


@dataclass(slots=True)
class Plan:
    """How much of each section is shown."""

    gaps: bool = True
    plot: int = PLOT
    last: int = LAST
    work: bool = True
    budgets: bool = True
    slots: bool = True
    best: bool = True
    job: bool = True


def _set(**changes: int | bool) -> Callable[[Plan], None]:
    def step(plan: Plan) -> None:
        for name, value in changes.items():
            setattr(plan, name, value)

    return step


STEPS: tuple[Callable[[Plan], None], ...] = (
    _set(plot=3),
    _set(gaps=False),
    _set(plot=1),
    _set(last=5),
    _set(last=3),
    _set(plot=0),
    _set(work=False),
    _set(budgets=False),
    _set(last=1),
    _set(slots=False),
    _set(last=0),
    _set(best=False),
    _set(job=False),
)
"""What is left out, one after the other, until the rest fits."""


def picture(scene: Scene, canvas: Canvas) -> list[Text]:
    """At most ``canvas.height`` lines of at most ``canvas.width`` cells."""
    plan = Plan()
    lines = _lines(scene, canvas, plan)
    for step in STEPS:
        if len(lines) <= canvas.height:
            break
        step(plan)
        lines = _lines(scene, canvas, plan)
    return [fitted(line, canvas) for line in lines[: max(1, canvas.height)]]


def fitted(line: Text, canvas: Canvas) -> Text:
    """The line cut to the width, in characters that can be shown."""
    if canvas.ascii and not line.plain.isascii():
        line = Text(line.plain.encode("ascii", STAND_IN).decode("ascii", "replace"), line.style)
    line.no_wrap = True
    line.truncate(max(1, canvas.width), overflow="crop" if canvas.ascii else "ellipsis")
    return line


def clock(seconds: float) -> str:
    """Seconds as ``1:02:03`` or ``02:03``."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


def _lines(scene: Scene, canvas: Canvas, plan: Plan) -> list[Text]:
    sections = [
        _head(scene, canvas, job=plan.job),
        _slots(scene, canvas) if plan.slots else [],
        budget_lines(scene.progress, canvas.ink, canvas.width) if plan.budgets else [],
        _work(scene, canvas) if plan.work else [],
        _best(scene, canvas, plan.plot) if plan.best else [],
        _last(scene.progress, plan.last),
    ]
    lines: list[Text] = []
    for section in sections:
        if lines and section and plan.gaps:
            lines.append(Text())
        lines += section
    return lines


def _head(scene: Scene, canvas: Canvas, *, job: bool) -> list[Text]:
    progress = scene.progress
    config, run = progress.config, progress.state.run
    now = max(1, min(len(progress.state.rounds), config.rounds))
    mode = _MODES.get(Mode(run.mode), "") if run is not None else ""
    told = (f"round {now} of {config.rounds}", mode, _standing(scene))
    between = Text(f" {canvas.ink.dot} ")
    first = between.join([Text(config.name, "bold"), *(Text(one) for one in told if one)])
    return [first, between.join(map(Text, _times(scene)))] if job else [first]


def _standing(scene: Scene) -> str:
    name, reason = scene.how
    signalled = scene.progress.state.signalled
    if name == RUNNING and signalled is not None and not reason:
        return f"stopping: {signalled.signal}; once more to stop at once"
    return f"{name}: {plain(reason)}" if reason else name


def _times(scene: Scene) -> Iterable[str]:
    progress, state = scene.progress, scene.progress.state
    if (job := state.job) is not None:
        slurm = f", Slurm job {job.slurm}" if job.slurm else ""
        yield f"job {job.job} on {job.host}{slurm}"
    over = state.job_ended is not None or scene.how[0] != RUNNING
    passed = max(0.0, (state.changed_at if over else scene.now) - progress.job_at)
    done = progress.rounds_ended - progress.ended_before
    left = progress.config.rounds - progress.rounds_ended
    yield f"{clock(passed)} {'long' if over else 'so far'}"
    if not over and done > 0 and left > 0:
        yield f"at most about {clock(passed / done * left)} left"


def _slots(scene: Scene, canvas: Canvas) -> list[Text]:
    progress, ink = scene.progress, canvas.ink
    total = progress.config.rounds * progress.config.batch_size
    parts = [Part(progress.slots[name], ink.slots[name], STYLES[name]) for name in Disposition]
    rest = Part(max(0, total - sum(progress.slots.values())), ink.left, "dim")
    legend = [
        Text(f"{ink.slots[name]} {progress.slots[name]:,} {name.value}", STYLES[name])
        for name in Disposition
        if progress.slots[name]
    ]
    legend.append(Text(f"{ink.left} {rest.amount:,} of {total:,} slots to come", "dim"))
    return [bar([*parts, rest], min(canvas.width, BAR)), *flow(legend, canvas.width)]


def _work(scene: Scene, canvas: Canvas) -> list[Text]:
    return [
        *work_lines(scene.progress, canvas.ink, canvas.width),
        *agent_lines(scene.progress, scene.now),
        *judge_lines(scene.progress),
    ]


def _best(scene: Scene, canvas: Canvas, rows: int) -> list[Text]:
    progress = scene.progress
    found, objective = progress.best, progress.config.objective
    if found is None or found.value is None:
        return [Text("best  nothing yet")]
    text = Text.assemble(
        "best  ",
        (f"{objective.name} = {number(found.value)}", "bold"),
        f" at {point_text(found.slot.parameters)} (round {found.round}, slot {found.slot.slot})",
    )
    if objective.target is not None:
        text.append(f"; target {objective.target:g} ± {objective.tolerance:g}")
    if untold := unproven(progress.state, found.slot):
        text.append(f"; validation incomplete: {', '.join(untold)}", "red")
    return [text, *_plot(progress, canvas, rows)]


def _plot(progress: Progress, canvas: Canvas, rows: int) -> list[Text]:
    """The best so far over the simulations, or with a target how far off it was."""
    trace, objective = progress.trace, progress.config.objective
    if rows < 1 or len(trace) < 2:
        return []
    off = "" if objective.target is None else "off by "
    scale = ", by its logarithm" if is_wide((trace[0], trace[-1])) else ""
    first, last = (f"{off}{number(value)}" for value in (trace[0], trace[-1]))
    brief = f" {last} after {len(trace):,}"
    caption = fitting(
        (f"{brief} simulations{scale}", brief), canvas.width - len(first) - 7 - _NARROW
    )
    width = min(BAR, canvas.width - len(first) - len(caption) - 7)
    if width < 4:
        return []
    drawn = plot(trace, width, rows, canvas.ink.ramp)
    # Each figure beside the row that its end of the line is drawn in.
    top, bottom = 0, len(drawn) - 1
    begins, ends = (bottom, top) if trace[-1] > trace[0] else (top, bottom)
    ahead, blank = f"      {first} ", " " * (len(first) + 7)
    return [
        Text.assemble(
            ahead if row == begins else blank, (cells, "cyan"), caption if row == ends else ""
        )
        for row, cells in enumerate(drawn)
    ]


def _last(progress: Progress, count: int) -> list[Text]:
    told = list(progress.last)[len(progress.last) - min(count, len(progress.last)) :]
    return [Text(stamped(at, text), "dim") for at, text in told]


def stamped(at: float, text: str) -> str:
    """A decision with the time of day it fell, by the clock of this machine."""
    return f"{time.strftime('%H:%M:%S', time.localtime(at))} {text}"


def flow(words: Sequence[Text], width: int) -> list[Text]:
    """The words on as few lines as they fit, two cells between them."""
    lines: list[Text] = []
    for word in words:
        if lines and lines[-1].cell_len + 2 + word.cell_len <= width:
            lines[-1].append("  ").append_text(word)
        else:
            lines.append(word.copy())
    return lines
