"""The judge of a run: which candidates a model is asked about, and what becomes of its votes.

A model sees only what everything else lets pass. Votes come from the ledger where they are in
it, so a resumed run pays for none of them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace

from campaign.agentconfig import JudgeConfig, OpenAIAgent
from campaign.agents.chat import ChatClient
from campaign.agents.judge import JudgeModel
from campaign.config import CampaignConfig
from campaign.gateconfig import merged, observes
from campaign.grounding import texts
from campaign.judging import Batch, Judgement
from campaign.model import Mode
from campaign.polling import LedgerPoll
from campaign.purse import Purse
from campaign.recorder import Recorder
from campaign.render import Place
from campaign.stop import Stop, StoppedError
from checks.finding import Finding, Status, Verdict
from checks.judge import Judge
from checks.replies import Vote
from checks.rule import Rule
from checks.ruletype import Scope
from checks.suite import Suite

_SHARED = ("model", "url", "socket", "key", "loading", "top_p", "body")
_CALLS = ("timeout", "retries", "backoff", "max_bytes")


@dataclass(frozen=True, slots=True)
class Voting:
    """The judge of a run. With ``observing`` the other rules keep no candidate from it."""

    judge: Judge
    description: str = ""
    observing: bool = False

    async def complete(
        self, suite: Suite, batch: Batch, found: Mapping[int, Judgement]
    ) -> dict[int, Judgement]:
        """What the layers said of new candidates, with what the model says where it is asked.

        Raises ``StoppedError`` when the run stops before a vote that could keep a candidate out.
        """
        asked = [slot for slot, one in found.items() if self._passes(suite, one)]
        findings = {slot: list(_said(found[slot])) for slot in asked}
        whole = batch.proposal(sorted({*batch.pinned, *asked}))
        # Rule by rule, so that it does not depend on the server whom the budget suffices for.
        for at, rule in enumerate(suite.rules):
            if not rule.judged:
                continue
            records = {
                slot: whole if rule.scope is Scope.BATCH else batch.record(slot) for slot in asked
            }
            came = await _all(
                [self._finding(rule, findings[slot][at], records[slot]) for slot in asked]
            )
            for slot, one in zip(asked, came, strict=True):
                findings[slot][at] = one
        done = {slot: Verdict(tuple(said)) for slot, said in findings.items()}
        return {
            slot: replace(one, expect=done[slot]) if slot in done else one
            for slot, one in found.items()
        }

    async def close(self) -> None:
        """End what is under way."""
        await self.judge.close()

    def _passes(self, suite: Suite, judgement: Judgement) -> bool:
        """Whether nothing but the judge may keep the candidate out."""
        if judgement.expect is None or not judgement.fits:
            return False
        pairs = zip(suite.rules, judgement.expect.findings, strict=True)
        return self.observing or all(
            one.passed or not one.gates or (rule.judged and one.open) for rule, one in pairs
        )

    async def _finding(
        self, rule: Rule, finding: Finding, record: Mapping[str, object] | None
    ) -> Finding:
        try:
            context = texts(self.description, record or {})
            return await self.judge.complete(rule, finding, record, context)
        except StoppedError:
            if rule.finding(Status.REJECT).gates and not self.observing:
                raise
            return finding  # open; the batch keeps the rest of its verdicts


def voting(
    config: CampaignConfig,
    place: Place,
    suite: Suite | None,
    purse: Purse,
    recorder: Recorder,
    stop: Stop,
) -> Voting | None:
    """The judge of a run, ``None`` where no rule is judged or no model is to be contacted."""
    state = recorder.state
    server = server_of(config)
    surrogate_only = state.run is not None and state.run.mode == Mode.SURROGATE_ONLY
    judged = suite is not None and any(rule.judged for rule in suite.rules)
    if server is None or surrogate_only or not judged:
        return None
    model = JudgeModel(ChatClient(server, place.folder, place.run_dir), config.seed)
    budget = merged(config).get("judge_budget")
    poll = LedgerPoll(
        model, purse, recorder, stop, budget=budget if isinstance(budget, int) else None
    )
    votes = {key: [Vote(passed) for passed in cast] for key, cast in state.votes.cast.items()}
    judge = Judge(poll, model=server.model, discreet=True, votes=votes)
    return Voting(judge, config.description, observes(config))


def server_of(config: CampaignConfig) -> JudgeConfig | None:
    """The server that judged rules ask: the judge's own, else that of a model that proposes."""
    if config.judge is not None or not isinstance(config.agent, OpenAIAgent):
        return config.judge
    agent = config.agent
    return JudgeConfig.model_construct(
        **{name: getattr(agent, name) for name in (*_SHARED, *_CALLS)}
    )


async def _all(coming: Sequence[Coroutine[object, object, Finding]]) -> list[Finding]:
    """What they come to; the first exception is raised once none of them is under way."""
    ended = await asyncio.gather(*coming, return_exceptions=True)
    found: list[Finding] = []
    for one in ended:
        if isinstance(one, BaseException):
            raise one
        found.append(one)
    return found


def _said(judgement: Judgement) -> tuple[Finding, ...]:
    return () if judgement.expect is None else judgement.expect.findings
