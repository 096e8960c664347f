"""What still fits into a job follows from the end that Slurm tells, and from nothing else."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest

from campaign.clock import EARLY, FRESH, POLL, Clock, of_this_process
from executors.slurm import Job, SlurmError


def job(end: float, state: str = "RUNNING") -> Job:
    return Job("7", "x", state, "", 1, "n1", 0.0, end, "0:0")


def clock(end: float, margin: float = 60.0, now: float = 1000.0) -> Clock:
    return Clock("7", margin, end, now=lambda: now)


class Told:
    """Answers of Slurm's, in turn; the last one again and again."""

    def __init__(self, *answers: Job | SlurmError | None) -> None:
        self.answers: Sequence[Job | SlurmError | None] = answers
        self.asked = 0

    def __call__(self, number: str) -> Job | None:
        assert number == "7"
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if isinstance(answer, SlurmError):
            raise answer
        return answer


def test_a_try_is_admitted_when_walltime_kill_and_margin_fit() -> None:
    assert clock(end=1095).admits(30)  # 30 s, 5 s to kill it, 60 s of margin
    assert not clock(end=1094.9).admits(30)
    assert not clock(end=900).admits(0.001)


def test_without_slurm_there_is_no_end() -> None:
    none = Clock()
    assert none.endless
    assert none.admits(1e9)
    assert none.free == math.inf
    assert not none.last_part()
    assert none.next_look() is None
    assert asyncio.run(none.look()) is None


def test_nothing_may_run_any_more_when_the_margin_begins() -> None:
    assert clock(end=1070).free == 10
    assert clock(end=1060).free == 0
    assert clock(end=1000).free == 0


def test_the_last_part_is_when_slurm_may_have_signalled() -> None:
    assert clock(end=1060 + EARLY).last_part()
    assert not clock(end=1061 + EARLY).last_part()


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (1e9, POLL),
        (1060 + EARLY + 20, 20.01),  # the last part begins
        (1060 + 30, 30.01),  # the margin begins
        (1060, POLL),
    ],
)
def test_the_clock_is_looked_at_every_minute_and_at_its_turns(end: float, wanted: float) -> None:
    assert clock(end=end).next_look() == pytest.approx(wanted)


def test_the_end_is_what_slurm_said_last() -> None:
    told = Told(job(2000), job(1500), SlurmError("squeue: no"), None, job(0))
    watched = Clock("7", now=lambda: 1000.0, look_up=told)
    seen = []
    for _ in range(5):
        asyncio.run(watched.look())
        seen.append(watched.end)
    assert seen == [2000, 1500, 1500, 1500, math.inf]  # silence changes nothing, 0 is no limit


def test_many_who_want_to_be_sure_ask_once() -> None:
    told, time = Told(job(2000)), [1000.0]
    watched = Clock("7", now=lambda: time[0], look_up=told)

    async def ask() -> None:
        await asyncio.gather(*(watched.be_sure() for _ in range(50)))

    async def main() -> None:
        await ask()
        await ask()
        assert told.asked == 1
        time[0] += FRESH + 1
        await ask()
        assert told.asked == 2

    asyncio.run(main())


def test_it_says_which_job_ends_when() -> None:
    assert str(clock(end=0)).startswith("Slurm job 7 ends at ")


def test_a_process_in_no_job_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert asyncio.run(of_this_process(60)).job == ""
