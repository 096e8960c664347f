"""A Python function that proposes, in the driver's own process."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.agentconfig import PythonAgent as Settings
from campaign.agents.base import AgentError, Own
from campaign.agents.document import as_line, document, read_value
from campaign.agents.program import one_line
from campaign.agents.prompt import Brief, brief
from campaign.fields import duration_text
from campaign.model import Answer, Ask
from executors.background import in_thread
from executors.values import describe, resolve

if TYPE_CHECKING:
    from campaign.config import CampaignConfig
    from campaign.render import Place
    from checks.suite import Suite


class PythonAgent(Own):
    """Calls a function with the ask; what it returns, or what that comes to, is the answer.

    It is called in a thread, one call at a time: a call that does not return in time is left
    behind, and none follows before it has returned. What it awaits runs in the driver's own loop.
    """

    _settings: Settings

    def __init__(self, settings: Settings, brief: Brief, folder: Path) -> None:
        self._settings, self._brief, self._folder = settings, brief, folder
        self._function: Callable[..., object] | None = None
        self._calling: asyncio.Future[_Outcome] | None = None

    async def propose(self, ask: Ask) -> Answer:
        """One answer of the function. Raises :class:`AgentError`."""
        request = as_line(document(self._brief, ask))
        most = self._settings.max_bytes
        answer = read_value(self._brief.space, await self._in_time(json.loads(request)))
        if len((answer.response or "").encode(errors="replace")) > most:
            raise AgentError(f"an answer of more than {most} bytes; max_bytes allows no more")
        return replace(answer, request=hashlib.sha256(request).hexdigest())

    async def close(self) -> None:
        """Wait no longer for a call that was left behind."""
        if self._calling is not None:
            self._calling.cancel()
            await asyncio.gather(self._calling, return_exceptions=True)
        with contextlib.suppress(ValueError):
            sys.path.remove(str(self._folder))

    async def _in_time(self, asked: object) -> object:
        timeout = self._settings.timeout
        try:
            async with asyncio.timeout(timeout) as limit:
                return await self._value(asked)
        except AgentError:
            raise
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            raise AgentError(_raised(error)) from error
        except (Exception, SystemExit) as error:
            if not limit.expired():
                raise AgentError(_raised(error)) from error
            longer = "give it more time by timeout, or less to do"
            why = f"no answer within {duration_text(timeout)}; {longer}"
            raise AgentError(why) from None

    async def _value(self, asked: object) -> object:
        if self._calling is not None:
            await asyncio.wait({self._calling})
        self._calling = asyncio.ensure_future(in_thread(self._call, asked))
        outcome = await asyncio.shield(self._calling)
        if outcome.error is not None:
            raise outcome.error
        found = outcome.value
        return await found if inspect.isawaitable(found) else found

    def _call(self, asked: object) -> _Outcome:
        """Call the function, in a thread; nothing it raises may end that thread or the driver."""
        try:
            function = self._function = self._function or self._found()
            return _Outcome(value=function(asked))
        except AgentError as error:
            return _Outcome(error=error)
        except BaseException as error:
            return _Outcome(error=AgentError(_raised(error)))

    def _found(self) -> Callable[..., object]:
        from executors.sites import importable  # Parsl, which only a run pays for

        name = self._settings.function
        try:
            with importable(self._folder):
                function = resolve(name)
        except BaseException as error:
            raise AgentError(f"{name}: {one_line(describe(error))}", retryable=False) from error
        # For what it imports when it is called; last, so that it hides no module of ours.
        sys.path.append(str(self._folder))
        return function


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a call came to."""

    value: object = None
    error: AgentError | None = None


def _raised(error: BaseException) -> str:
    return f"the function raised {one_line(describe(error))}"


def agent(
    settings: Settings, config: CampaignConfig, place: Place, suite: Suite | None
) -> PythonAgent:
    """The agent of a campaign."""
    return PythonAgent(settings, brief(config, suite), place.folder)
