"""A job has a successor exactly when there is something to go on with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import running
from campaign import chain as chaining
from campaign.chain import SILENT, Chain, chain_ends
from campaign.clock import Clock
from campaign.drive import creation
from campaign.events import (
    Event,
    JobEnded,
    JobStarted,
    RoundEnded,
    RoundStarted,
    Submitted,
    Submitting,
    TaskEnded,
    TaskStarted,
    Withdrawn,
)
from campaign.jobconfig import ChainConfig
from campaign.ledger import Ledger, read
from campaign.loop import Ending
from campaign.model import JobOutcome
from campaign.recorder import Recorder
from campaign.slurmqueue import SCRIPT, driver_name
from campaign.state import fold
from executors import slurm
from pretend_slurm import PretendSlurm, pretend_slurm

NAME = "simgate-0-driver:bowl"
STOPPED = Ending(JobOutcome.STOPPED, "Slurm job 7 ends at 10:00:00")
DONE = Ending(JobOutcome.DONE, "all 2 rounds are done")
FAILED = Ending(JobOutcome.FAILED, "verifier x: lost")


def started(number: int, job: str) -> JobStarted:
    return JobStarted(job=number, host="h", pid=1, python="", numpy="", slurm=job)


def submitted(job: str, link: int, *, chain: bool = True) -> tuple[Event, ...]:
    return Submitting(name=NAME, link=link, chain=chain), Submitted(job=job)


def task(status: str) -> tuple[Event, ...]:
    same = {"task": "simulation", "candidate": "c", "attempt": 1}
    return (
        TaskStarted(round=1, slot=0, nodes=1, reserved=1.0, **same),  # type: ignore[arg-type]
        TaskEnded(status=status, spent=1.0, seconds=1.0, **same),  # type: ignore[arg-type]
    )


PROGRESS = task("done")
FIRST = (*submitted("7", 1), started(1, "7"))


@pytest.fixture
def pretend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendSlurm:
    monkeypatch.setattr(chaining, "AGAIN", 0.01)
    found = pretend_slurm(tmp_path / "bin", monkeypatch)
    found.says("sbatch", "8\n")
    return found


def in_chain(
    run_dir: Path,
    *events: Event,
    do: Callable[[Chain], Awaitable[object]],
    job: str = "7",
    limits: ChainConfig | None = None,
    left: float = 1000.0,
) -> tuple[object, list[Event]]:
    """What ``do`` answers in a job whose ledger holds ``events``, and what it wrote there."""
    run_dir.mkdir(exist_ok=True)
    (run_dir / SCRIPT).write_text("#!/bin/sh\n")

    async def main() -> object:
        with Ledger(run_dir) as ledger:
            ledger.append(creation(running.config(), run_dir), *events)
        with Ledger(run_dir) as ledger:
            recorder = Recorder(ledger, fold(ledger.recovered))
            clock = Clock(job, 60, left, now=lambda: 0.0)
            return await do(Chain(recorder, run_dir, limits or ChainConfig(), clock))

    answer = asyncio.run(main())
    return answer, [entry.event for entry in read(run_dir)][1 + len(events) :]


def settled(ending: Ending, *, told: bool = False) -> Callable[[Chain], Awaitable[object]]:
    return lambda chain: chain.settle(ending, told=told)


# ---- why a chain ends


@pytest.mark.parametrize(
    ("events", "ends"),
    [
        (FIRST, ""),  # one idle job of two
        ((*FIRST, *submitted("8", 2), started(2, "8")), "job.chain.idle_jobs: 2 jobs in a row"),
        ((*FIRST, *submitted("8", 2), started(2, "8"), *PROGRESS), ""),
        ((*FIRST, *submitted("8", 2), started(2, "8"), *task("cancelled")), "job.chain.idle_jobs"),
        ((*FIRST, RoundStarted(round=1), RoundEnded(round=1)), ""),
        ((*submitted("7", 20), started(1, "7"), *PROGRESS), "job.chain.jobs: 20 of 20 jobs"),
        # A person who submits again has seen to it: the count starts anew.
        ((started(1, ""), started(2, ""), started(3, ""), *FIRST), ""),
    ],
)
def test_a_chain_ends_without_progress_and_after_its_last_job(
    tmp_path: Path, events: tuple[Event, ...], ends: str
) -> None:
    with Ledger(tmp_path) as ledger:
        state = fold(ledger.append(creation(running.config(), tmp_path), *events))
    assert state.job is not None
    found = chain_ends(state.slurm, state.job.slurm, ChainConfig())
    assert found.startswith(ends)
    assert bool(found) == bool(ends)


# ---- what follows from the end of a job


def test_a_stopped_job_submits_its_successor_before_it_leaves(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    answer, wrote = in_chain(tmp_path / "run", *FIRST, *PROGRESS, do=settled(STOPPED))
    assert answer == STOPPED
    intent = Submitting(name=NAME, link=2, chain=True, dependency="afterany:7")
    assert wrote == [intent, Submitted(job="8")]
    (asked,) = pretend.asked("sbatch")
    assert asked == f"--parsable --chdir={tmp_path / 'run'} --dependency=afterany:7"


def test_a_successor_is_submitted_once(tmp_path: Path, pretend: PretendSlurm) -> None:
    async def often(chain: Chain) -> None:
        await asyncio.gather(*(chain.extend() for _ in range(5)))
        await chain.settle(STOPPED, told=False)

    _, wrote = in_chain(tmp_path / "run", *FIRST, *PROGRESS, do=often)
    assert len(wrote) == 2
    assert len(pretend.asked("sbatch")) == 1


@pytest.mark.parametrize(("ending", "told"), [(DONE, False), (FAILED, False), (STOPPED, True)])
def test_what_ends_the_campaign_takes_the_successor_back(
    tmp_path: Path, pretend: PretendSlurm, ending: Ending, told: bool
) -> None:
    ahead = submitted("8", 2)
    answer, wrote = in_chain(
        tmp_path / "run", *FIRST, *PROGRESS, *ahead, do=settled(ending, told=told)
    )
    assert answer == ending
    reason = f"the job before it ended: {ending.reason}"
    assert wrote == [Withdrawn(jobs=["8"], reason=reason)]
    assert pretend.asked("scancel") == ["8"]
    assert pretend.asked("sbatch") == []


@pytest.mark.parametrize(("ending", "told"), [(DONE, False), (FAILED, False), (STOPPED, True)])
def test_what_ends_the_campaign_has_no_successor(
    tmp_path: Path, pretend: PretendSlurm, ending: Ending, told: bool
) -> None:
    assert in_chain(tmp_path / "run", *FIRST, do=settled(ending, told=told)) == (ending, [])
    assert pretend.asked("sbatch") == pretend.asked("scancel") == []


def test_a_job_in_no_chain_submits_nothing(tmp_path: Path, pretend: PretendSlurm) -> None:
    single = (*submitted("7", 1, chain=False), started(1, "7"), *PROGRESS)
    assert in_chain(tmp_path / "one", *single, do=settled(STOPPED)) == (STOPPED, [])
    by_hand = (started(1, "7"), *PROGRESS)
    assert in_chain(tmp_path / "two", *by_hand, do=settled(STOPPED)) == (STOPPED, [])
    assert in_chain(tmp_path / "three", started(1, ""), do=settled(STOPPED), job="") == (
        STOPPED,
        [],
    )
    assert pretend.asked("sbatch") == []


def test_a_successor_that_was_queued_in_hope_is_taken_back_when_nothing_came_of_it(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    limits = ChainConfig(idle_jobs=1)
    answer, wrote = in_chain(
        tmp_path / "run", *FIRST, *submitted("8", 2), do=settled(STOPPED), limits=limits
    )
    why = "job.chain.idle_jobs: 1 jobs in a row ended no task and no round"
    assert answer == Ending(JobOutcome.STOPPED, f"{STOPPED.reason}; the chain ends, {why}")
    assert wrote == [Withdrawn(jobs=["8"], reason=why)]
    assert pretend.asked("scancel") == ["8"]


@pytest.mark.usefixtures("pretend")
def test_the_last_job_of_a_chain_says_so(tmp_path: Path) -> None:
    answer, wrote = in_chain(
        tmp_path / "run", *FIRST, *PROGRESS, do=settled(STOPPED), limits=ChainConfig(jobs=1)
    )
    assert isinstance(answer, Ending)
    assert answer.reason.endswith("; the chain ends, job.chain.jobs: 1 of 1 jobs have run")
    assert wrote == []


def test_slurms_refusal_ends_the_chain_with_its_words(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    said = "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"
    pretend.says("sbatch", error=said, code=1)
    answer, wrote = in_chain(tmp_path / "run", *FIRST, *PROGRESS, do=settled(STOPPED))
    words = "sbatch: sbatch: error: QOSMaxSubmitJobPerUserLimit"
    assert answer == Ending(JobOutcome.STOPPED, f"{STOPPED.reason}; the chain ends, {words}")
    assert wrote[1] == Submitted(refused=words)


def test_a_script_that_is_gone_ends_the_chain_by_name(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    async def gone(chain: Chain) -> object:
        (tmp_path / "run" / SCRIPT).unlink()
        return await chain.settle(STOPPED, told=False)

    answer, _ = in_chain(tmp_path / "run", *FIRST, *PROGRESS, do=gone)
    assert isinstance(answer, Ending)
    assert SCRIPT in answer.reason
    assert pretend.asked("sbatch") == []


# ---- a controller that does not answer, and a submit that died

TIMED_OUT = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"


def test_a_job_that_slurm_took_without_saying_so_is_found_by_its_name(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    pretend.says("sbatch", error=TIMED_OUT, code=1)
    run_dir = tmp_path / "run"
    name = driver_name(run_dir, "bowl")
    queue = [f"7|RUNNING|None|N/A|{name}|{run_dir}", f"8|PENDING|Dependency|N/A|{name}|{run_dir}"]
    pretend.says("squeue", "\n".join(queue) + "\n")
    answer, wrote = in_chain(run_dir, *FIRST, *PROGRESS, do=settled(STOPPED))
    assert answer == STOPPED
    assert wrote[1:] == [Submitted(job="8")]


def test_who_cannot_tell_asks_the_queue_before_it_submits_again(
    tmp_path: Path, pretend: PretendSlurm
) -> None:
    pretend.says("sbatch", error=TIMED_OUT, code=1)
    pretend.says("squeue", error="slurm_load_jobs error: Unable to contact", code=1)

    async def comes_back(chain: Chain) -> list[str]:
        said = [await chain.extend(), await chain.extend()]
        pretend.says("sbatch", "9\n")
        said.append(await chain.extend())  # the queue is still silent: nothing is submitted
        pretend.says("squeue")
        return [*said, await chain.extend()]

    answer, wrote = in_chain(tmp_path / "run", *FIRST, *PROGRESS, do=comes_back)
    assert answer == [SILENT, SILENT, SILENT, ""]
    assert [type(one) for one in wrote] == [Submitting, Submitting, Submitted]
    assert wrote[-1] == Submitted(job="9")
    assert len(pretend.asked("sbatch")) == 2


def test_the_end_of_a_job_waits_for_a_controller_while_there_is_time(
    tmp_path: Path, pretend: PretendSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend.says("sbatch", error=TIMED_OUT, code=1)
    pretend.says("squeue", error="slurm_load_jobs error: Unable to contact", code=1)
    monkeypatch.setattr(slurm, "PATIENCE", -1.0)
    for name, left in (("patience", 1000.0), ("time", 1.0)):
        answer, _ = in_chain(tmp_path / name, *FIRST, *PROGRESS, do=settled(STOPPED), left=left)
        assert isinstance(answer, Ending)
        assert answer.reason.endswith(f"the chain ends, {SILENT}")


def test_a_job_whose_submit_died_before_it_wrote_it_down_claims_itself(
    tmp_path: Path, pretend: PretendSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = Submitting(name=NAME, link=1, chain=True)
    monkeypatch.setenv("SLURM_JOB_NAME", "somebody-elses")
    assert in_chain(tmp_path / "other", intent, do=Chain.claim) == (None, [])
    monkeypatch.setenv("SLURM_JOB_NAME", NAME)
    assert in_chain(tmp_path / "mine", intent, do=Chain.claim) == (None, [Submitted(job="7")])
    assert in_chain(tmp_path / "none", intent, do=Chain.claim, job="") == (None, [])
    assert in_chain(tmp_path / "known", *FIRST, do=Chain.claim) == (None, [])
    assert pretend.asked("squeue") == []


def test_the_queue_of_a_ledger_is_what_was_submitted_and_has_not_begun(tmp_path: Path) -> None:
    with Ledger(tmp_path) as ledger:
        state = fold(ledger.append(creation(running.config(), tmp_path)))
        for event, ahead in (
            (Submitting(name=NAME, link=1), []),
            (Submitted(job="7"), ["7"]),
            (started(1, "7"), []),
            (Submitting(name=NAME, link=2), []),
            (Submitted(job="8"), ["8"]),
            (JobEnded(job=1, outcome="stopped", reason="x"), ["8"]),
            (Withdrawn(jobs=["8"], reason="y"), []),
        ):
            for entry in ledger.append(event):
                state.apply(entry)
            assert state.slurm.ahead == ahead
    assert (state.slurm.withdrawn, list(state.slurm.all)) == ("y", ["7", "8"])
