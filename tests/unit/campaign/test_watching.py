"""A run is followed from its files alone, to its end, whatever becomes of its driver."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import running
from campaign import events
from campaign.drive import creation
from campaign.events import Entry
from campaign.ledger import NAME, Ledger, NoLedgerError, read
from campaign.lines import line
from campaign.lock import LEASE, NAME as LOCK
from campaign.pulse import Pulse
from campaign.state import CampaignState
from campaign.status import KILLED
from campaign.watching import ABSENCE, Follower, How, Lines, glance, until_over, watch

STARTED = events.JobStarted(job=1, host="h", pid=1, python="", numpy="")
DONE = events.JobEnded(job=1, outcome="done", reason="all rounds are done")
STOPPED = events.JobEnded(job=1, outcome="stopped", reason="SIGTERM received")
FAILED = events.JobEnded(job=1, outcome="failed", reason="no simulation succeeded")


def created(**changes: Any) -> events.RunCreated:
    return creation(running.config(**changes), Path("/"))


def console(**more: Any) -> Console:
    return Console(file=io.StringIO(), width=100, height=40, **more)


def written(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def never() -> None:
    raise AssertionError("there is nothing to wait for")


def unseen(_entry: Entry, _state: CampaignState) -> None:
    """Nobody looks at single events."""


def in_turn(*steps: Callable[[], object]) -> Callable[[], None]:
    """A pause in which the next thing happens; there are no more pauses than steps."""
    left: Iterator[Callable[[], object]] = iter(steps)
    return lambda: (next(left)(), None)[1]


def append(directory: Path, *more: events.Event) -> Callable[[], None]:
    def step() -> None:
        with Ledger(directory) as ledger:
            ledger.append(*more)

    return step


def told(directory: Path, *steps: Callable[[], object], **more: Any) -> tuple[How, list[str]]:
    """How a run that is watched in a pipe ended, and the lines without their time."""
    shown = console()
    _, how = watch(directory, shown, more.pop("missing", never), in_turn(*steps))
    return how, [line[9:] for line in written(shown).splitlines()]


def test_a_pipe_gets_every_line_of_a_run_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    running.run(tmp_path, running.config())
    entries = read(tmp_path)
    (tmp_path / NAME).unlink()
    groups = [[one.event for one in entries[first : first + 7]] for first in range(0, 999, 7)]
    steps = [append(tmp_path, *group) for group in groups if group]
    steps[0]()
    how, lines = told(tmp_path, *steps[1:])
    state, wanted = CampaignState(), []
    for entry in entries:
        state.apply(entry)
        wanted += line(entry.event, state).splitlines()
    assert [one for one in lines if not one.startswith("the run is")] == wanted
    assert how[0] == "done"


@pytest.mark.parametrize("last", [DONE, STOPPED, FAILED])
def test_a_run_that_has_ended_is_shown_and_left(tmp_path: Path, last: events.JobEnded) -> None:
    append(tmp_path, created(), STARTED, last)()
    how, lines = told(tmp_path)
    assert how == (last.outcome, last.reason)
    assert lines == ["job 1 on h, process 1", f"job 1 {last.outcome}: {last.reason}"]


def test_the_live_view_is_that_of_the_run(tmp_path: Path) -> None:
    running.run(tmp_path, running.config())
    entries = [one.event for one in read(tmp_path)]
    (tmp_path / NAME).unlink()
    append(tmp_path, *entries[:-1])()
    shown = console(force_terminal=True)
    state, how = watch(tmp_path, shown, never, in_turn(append(tmp_path, entries[-1])))
    assert how[0] == "done"
    assert sum(state.dispositions().values()) == 6
    said = written(shown)
    assert "round 2 of 2" in said
    assert "best  " in said


def test_a_run_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "r"

    def begins() -> None:
        run.mkdir()
        append(run, created(), STARTED, DONE)()

    how, lines = told(run, missing=in_turn(lambda: None, begins))
    assert how[0] == "done"
    assert len(lines) == 2


def test_a_driver_that_was_killed_here_is_told_and_not_waited_for(tmp_path: Path) -> None:
    code = (
        "import sys, os, pathlib, pickle\n"
        "from campaign.ledger import Ledger\n"
        "ledger = Ledger(pathlib.Path(sys.argv[1])).__enter__()\n"
        "ledger.append(*pickle.load(sys.stdin.buffer))\n"
        "os._exit(0)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path)]
    subprocess.run(argv, input=pickle.dumps([created(), STARTED]), check=True)
    how, _ = told(tmp_path, *[lambda: None] * 5)
    assert how == ("stopped", KILLED)


class Clock:
    """Goes on by a step with every look."""

    def __init__(self, step: float) -> None:
        self.time, self.step = 0.0, step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def test_a_lock_that_is_not_there_is_believed_once_a_file_system_would_show_it(
    tmp_path: Path,
) -> None:
    append(tmp_path, created(), STARTED)()
    looks: list[None] = []
    follower = Follower(tmp_path, Pulse(tmp_path, Clock(ABSENCE / 10)))
    how = until_over(follower, Lines(console()), lambda: looks.append(None))
    assert how == ("stopped", KILLED)
    assert len(looks) == 10


def test_a_driver_elsewhere_without_a_sign_of_life_seems_dead_and_is_waited_for(
    tmp_path: Path,
) -> None:
    append(tmp_path, created(), STARTED)()
    lock = tmp_path / LOCK
    lock.write_text('{"host": "another", "pid": 7, "started": "1", "boot": "b"}')
    os.utime(lock, (1.0, 1.0))
    shown = console()
    pulse = Pulse(tmp_path, lambda: 50.0, lambda: 2.0 + LEASE)

    def ends() -> None:
        lock.unlink()
        append(tmp_path, STOPPED)()

    pause = in_turn(lambda: None, ends)
    how = until_over(Follower(tmp_path, pulse), Lines(shown), pause)
    assert how[0] == "stopped"
    said = [line[9:] for line in written(shown).splitlines()]
    assert said[1] == (
        "the run is running: 121 s without a sign of life from its driver, it seems dead"
    )
    assert len(said) == 3


def submitted(job: str) -> list[events.Event]:
    return [events.Submitting(name="n", link=1, chain=True), events.Submitted(job=job)]


def test_a_run_that_waits_in_a_queue_is_waited_for_job_by_job(tmp_path: Path) -> None:
    append(tmp_path, created(), *submitted("5"))()
    first = events.JobStarted(job=1, host="h", pid=1, python="", numpy="", slurm="5")
    second = events.JobStarted(job=2, host="h", pid=1, python="", numpy="", slurm="6")
    how, lines = told(
        tmp_path,
        append(tmp_path, first),
        append(tmp_path, *submitted("6"), STOPPED),
        append(tmp_path, second, events.JobEnded(job=2, outcome="done", reason="all")),
    )
    assert how == ("done", "all")
    waits = "the run is queued: Slurm job {}, says the ledger; simgate status asks Slurm"
    assert waits.format(5) in lines
    assert waits.format(6) in lines


def test_while_a_driver_holds_the_lock_a_stopped_run_may_go_on(tmp_path: Path) -> None:
    append(tmp_path, created(), STARTED, STOPPED)()
    second = events.JobStarted(job=2, host="h", pid=1, python="", numpy="")
    with Ledger(tmp_path) as ledger:
        follower = Follower(tmp_path)
        how = follower.catch_up(unseen)
        assert how[0] == "stopped"
        assert not follower.is_over(how)
        ledger.append(second)
        assert follower.catch_up(unseen) == ("running", "")
        ledger.append(STOPPED)
    assert follower.is_over(follower.catch_up(unseen))


def test_a_ledger_that_was_put_in_the_place_of_another_is_read_from_the_beginning(
    tmp_path: Path,
) -> None:
    append(tmp_path, created(), STARTED)()

    def another() -> None:
        (tmp_path / NAME).unlink()
        append(tmp_path, created(rounds=7), STARTED, DONE)()

    shown = console()
    state, how = watch(tmp_path, shown, never, in_turn(another))
    assert how[0] == "done"
    assert "holds other events than it did" in written(shown)
    assert state.run is not None
    assert state.run.config["rounds"] == 7


def test_a_file_system_that_refuses_for_a_while_is_asked_again(tmp_path: Path) -> None:
    append(tmp_path, created(), STARTED)()
    ledger, away = tmp_path / NAME, tmp_path / "away"

    def refuses() -> None:
        ledger.rename(away)
        ledger.mkdir()  # cannot be read as a file

    def answers() -> None:
        ledger.rmdir()
        away.rename(ledger)
        append(tmp_path, DONE)()

    how, lines = told(tmp_path, refuses, lambda: None, answers)
    assert how[0] == "done"
    assert len(lines) == 2


def test_a_run_directory_that_was_removed_ends_the_watch(tmp_path: Path) -> None:
    append(tmp_path, created(), STARTED)()
    with pytest.raises(NoLedgerError):
        told(tmp_path, (tmp_path / NAME).unlink)


def test_watching_writes_nothing(tmp_path: Path) -> None:
    append(tmp_path, created(), STARTED, DONE)()
    before = {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()}
    at = tmp_path.stat().st_mtime_ns
    told(tmp_path)
    glance(tmp_path, console())
    assert {one.name: one.stat().st_mtime_ns for one in tmp_path.iterdir()} == before
    assert tmp_path.stat().st_mtime_ns == at


def test_one_look_tells_how_a_run_stands(tmp_path: Path) -> None:
    with pytest.raises(NoLedgerError, match="holds no run"):
        glance(tmp_path, console())
    with Ledger(tmp_path) as ledger:
        ledger.append(created(), STARTED)
        shown = console()
        assert glance(tmp_path, shown) == (("running", ""), False)
        assert written(shown).startswith("bowl · round 1 of 2 · running\n")
    shown = console()
    assert glance(tmp_path, shown) == (("stopped", KILLED), True)
    assert KILLED in written(shown)
    append(tmp_path, FAILED)()
    assert glance(tmp_path, console()) == (("failed", "no simulation succeeded"), True)
