"""A program that proposes: JSON on its standard input, JSON on its standard output.

It runs in the campaign folder, where the driver runs, and ends with the driver.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from campaign.agentconfig import CommandAgent as Settings
from campaign.agents.base import Own
from campaign.agents.document import as_line, document, read_text
from campaign.agents.program import Program, Terms
from campaign.agents.prompt import Brief, brief
from campaign.model import Answer, Ask
from campaign.template import render
from executors.background import in_thread

if TYPE_CHECKING:
    from campaign.config import CampaignConfig
    from campaign.render import Place
    from checks.suite import Suite


class CommandAgent(Own):
    """Asks a program, one ask at a time: a new process for each, or one that goes on."""

    def __init__(self, settings: Settings, brief: Brief, place: Place) -> None:
        """Raises ``TemplateError`` for a placeholder that nobody knows."""
        values = {
            "campaign_dir": str(place.folder),
            "run_dir": str(place.run_dir),
            "python": sys.executable,
        }
        self._settings, self._brief = settings, brief
        self._program = Program(
            Terms(
                argv=tuple(render(word, values) for word in settings.command),
                folder=place.folder,
                env=settings.env,
                timeout=settings.timeout,
                max_bytes=settings.max_bytes,
            )
        )
        lines = settings.mode == "lines"
        self._answer: Callable[[bytes], bytes] = (
            self._program.line if lines else self._program.whole
        )

    async def propose(self, ask: Ask) -> Answer:
        """One answer of the program. Raises :class:`campaign.agents.base.AgentError`."""
        request = as_line(document(self._brief, ask))
        said = await self._said(request)
        sent = hashlib.sha256(request).hexdigest()
        try:
            response = said.decode()
        except UnicodeDecodeError:
            why = "the answer is no text in UTF-8; give one JSON object in UTF-8"
            return Answer(stage="schema", reason=why, request=sent)
        return replace(read_text(self._brief.space, response), request=sent)

    async def close(self) -> None:
        await in_thread(self._program.close)

    async def _said(self, request: bytes) -> bytes:
        """What the program answers; when this is cancelled the program is ended first."""
        answering = asyncio.ensure_future(in_thread(self._answer, request))
        try:
            return await asyncio.shield(answering)
        except asyncio.CancelledError:
            self._program.interrupt()
            await asyncio.gather(answering, return_exceptions=True)
            self._program.listen()
            raise


def agent(
    settings: Settings, config: CampaignConfig, place: Place, suite: Suite | None
) -> CommandAgent:
    """The agent of a campaign."""
    return CommandAgent(settings, brief(config, suite), place)
