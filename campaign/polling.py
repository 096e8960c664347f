"""The calls that votes take: paid for by the ledger, made, and made again where no answer came.

This is the one place where a judge is called again. Every call is in the ledger before it is
made and counts as one, whatever comes of it; one whose driver died is charged all it may have
used. What the model says is in no event: a vote, or our own words for why there was none.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field

from campaign.agents.base import AgentError, FormatRefusedError, LoadingError
from campaign.agents.judge import JudgeModel
from campaign.agents.wire import Completion
from campaign.events import VoteAsked, Voted
from campaign.packing import text
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.stop import Stop, StoppedError
from checks.judge import Question, exhausted
from checks.replies import Vote, read

_AT_ONCE = 8  # calls under way
_LONGEST = 60.0  # seconds between two calls, unless the server wants more
_TOO_LONG = 3600.0  # a server that wants more than this gives no answer today
_ENDS = {"length": "it was cut off, see `max_tokens`", "content_filter": "a filter withheld it"}


@dataclass(slots=True)
class LedgerPoll:
    """The judge's poll of a run. ``budget`` caps its calls over all of the run's jobs."""

    model: JudgeModel
    purse: Purse
    recorder: Recorder
    stop: Stop
    budget: int | None = None
    _made: int = field(init=False)  # calls, those set aside included
    _aside: defaultdict[str, list[ExitStack]] = field(init=False)  # by question: their holds
    _numbers: Counter[str] = field(init=False)  # by question: the last of its votes
    _lines: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        votes = self.recorder.state.votes
        self._made, self._numbers = votes.made, Counter(votes.numbers)
        self._aside, self._lines = defaultdict(list), asyncio.Semaphore(_AT_ONCE)

    async def reserve(self, question: Question, calls: int, /) -> str:
        """Hold so many calls, all or none, until each is written down; else why not."""
        each = {"judge_calls": 1, "tokens": self.model.worst(question)}
        if self.budget is not None and self._made + calls > self.budget:
            return exhausted(self.budget, self._made, calls)
        blocked = self.purse.blocked({cap: calls * amount for cap, amount in each.items()})
        if blocked is not None:
            return f"judge budget exhausted: {blocked}"
        self._made += calls
        for _ in range(calls):
            hold = ExitStack()
            hold.enter_context(self.purse.holding(each))
            self._aside[question.key].append(hold)
        return ""

    async def vote(self, question: Question) -> Vote | str:
        """Make a call that was set aside, and further ones where none came back.

        Raises :class:`StoppedError` once the run stops.
        """
        hold, failed, tries, waited = self._aside[question.key].pop(), 0, 0, 0.0
        async with self._lines:
            while True:
                with hold:
                    asked = await self._written(question)
                try:
                    return await self._call(question, asked)
                except AgentError as error:
                    failure = error
                patience = self.model.client.server.loading
                waiting = isinstance(failure, LoadingError) and waited < patience
                failed += not (waiting or isinstance(failure, FormatRefusedError))
                if why := self._given_up(failure, failed):
                    return why
                waited += await self._pause(failure, tries)
                tries += 1
                if why := await self.reserve(question, 1):
                    return f"{_failed(failure)}; {why}"
                hold = self._aside[question.key].pop()

    async def _written(self, question: Question) -> VoteAsked:
        self.stop.check()
        self._numbers[question.key] += 1
        asked = VoteAsked(
            key=question.key,
            vote=self._numbers[question.key],
            tokens=self.model.worst(question),
        )
        await self.recorder.record(asked)
        return asked

    async def _call(self, question: Question, asked: VoteAsked) -> Vote | str:
        """Make the call and write down what came of it. Raises :class:`AgentError`."""
        call = await self.stop.until_cut(self.model.ask(question, asked.vote))
        if call.cancelled():
            await self._settle(asked, asked.tokens, f"cancelled: {self.stop.reason}")
            raise StoppedError(self.stop.reason)
        try:
            completion = call.result()
        except AgentError as error:
            await self._settle(asked, 0 if error.unspent else asked.tokens, error.what)
            raise
        vote = _vote(completion)
        spent = asked.tokens if completion.spent is None else completion.spent.total
        await self._settle(asked, spent, vote)
        return vote

    async def _settle(self, asked: VoteAsked, tokens: int, came: Vote | str) -> None:
        passed = came.passed if isinstance(came, Vote) else None
        error = "" if isinstance(came, Vote) else text(came)
        await self.recorder.record(
            Voted(key=asked.key, vote=asked.vote, tokens=tokens, passed=passed, error=error)
        )

    def _given_up(self, failure: AgentError, failed: int) -> str:
        """Why there is no further call, ``""`` where there is one."""
        if failure.retry_after > _TOO_LONG:
            return f"{_failed(failure)}; it asks to wait {failure.retry_after:.0f} s"
        if not failure.retryable or failed > self.model.client.server.retries:
            return _failed(failure)
        return ""

    async def _pause(self, failure: AgentError, tries: int) -> float:
        """Wait before another try as long as the server wants, in seconds; a stop ends it."""
        if isinstance(failure, FormatRefusedError):
            return 0.0
        doubled: float = self.model.client.server.backoff * 2.0 ** min(tries, 10)
        delay = max(failure.retry_after, min(_LONGEST, doubled))
        await self.stop.pause(delay)
        return delay


def _failed(error: AgentError) -> str:
    return f"the call failed: {error.what}"


def _vote(completion: Completion) -> Vote | str:
    """The vote in a completion, or what it is instead: never its own words."""
    vote = read(completion.content)
    if isinstance(vote, Vote):
        return vote
    if completion.refusal is not None:
        return "the reply is a refusal"
    why = _ENDS.get(completion.finish_reason)
    return f"the reply is no verdict: {why}" if why else "the reply is no verdict"
