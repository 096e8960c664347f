"""A campaign of two parameters, run in this process on an inline executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from campaign.agents.base import Agent, Plain
from campaign.config import CampaignConfig
from campaign.configfile import config_from_mapping
from campaign.drive import assemble, creation
from campaign.events import Entry, JobEnded, JobStarted
from campaign.expectations import kept, resolve
from campaign.ledger import Ledger, read
from campaign.loop import Ending, run_campaign
from campaign.model import Answer, Ask
from campaign.recorder import Listener, Recorder
from campaign.render import Place
from campaign.state import CampaignState, fold
from campaign.stop import Stop
from checks import Rejected
from inline import Answering, InlineExecutor
from square import square

E = TypeVar("E")


def bowl(candidate: Mapping[str, Any]) -> dict[str, float]:
    """A simulation: least, 0, at x = 0.3, y = 0.6."""
    return {"loss": (candidate["x"] - 0.3) ** 2 + (candidate["y"] - 0.6) ** 2}


def passes(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"verdict": "pass"}


def rejects_right_half(candidate: Mapping[str, Any]) -> dict[str, Any]:
    """A verifier: x above 0.5 is unstable."""
    if candidate["x"] > 0.5:
        return {"verdict": "reject", "reason": f"x: {candidate['x']}; at most 0.5 is stable"}
    return {"verdict": "pass", "metrics": {"margin": 0.5 - candidate["x"]}}


FUNCTIONS: dict[str, Answering] = {
    "tests:bowl": bowl,
    "tests:passes": passes,
    "tests:rejects": rejects_right_half,
}


def config(**changes: Any) -> CampaignConfig:
    """Two rounds of three candidates, one verifier; ``changes`` replace top-level keys."""
    task = {"kind": "python", "walltime": "10s"}
    plain: dict[str, Any] = {
        "version": 1,
        "name": "bowl",
        "parameters": square(),
        "objective": {"name": "loss", "direction": "minimize"},
        "rounds": 2,
        "batch_size": 3,
        "seed": 3,
        "agent": {"kind": "surrogate"},
        "verifiers": [task | {"name": "stable", "function": "tests:rejects"}],
        "simulation": task | {"function": "tests:bowl"},
        "executors": {"default": {"kind": "threads", "workers": 2}},
    }
    return config_from_mapping(plain | changes)


def verifier(name: str, function: str = "tests:passes", **more: Any) -> dict[str, Any]:
    return {"kind": "python", "walltime": "10s", "name": name, "function": function} | more


@dataclass
class ScriptedAgent(Plain):
    """Answers in turn: a list of candidates, an exception to raise, or nothing (``empty``)."""

    answers: Sequence[object]
    asks: list[Ask]
    rationale: str = ""

    async def propose(self, ask: Ask) -> Answer:
        self.asks.append(ask)
        if len(self.asks) > len(self.answers):
            raise Rejected("nothing left to say", check="empty")
        answer = self.answers[len(self.asks) - 1]
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, list)
        return Answer(tuple(answer), self.rationale)


def agent(*answers: object, rationale: str = "") -> ScriptedAgent:
    return ScriptedAgent(answers, [], rationale)


@dataclass
class Ran:
    """What a run came to."""

    ending: Ending
    state: CampaignState
    executor: InlineExecutor
    run_dir: Path

    @property
    def dispositions(self) -> list[str]:
        """By round and slot."""
        return [
            rounds.slots[slot].disposition
            for _, rounds in sorted(self.state.rounds.items())
            for slot in sorted(rounds.slots)
        ]

    @property
    def entries(self) -> list[Entry]:
        return read(self.run_dir)


def of(ran: Ran, kind: type[E]) -> list[E]:
    """The events of a kind, in their order."""
    return [entry.event for entry in ran.entries if isinstance(entry.event, kind)]


def run(
    run_dir: Path,
    settings: CampaignConfig,
    *,
    proposer: Agent | None = None,
    functions: Mapping[str, Answering] = FUNCTIONS,
    backwards: bool = False,
    listeners: Sequence[Listener] = (),
) -> Ran:
    """Run one job in ``run_dir``, to the end of the campaign or of the job."""
    executor = InlineExecutor(functions, backwards)
    return asyncio.run(job(run_dir, settings, executor, Stop, proposer, listeners))


async def job(
    run_dir: Path,
    settings: CampaignConfig,
    executor: InlineExecutor,
    stop: Callable[[], Stop] = Stop,
    proposer: Agent | None = None,
    listeners: Sequence[Listener] = (),
) -> Ran:
    """The same in the loop that runs; ``stop`` makes what may stop it."""
    run_dir.mkdir(exist_ok=True)
    with Ledger(run_dir) as ledger:
        recorder = Recorder(ledger, fold(ledger.recovered), listeners)
        state = recorder.state
        if state.run is None:
            expect, refused = resolve(settings.model_dump(exclude_defaults=True), run_dir)
            assert not refused, refused
            await recorder.record(creation(settings, run_dir, kept(expect)))
        number = 1 if state.job is None else state.job.job + 1
        await recorder.record(JobStarted(job=number, host="h", pid=1, python="", numpy=""))
        place = Place(run_dir, run_dir, settings.seed)
        campaign = assemble(settings, place, executor, recorder, stop(), proposer)
        try:
            ending = await run_campaign(campaign)
        finally:
            await campaign.asking.close()
        await recorder.record(
            JobEnded(job=number, outcome=ending.outcome.value, reason=ending.reason)
        )
        return Ran(ending, state, executor, run_dir)
