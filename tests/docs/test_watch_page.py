"""What the page on watching shows is drawn and told of the events of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import pages
import running
from campaign import events
from campaign.allocationevents import AllocationBegan, AllocationQueued, AllocationReserved
from campaign.config import CampaignConfig
from campaign.events import Entry, Event
from campaign.lines import line
from campaign.picture import Canvas, Scene, picture, stamped
from campaign.progress import Progress
from campaign.state import CampaignState
from pages import Block

PAGE = "docs/how-to/watch.md"
BEGAN = 1_796_046_651.0  # 13:50:51 in UTC
SIZE = Canvas(92, 30)
LOSSES = (0.5, 0.2, 0.31, 0.09, 0.0213, 0.12)
POINTS = [{"x": round(0.11 + 0.08 * n, 2), "y": round(0.78 - 0.05 * n, 2)} for n in range(11)]
ENDED = ("accepted", "accepted", "accepted", "accepted", "repaired", "fallback")


def config() -> CampaignConfig:
    executor = {
        "kind": "slurm", "nodes": 4, "workers_per_node": 2, "max_pilots": 2,
        "pilot": {"walltime": "1h"},
    }  # fmt: skip
    task = {"kind": "python", "walltime": "30m"}
    return running.config(
        name="plates", rounds=6, batch_size=6, budgets={"node_hours": 10},
        executors={"default": executor},
        verifiers=[task | {"name": "stable_dt", "function": "tests:rejects"}],
        simulation=task | {"function": "tests:bowl"},
    )  # fmt: skip


def pilot(number: int, job: str) -> Iterator[Event]:
    yield AllocationReserved(
        allocation=number, what="pilot", name="p", nodes=4, walltime=3600.0, reserved=4.0
    )
    yield AllocationQueued(allocation=number, job=job)


def began(number: int, slot: int, task: str = "simulation") -> Event:
    return events.TaskStarted(
        task=task, candidate=f"c{number}{slot}", attempt=1, round=number, slot=slot,
        nodes=1, reserved=0.5,
    )  # fmt: skip


def simulated(number: int, slot: int, loss: float, seconds: float = 88.2) -> Event:
    return events.TaskEnded(
        task="simulation", candidate=f"c{number}{slot}", attempt=1, status="done", spent=0.4,
        seconds=seconds, value={"loss": loss},
    )  # fmt: skip


def ended(number: int, slot: int, disposition: str) -> Event:
    return events.SlotEnded(
        round=number, slot=slot, disposition=disposition, generation=1,
        candidate=f"c{number}{slot}", parameters=POINTS[6 * (number - 1) + slot],
    )  # fmt: skip


def asked(number: int, generation: int, slots: list[int], tokens: int) -> Iterator[Event]:
    yield events.Asked(round=number, generation=generation, slots=slots)
    yield events.Called(round=number, generation=generation, attempt=1, tokens=4_000)
    if tokens:
        yield events.Answered(
            round=number, generation=generation, candidates=[POINTS[slot] for slot in slots],
            tokens=tokens, input_tokens=tokens - 400, output_tokens=400,
        )  # fmt: skip


def first_round() -> Iterator[Event]:
    yield events.RunCreated(
        version=1, simgate="0", name="plates", mode="campaign", folder="/", config={}
    )
    yield events.JobStarted(job=1, host="node7", pid=1, python="", numpy="", slurm="4711")
    yield events.RoundStarted(round=1)
    yield from asked(1, 1, list(range(6)), 1_900)
    yield from pilot(1, "4710")
    yield AllocationBegan(allocation=1, since=BEGAN + 30)
    for slot, disposition in enumerate(ENDED):
        yield ended(1, slot, disposition)
        yield began(1, slot)
    for slot, loss in enumerate(LOSSES):
        yield simulated(1, slot, loss)
    yield events.RoundEnded(round=1)


def rejection(slot: int, reason: str) -> Iterator[Event]:
    yield began(2, slot, "stable_dt")
    yield events.TaskEnded(
        task="stable_dt", candidate=f"c2{slot}", attempt=1, status="done", spent=0.1, seconds=9.0,
        value={"verdict": "reject", "reason": reason},
    )  # fmt: skip


def second_round() -> Iterator[tuple[float, Event]]:
    """Each with the seconds after the round before."""
    yield 0, events.RoundStarted(round=2)
    question, call = asked(2, 1, list(range(6)), 0)
    yield 1, question
    yield 1, call
    yield (
        4,
        events.CallFailed(
            round=2, generation=1, attempt=1, reason="HTTP 503: busy", tokens=0, wait=1.0
        ),
    )
    _, again, answer = asked(2, 1, list(range(6)), 3_220)
    yield 5, again
    yield 9, answer
    for slot in (0, 1, 3, 4):
        yield 12 + slot, ended(2, slot, "accepted")
        yield 12 + slot, began(2, slot)
    for at, event in zip((20, 21), pilot(2, "4712"), strict=True):
        yield at, event
    for event in rejection(2, "dt*T = 0.031, at most 0.02"):
        yield 22, event
    for event in rejection(5, "dt*T = 0.028, at most 0.02"):
        yield 24, event
    yield 200, simulated(2, 1, 0.0351)
    for event in asked(2, 2, [2, 5], 0):
        yield 203, event


def history() -> list[Entry]:
    """Eleven minutes for the first round, then the second as far as it got."""
    first = list(first_round())
    found = [(BEGAN + 600 * n / len(first), event) for n, event in enumerate(first)]
    found += [(BEGAN + 660 + at, event) for at, event in second_round()]
    return [Entry(n, at, event) for n, (at, event) in enumerate(found, 1)]


def shown() -> tuple[list[str], list[str]]:
    """The picture eight seconds after the last event, and everything that was told till then."""
    state = CampaignState()
    progress, told = Progress(config(), state), []
    for entry in history():
        state.apply(entry)
        progress.apply(entry)
        told += [stamped(entry.t, text) for text in line(entry.event, state).splitlines()]
    drawn = picture(Scene(progress, history()[-1].t + 8), SIZE)
    return [text.plain.rstrip() for text in drawn], told


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day are those of the machine, so it stands in UTC here."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pages.each(pages.blocks(PAGE, "text", under="The live view"))
def test_the_live_view_of_the_page_is_what_is_drawn(block: Block) -> None:
    drawn, _ = shown()
    assert block.text.splitlines() == drawn


@pages.each(pages.blocks(PAGE, "text", under="Lines"))
def test_the_lines_of_the_page_are_told(block: Block) -> None:
    _, told = shown()
    assert [said for said in block.text.splitlines() if said not in told] == [], "\n".join(told)
