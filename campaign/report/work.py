"""The tasks of a run: what each kind took, the slowest tries, and those that failed most."""

from __future__ import annotations

import heapq
import os
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from campaign.config import CampaignConfig
from campaign.contract import DONE, rejects
from campaign.events import TaskEnded
from campaign.model import SIMULATION
from campaign.state import CampaignState, TaskState

SHOWN = 10
TAIL = 2000  # bytes of a log
_LINES = 20
_LOGS = ("stderr", "stdout")
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Kind:
    """All tries of one task; seconds are of tries that ended with an answer."""

    task: str
    candidates: int
    tries: int
    done: int
    failed: Mapping[str, int]  # by status
    rejected: int
    node_hours: float
    mean: float | None
    median: float | None
    longest: float | None


@dataclass(frozen=True, slots=True)
class Shown:
    """One try to look at; ``failed`` counts the failed tries of its task on its candidate."""

    task: str
    candidate: str
    round: int
    slot: int
    ended: TaskEnded
    failed: int
    directory: Path
    log: str  # the name of the file that ``tail`` is the end of, "" where there is none
    tail: str


@dataclass(frozen=True, slots=True)
class Work:
    """``slowest`` and ``failing``: the tries to look at first."""

    kinds: tuple[Kind, ...]
    slowest: tuple[Shown, ...]
    failing: tuple[Shown, ...]


def work(state: CampaignState, config: CampaignConfig, run_dir: Path) -> Work:
    """What there is to say of tasks; logs are read for the few tries that are shown."""
    names = [*(one.name for one in config.verifiers), SIMULATION]
    by_task: dict[str, list[TaskState]] = {name: [] for name in names}
    for (task, _), tries in state.tasks.items():
        by_task[task].append(tries)
    kinds = [_kind(name, mine) for name, mine in by_task.items()]
    every = ((key, one) for key, tries in state.tasks.items() for one in tries.ended)
    slowest = heapq.nlargest(SHOWN, every, key=lambda item: item[1].seconds)
    troubled = (
        (sum(map(failed, one.ended)), key)
        for key, one in state.tasks.items()
        if len(one.ended) > 1 or (one.ended and one.ended[0].status != DONE)
    )
    worst = heapq.nlargest(SHOWN, (one for one in troubled if one[0]), key=lambda one: one[0])
    failing = [(key, [one for one in state.tasks[key].ended if failed(one)]) for _, key in worst]
    return Work(
        tuple(one for one in kinds if one.tries),
        tuple(_shown(state, run_dir, key, one) for key, one in slowest),
        tuple(_shown(state, run_dir, key, ended[-1]) for key, ended in failing),
    )


def failed(ended: TaskEnded) -> bool:
    """Whether a try ended without an answer, and not because the run stopped."""
    return ended.status not in (DONE, "cancelled")


def try_directory(run_dir: Path, task: str, candidate: str, attempt: int) -> Path:
    """Where a try ran, as long as nobody removed it."""
    return run_dir / "tasks" / f"{task}-{candidate}" / f"try-{attempt}"


def log_tail(directory: Path) -> tuple[str, str]:
    """The log of a try that says something, errors first, and its last lines; ("", "") for none."""
    for name in _LOGS:
        try:
            with (directory / name).open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                text = _readable(file.read().decode("utf-8", "replace"))
        except OSError:
            continue
        lines = [line.rstrip() for line in text.splitlines()]
        if any(lines):
            return name, "\n".join(lines[-_LINES:]).strip("\n")
    return "", ""


def _readable(text: str) -> str:
    """Without the colours a terminal would show; other control characters by their codes."""
    text = _COLOURS.sub("", text.replace("\r\n", "\n"))
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def _kind(name: str, mine: Sequence[TaskState]) -> Kind:
    ended = [one for tries in mine for one in tries.ended]
    seconds = [one.seconds for one in ended if one.status == DONE]
    statuses = Counter(one.status for one in ended if one.status != DONE)
    return Kind(
        name,
        len(mine),
        len(ended),
        len(seconds),
        dict(statuses),
        sum([rejects(tries.ended[-1]) for tries in mine if tries.ended]),
        sum([one.spent for one in ended]),
        statistics.fmean(seconds) if seconds else None,
        statistics.median(seconds) if seconds else None,
        max(seconds, default=None),
    )


def _shown(state: CampaignState, run_dir: Path, key: tuple[str, str], ended: TaskEnded) -> Shown:
    tries = state.tasks[key]
    directory = try_directory(run_dir, *key, ended.attempt)
    log, tail = log_tail(directory)
    count = sum(map(failed, tries.ended))
    return Shown(*key, tries.round, tries.slot, ended, count, directory, log, tail)
