"""One job: open the ledger and the executors, run the campaign, close everything again."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.accounts import Accounts
from campaign.agentconfig import Calls, OpenAIAgent
from campaign.agents.base import Agent
from campaign.agents.make import agent_of
from campaign.agents.surrogate import SurrogateAgent
from campaign.asking import Asking
from campaign.attend import attending
from campaign.calling import Calling
from campaign.chain import Chain
from campaign.clock import of_this_process
from campaign.config import CampaignConfig
from campaign.crash import cause
from campaign.dryrun import stand_in
from campaign.events import VERSION, JobEnded, JobStarted, RuleRecord, RunCreated
from campaign.expectations import compiled
from campaign.gateconfig import observes
from campaign.jobconfig import MARGIN, ChainConfig
from campaign.judging import Layers, bounds
from campaign.ledger import Ledger, LedgerError
from campaign.loop import Ending, run_campaign, stopped
from campaign.model import CampaignFailedError, JobOutcome, Mode
from campaign.observations import goal
from campaign.packing import text
from campaign.preflight import require_again
from campaign.purse import Purse
from campaign.recorder import Listener, Recorder
from campaign.render import Place
from campaign.rounds import Campaign
from campaign.space import Space
from campaign.spans import traceparent
from campaign.state import CampaignState, fold
from campaign.status import config_of
from campaign.steering import steering
from campaign.stop import Stop, StoppedError
from campaign.takeover import until_free
from campaign.tasks import Runs, TaskRunner
from campaign.telemetry import observing
from campaign.verify import Verifiers
from executors import ExecutorError, open_executors
from executors.background import in_thread

if TYPE_CHECKING:
    from campaign.agents.serving import ModelServer


class RunDirError(Exception):
    """The run directory already holds a run, or cannot be made; the message says what to do."""


def creation(
    config: CampaignConfig,
    folder: Path,
    rules: Sequence[RuleRecord] = (),
    *,
    surrogate_only: bool = False,
    dry_run: bool = False,
) -> RunCreated:
    """The first event of a new run; ``rules`` come from :func:`campaign.expectations.kept`."""
    mode = Mode.SURROGATE_ONLY if surrogate_only else Mode.CAMPAIGN
    return RunCreated(
        version=VERSION,
        simgate=version("simgate"),
        name=config.name,
        mode=(Mode.DRY_RUN if dry_run else mode).value,
        folder=str(folder),
        config=config.model_dump(mode="json"),
        rules=list(rules),
    )


async def drive(
    run_dir: Path, created: RunCreated | None = None, listeners: Sequence[Listener] = ()
) -> tuple[Ending, CampaignState]:
    """Run a job of the campaign in ``run_dir`` to its end: a new run with ``created``, else go on.

    Raises :class:`RunDirError`, ``LockHeldError`` when another driver has the run, and
    ``LedgerError`` when the ledger cannot be read or written.
    """
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(f"{run_dir}: cannot be made: {error.strerror}") from error
    await until_free(run_dir)
    with Ledger(run_dir) as ledger:
        state = fold(ledger.recovered)
        refuse_dry_run(state.run, run_dir)
        if created is not None and state.run is not None:
            raise RunDirError(f"{run_dir}: already holds a run; use simgate resume {run_dir}")
        recorder = Recorder(ledger, state, listeners)
        try:
            if created is not None:
                await recorder.record(created)
            ending = _over(state)
            if ending is None and created is None:
                await _still_there(state, run_dir)
            ending = ending or await _observed(recorder, run_dir)
        finally:
            await recorder.close()
        return ending, state


def refuse_dry_run(run: RunCreated | None, run_dir: Path) -> None:
    """Raise :class:`RunDirError` where a dry run lies: it never becomes, or holds, a real one."""
    if run is not None and run.mode == Mode.DRY_RUN:
        raise RunDirError(
            f"{run_dir}: a dry run, which is not gone on with; start a run in another directory"
        )


async def _still_there(state: CampaignState, run_dir: Path) -> None:
    """Raise ``ConfigError`` before anything is done where the campaign's files are gone."""
    config = config_of(state, run_dir)
    assert state.run is not None
    await in_thread(require_again, config, Path(state.run.folder), run_dir)


async def _observed(recorder: Recorder, run_dir: Path) -> Ending:
    async with observing(recorder, run_dir) as job:
        ending = await _job(recorder, run_dir)
        job.ended(ending.outcome, ending.reason)
    return ending


