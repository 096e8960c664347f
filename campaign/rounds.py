"""One round: propose, gate, simulate, observe."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from campaign.asking import Asking
from campaign.config import TaskConfig
from campaign.events import RoundEnded, RoundStarted, SlotEnded
from campaign.gate import Gate
from campaign.gateconfig import most_generations, policies
from campaign.model import SIMULATION, CampaignFailedError
from campaign.steering import Steering
from campaign.stop import StoppedError
from campaign.tasks import Job, TaskRunner
from campaign.verify import Verifiers
from checks import NotAccepted, accept


@dataclass(frozen=True, slots=True)
class Campaign:
    """What a driver works with, put together once."""

    asking: Asking
    verifiers: Verifiers
    tasks: TaskRunner
    simulation: TaskConfig | None  # None: a dry run, which simulates nothing
    steering: Steering


async def run_round(campaign: Campaign, number: int) -> None:
    """Run a round to its end, or go on with one that another job began.

    Simulations that have started are waited for, whatever else happens: they are paid for.
    Raises ``StoppedError`` when the run stops and ``CampaignFailedError`` when it cannot go on;
    the round stays open then.
    """
    asking = campaign.asking
    if number not in asking.recorder.state.rounds:
        await asking.recorder.record(RoundStarted(round=number))
    problem: Exception | None = None
    async with asyncio.TaskGroup() as simulations:

        def start(slot: SlotEnded) -> None:
            simulations.create_task(_simulate(campaign, slot))

        try:
            gate = Gate(asking, campaign.verifiers, campaign.steering, number, start)
            await _gate(campaign, gate, number)
        except (StoppedError, CampaignFailedError) as error:
            problem = error
    if problem is not None:
        raise problem
    asking.stop.check()
    await asking.recorder.record(RoundEnded(round=number))


async def _gate(campaign: Campaign, gate: Gate, number: int) -> None:
    config = campaign.asking.config
    policy = policies(config)
    hopeless = policy.structural_failure == policy.semantic_rejection == "fail_run"
    try:
        await accept(
            gate.propose,
            checks=(gate.domain, gate.verifiers, gate.settled),
            attempts=most_generations(config),
            fallback=None if hopeless else gate.fill,
            name=f"round {number}",
        )
    except NotAccepted as error:
        _, *lines = str(error).splitlines()
        # After the last answer only why there was no further one: that repeats to the end.
        said = "; ".join(line.strip() for line in lines[: gate.answers + 1])
        why = f"round {number}: {gate.used}; {said} (policy: fail_run)"
        raise CampaignFailedError(why) from error


async def _simulate(campaign: Campaign, slot: SlotEnded) -> None:
    if campaign.simulation is None:
        return
    job = Job(SIMULATION, campaign.simulation, slot.parameters, slot.round, slot.slot)
    try:
        await campaign.tasks.run(job)
    except StoppedError:
        return  # the round sees it once everything paid for has ended
