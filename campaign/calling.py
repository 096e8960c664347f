"""The calls that one ask takes: paid for, made, and made again where no answer came.

This is the one place where an agent is called again. A call is in the ledger before it is made;
one whose driver died is charged all it may have used, and uses up a retry.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from campaign.agentconfig import Calls as Settings
from campaign.agents.base import Agent, AgentError, FormatRefusedError, LoadingError
from campaign.events import Called, CallFailed, Unanswered
from campaign.ledger import LedgerError
from campaign.model import Answer, Ask, CampaignFailedError
from campaign.packing import text
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.roundstate import Calls
from campaign.stop import Stop, StoppedError
from checks import Rejected

TRANSPORT, BUDGET = "transport", "budget"
"""The stages of an ask that brought no answer."""

_LONGEST = 60.0  # seconds between two calls, unless the server wants more
_TOO_LONG = 3600.0  # a server that wants more than this gives no answer today
_LOST = "the job that made the call is gone"


class NoAnswerError(Exception):
    """No call brought an answer, or none may be made; the ledger says so, with the stage."""

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(reason)
        self.stage = stage


@dataclass(frozen=True, slots=True)
class Calling:
    """How an agent is called. ``loading`` is how long one that is not up yet is waited for."""

    agent: Agent
    settings: Settings
    purse: Purse
    recorder: Recorder
    stop: Stop
    loading: float = 0.0

    async def put(self, ask: Ask) -> tuple[Answer, int, float]:
        """The answer, the tokens it is charged, and the seconds it took.

        Raises :class:`NoAnswerError` when every try failed or a cap forbids another,
        ``CampaignFailedError`` when no further try could bring one, and ``StoppedError``.
        """
        began = time.monotonic()
        while True:
            self.stop.check()
            if (calls := self._calls(ask)).failed > self.settings.retries:
                raise await self._give_up(ask, calls.reason or _LOST)
            called = Called(
                round=ask.round,
                generation=ask.generation,
                attempt=calls.made + 1,
                tokens=self.agent.worst(ask),
            )
            blocked = await self.purse.reserve(called, {"tokens": called.tokens})
            if blocked is not None:
                raise await self._give_up(ask, str(blocked), BUDGET)
            try:
                answer, seconds = await self._call(ask, called)
            except AgentError as error:
                waited = time.monotonic() - began
                waiting = isinstance(error, LoadingError) and waited < self.loading
                delay = self._delay(ask, error, waiting=waiting)
                # What ends the run is no try that the next job would have less.
                free = waiting or isinstance(error, FormatRefusedError) or not error.retryable
                await self._failed(called, error, free=free, wait=delay)
                await self._pause(ask, error, delay)
            else:
                spent = called.tokens if answer.spent is None else answer.spent.total
                return answer, spent, seconds

    def _calls(self, ask: Ask) -> Calls:
        return self.recorder.state.round(ask.round).calls.get(ask.generation, Calls())

    async def _call(self, ask: Ask, called: Called) -> tuple[Answer, float]:
        began = time.monotonic()
        try:
            asked = await self.stop.until_cut(self.agent.propose(ask))
        except asyncio.CancelledError:
            with contextlib.suppress(LedgerError):  # it may be why the driver is being ended
                await self._failed(called, AgentError("cancelled with its driver"), free=True)
            raise
        if asked.cancelled():
            why = f"cancelled: {self.stop.reason}"
            await self._failed(called, AgentError(why), free=True)
            raise StoppedError(self.stop.reason)
        try:
            answer = asked.result()
        except Rejected as refusal:
            answer = Answer(stage=refusal.check or "producer", reason=refusal.reason)
        return answer, time.monotonic() - began

    async def _failed(
        self, called: Called, error: AgentError, *, free: bool, wait: float = 0.0
    ) -> None:
        await self.recorder.record(
            CallFailed(
                round=called.round,
                generation=called.generation,
                attempt=called.attempt,
                reason=text(error.what),
                tokens=0 if error.unspent else called.tokens,
                status=error.status,
                request_id=text(error.request_id),
                free=free,
                wait=wait if wait <= _TOO_LONG else 0.0,
            )
        )
        if not error.retryable:
            raise CampaignFailedError(f"agent: {error.what}")

    def _delay(self, ask: Ask, error: AgentError, *, waiting: bool) -> float:
        """Seconds before the next call, at least what the server wants; 0 where none is made.

        ``waiting`` is for a server that is not up yet.
        """
        failed = self._calls(ask).failed + (not waiting)
        last = not error.retryable or failed > self.settings.retries
        if last or isinstance(error, FormatRefusedError):
            return 0.0
        doubled = 1 if waiting else 2 ** min(failed - 1, 10)
        return max(error.retry_after, min(_LONGEST, self.settings.backoff * doubled))

    async def _pause(self, ask: Ask, error: AgentError, delay: float) -> None:
        """Wait before the next call; a stop ends it."""
        if delay > _TOO_LONG:
            raise await self._give_up(ask, f"{error.what}; it asks to wait {delay:.0f} s")
        await self.stop.pause(delay)

    async def _give_up(self, ask: Ask, why: str, stage: str = TRANSPORT) -> NoAnswerError:
        await self.recorder.record(
            Unanswered(round=ask.round, generation=ask.generation, reason=text(why), stage=stage)
        )
        return NoAnswerError(stage, why)