async def _job(recorder: Recorder, run_dir: Path) -> Ending:
    state = recorder.state
    config = config_of(state, run_dir)
    number = 1 if state.job is None else state.job.job + 1
    limits = config.job.chain if config.job else ChainConfig()
    stop = Stop(await of_this_process(config.job.margin if config.job else MARGIN))
    chain = Chain(recorder, run_dir, limits, stop.clock)
    await chain.claim()
    accounts = Accounts(config, recorder, stop)
    await accounts.settle_left(run_dir)
    await recorder.record(
        JobStarted(
            job=number,
            host=socket.gethostname(),
            pid=os.getpid(),
            python=platform.python_version(),
            numpy=version("numpy"),
            slurm=stop.clock.job,
            traceparent=traceparent(),
        ),
        *await accounts.own(),
    )
    assert state.run is not None
    place = Place(Path(state.run.folder), run_dir, config.seed, config.executors)
    async with attending(stop, chain, recorder, config.stop_grace) as attention:
        try:
            opening = open_executors(config.executors, run_dir, place.folder, accounts)
            async with _served(config, place, stop) as server, opening as executors:
                parts = (config, place, executors, recorder, stop)
                ending = await _run(assemble(*parts, server=server))
        except (ExecutorError, CampaignFailedError) as error:
            ending = Ending(JobOutcome.FAILED, str(error))
        except StoppedError:  # before the model's server was up
            ending = stopped(stop, state)
        except Exception as error:
            await _say_why(recorder, number, cause(error), accounts)
            await chain.withdraw("the job before it failed")
            raise
        await attention.rest()
        ending = await chain.settle(ending, told=attention.told)
        ended = JobEnded(job=number, outcome=ending.outcome.value, reason=ending.reason)
        await recorder.record(*accounts.own_ended(), ended)
    return ending


def _served(
    config: CampaignConfig, place: Place, stop: Stop
) -> AbstractAsyncContextManager[ModelServer | None]:
    """The model server of the run, if it starts one itself."""
    if not isinstance(config.agent, OpenAIAgent) or config.agent.serve is None:
        return contextlib.nullcontext()
    from campaign.agents.serving import serving

    return serving(config.agent, place.folder, place.run_dir, stop)


async def _run(campaign: Campaign) -> Ending:
    try:
        return await run_campaign(campaign)
    finally:
        await campaign.asking.close()


async def _say_why(recorder: Recorder, job: int, error: BaseException, accounts: Accounts) -> None:
    """Let the ledger say that this job ended by an exception, if it can still be written."""
    reason = text(f"{type(error).__name__}: {error}")
    with contextlib.suppress(LedgerError):
        ended = JobEnded(job=job, outcome=JobOutcome.FAILED.value, reason=reason)
        await recorder.record(*accounts.own_ended(), ended)


def _over(state: CampaignState) -> Ending | None:
    """The end of a campaign that has one already; a failed or stopped one is gone on with."""
    ended = state.job_ended
    if ended is None or ended.outcome != JobOutcome.DONE:
        return None
    return Ending(JobOutcome.DONE, ended.reason)


def assemble(
    config: CampaignConfig,
    place: Place,
    executors: Runs,
    recorder: Recorder,
    stop: Stop,
    agent: Agent | None = None,
    *,
    server: ModelServer | None = None,
) -> Campaign:
    """Put the parts of a driver together, with the configured agent unless one is given.

    ``server`` is the model server that this job started, if it did.

    ``ConfigError`` when the agent's file, or a check the rules use, cannot be used any more.
    """
    space: Space = config.parameters
    run = recorder.state.run
    assert run is not None
    suite = compiled(run.rules, run.config, place.folder)
    layers = Layers(bounds(space), suite)
    fits = None if observes(config) else layers.fits()
    surrogate = SurrogateAgent(space, goal(config.objective), config.seed, fits)
    asked = agent or agent_of(config, place, suite, server) or surrogate
    purse = Purse(config.budgets, recorder)
    calling = None
    if isinstance(config.agent, Calls):
        loading = config.agent.loading if isinstance(config.agent, OpenAIAgent) else 0.0
        calling = Calling(asked, config.agent, purse, recorder, stop, loading)
    judge = None
    if suite is not None:
        from campaign.voting import voting

        judge = voting(config, place, suite, purse, recorder, stop)
    asking = Asking(config, layers, asked, surrogate, recorder, stop, purse, calling, judge)
    tasks = TaskRunner(config, place, executors, recorder, stop)
    simulation = stand_in(config) if recorder.state.dry_run else config.simulation
    steered = steering(config, place.folder, suite, asked)
    return Campaign(asking, Verifiers(config, tasks, stop), tasks, simulation, steered)
