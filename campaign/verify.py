"""The verifiers of one candidate: run in their order, their answers turned into findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from campaign.config import CampaignConfig, VerifierConfig
from campaign.contract import rejects
from campaign.events import TaskEnded
from campaign.gateconfig import policies
from campaign.model import JobOutcome
from campaign.space import Point
from campaign.stop import Stop
from campaign.tasks import Job, TaskRunner
from checks.finding import Finding, Layer, Status
from executors.base import TaskStatus


@dataclass(frozen=True, slots=True)
class Verification:
    """What the verifiers made of one candidate.

    ``unanswered`` names those that could not tell and whose failure the policy lets pass;
    ``blocked`` those whose failure it does not: the candidate is out, but not by its own fault.
    """

    findings: tuple[Finding, ...]
    unanswered: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @property
    def rejected(self) -> bool:
        return any(one.status is Status.REJECT for one in self.findings)

    @property
    def passed(self) -> bool:
        return not self.rejected and not self.blocked


class Verifiers:
    """The configured verifiers, on the workers, within the budgets."""

    def __init__(self, config: CampaignConfig, tasks: TaskRunner, stop: Stop) -> None:
        self._config = config
        self._tasks = tasks
        self._stop = stop

    def unreached(self) -> tuple[Finding, ...]:
        """What they say of a candidate that something before them kept out: nothing."""
        why = "not run: a check kept the candidate out before"
        return tuple(
            Finding(one.name, Layer.VERIFIER, Status.SKIPPED, why) for one in self._config.verifiers
        )

    async def verify(
        self, point: Point, round: int, slot: int, *, only: Sequence[str] = ()
    ) -> Verification:
        """Put a candidate to every verifier, or again to those named in ``only``.

        Raises ``StoppedError`` when the run stops, by a signal, a cap or ``on_failure: fail_run``.
        """
        findings: list[Finding] = []
        unanswered: list[str] = []
        blocked: list[str] = []
        why = ""
        for verifier in self._config.verifiers:
            if only and verifier.name not in only:
                continue
            if why:
                findings.append(Finding(verifier.name, Layer.VERIFIER, Status.SKIPPED, why))
                continue
            job = Job(verifier.name, verifier, point, round, slot)
            ended = await self._tasks.run(job, again=bool(only))
            findings.append(finding(ended))
            if findings[-1].status is Status.REJECT and verifier.on_rejection == "stop":
                why = f"not run: {verifier.name} rejected"
            if findings[-1].status is Status.ERROR:
                let_pass = self._on_failure(verifier, ended) == "warn_continue"
                (unanswered if let_pass else blocked).append(verifier.name)
                why = why if let_pass else f"not run: {verifier.name} could not tell"
        return Verification(tuple(findings), tuple(unanswered), tuple(blocked))

    def _on_failure(self, verifier: VerifierConfig, ended: TaskEnded) -> str:
        policy = verifier.on_failure or policies(self._config).verifier_failure
        if policy == "fail_run":
            self._stop.request(
                f"verifier {verifier.name}: {ended.status}: {ended.reason} (on_failure: fail_run)",
                JobOutcome.FAILED,
            )
            self._stop.check()
        return policy


def finding(ended: TaskEnded) -> Finding:
    """A verifier's end as a finding: what is no answer is an error, never a rejection."""
    if ended.status != TaskStatus.DONE:
        reason = f"{ended.status}: {ended.reason}" if ended.reason else ended.status
        return Finding(ended.task, Layer.VERIFIER, Status.ERROR, reason)
    status = Status.REJECT if rejects(ended) else Status.PASS
    value = ended.value
    reason = str(value.get("reason", "")) if status is Status.REJECT else ""
    return Finding(ended.task, Layer.VERIFIER, status, reason, dict(value.get("metrics", {})))
