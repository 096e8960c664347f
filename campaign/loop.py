"""The campaign: rounds until the goal, the last round, a cap, a signal or a failure ends them."""

from __future__ import annotations

from dataclasses import dataclass

from campaign.events import Reverified, RoundEnded, SlotEnded
from campaign.model import NOT_SIMULATED, ONCE, CampaignFailedError, Disposition, JobOutcome
from campaign.observations import best, incomplete, reached, unanswered
from campaign.rounds import Campaign, run_round
from campaign.spans import of_round
from campaign.state import CampaignState
from campaign.stop import Stop, StoppedError
from checks.finding import Status


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended, and why in one line."""

    outcome: JobOutcome
    reason: str


async def run_campaign(campaign: Campaign) -> Ending:
    """Go on from wherever the ledger stands, until the campaign ends or is stopped."""
    stop = campaign.asking.stop
    try:
        await campaign.tasks.settle_open_tries()
        await _reverify(campaign)
        reason = await _rounds(campaign)
    except StoppedError:
        if stop.outcome is not JobOutcome.DONE:
            return stopped(stop, campaign.asking.recorder.state)
        reason = stop.reason
        await _close_open_round(campaign, reason)
    except CampaignFailedError as error:
        return Ending(JobOutcome.FAILED, " ".join(str(error).split()))
    if campaign.simulation is None:
        return Ending(JobOutcome.DONE, f"{reason}; {NOT_SIMULATED}")
    if best(campaign.asking.recorder.state, campaign.asking.config) is None:
        return Ending(JobOutcome.FAILED, f"{reason}; no simulation succeeded")
    return Ending(JobOutcome.DONE, reason)


def stopped(stop: Stop, state: CampaignState) -> Ending:
    """The end of a job that was told to stop."""
    if stop.outcome is JobOutcome.STOPPED and state.dry_run:
        return Ending(JobOutcome.FAILED, f"{stop.reason}; {ONCE}")
    return Ending(stop.outcome, stop.reason)


async def _rounds(campaign: Campaign) -> str:
    config, state = campaign.asking.config, campaign.asking.recorder.state
    for number in range(1, config.rounds + 1):
        if number in state.rounds and state.rounds[number].ended:
            continue
        if number not in state.rounds and (reason := reached(state, config)):
            return reason
        with of_round(number):
            await run_round(campaign, number)
    return reached(state, config) or f"all {config.rounds} rounds are done"


async def _reverify(campaign: Campaign) -> None:
    """Put candidates that a failed verifier let through to it again, before they count."""
    state = campaign.asking.recorder.state
    for slot in incomplete(state):
        found = await campaign.verifiers.verify(
            slot.parameters, slot.round, slot.slot, only=unanswered(state, slot)
        )
        rejection = next((one for one in found.findings if one.status is Status.REJECT), None)
        await campaign.asking.recorder.record(
            Reverified(
                round=slot.round,
                slot=slot.slot,
                unanswered=[*found.unanswered, *found.blocked],
                rejected_by="" if rejection is None else rejection.check,
                reason="" if rejection is None else rejection.reason,
            )
        )


async def _close_open_round(campaign: Campaign, reason: str) -> None:
    """A cap ended the campaign: what is open gets its disposition, nothing is dropped silently."""
    recorder = campaign.asking.recorder
    for number, rounds in sorted(recorder.state.rounds.items()):
        if rounds.ended:
            continue
        left = [i for i in range(campaign.asking.config.batch_size) if i not in rounds.slots]
        await recorder.record(
            *(
                SlotEnded(
                    round=number,
                    slot=slot,
                    disposition=Disposition.TOMBSTONE.value,
                    generation=0,
                    reason=reason,
                )
                for slot in left
            ),
            RoundEnded(round=number),
        )
