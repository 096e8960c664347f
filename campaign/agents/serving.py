"""A model server that a job starts for itself: ready before the first ask, gone with the job.

It runs where the driver does, in the campaign folder, and writes to ``server.log`` in the run
directory. Whatever ends the driver ends it too, and all that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from campaign.agentconfig import OpenAIAgent, Serve
from campaign.agents.base import AgentError
from campaign.agents.chat import ChatClient
from campaign.model import CampaignFailedError
from campaign.stop import Stop, StoppedError
from campaign.template import render
from executors import processes
from executors.lifeline import held

LOG = "server.log"
GRACE = 10.0
"""Seconds between asking the server to end (SIGTERM) and ending it (SIGKILL)."""
_LOOK = 0.1  # seconds between two looks at whether it is ready
_LEAVING = 5.0  # seconds in which a server of a job that was killed is gone
_TAIL = 4096  # bytes of its log that are looked through for its last words
_LINES = 3

_log = logging.getLogger(__name__)


class ServerError(CampaignFailedError):
    """The server of a run did not start; the message ends with the last words of its log."""


@contextlib.asynccontextmanager
async def serving(
    agent: OpenAIAgent, folder: Path, run_dir: Path, stop: Stop | None = None, grace: float = GRACE
) -> AsyncIterator[ModelServer | None]:
    """Have the agent's server, if it names one to start, for as long as the block lasts.

    ``folder`` and ``run_dir`` are absolute. Raises :class:`ServerError` when it ends before it is
    ready, is not ready in time, or when something else answers in its place already, and
    ``StoppedError`` when the run is told to stop before it is ready. One that ends inside the
    block is started again, as often as the agent's settings have it.
    """
    if agent.serve is None:
        yield None
        return
    client = ChatClient(agent, folder, run_dir)
    server = ModelServer(agent.serve, client, run_dir / LOG, stop or Stop(), grace)
    await server.begin()
    keeper = asyncio.ensure_future(server.keep())
    try:
        yield server
    finally:
        keeper.cancel()
        await asyncio.wait({keeper})
        await server.end()


@dataclass(slots=True)
class ModelServer:
    """The process of a job's model server."""

    serve: Serve
    client: ChatClient
    log: Path
    stop: Stop
    grace: float
    _process: asyncio.subprocess.Process | None = None
    _ended: asyncio.Future[int] | None = None
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _begins: int = 0  # where this start's part of the log does, in bytes

    async def there(self) -> None:
        """Wait while it is being started again; where that failed, the call itself will say so."""
        await self._settled.wait()

    async def begin(self) -> None:
        """Start it and wait until it is ready; nothing of it is left where that fails."""
        try:
            await self.make_way()
            self._process = await self.start()
        except (AgentError, OSError, ValueError) as error:
            raise ServerError(f"server: cannot be started: {error}") from None
        self._ended = asyncio.ensure_future(self._process.wait())
        try:
            await self.until_ready(self._ended)
        except BaseException:
            await self.end()
            raise
        self._settled.set()

    async def keep(self) -> None:
        """Start it again whenever it ends, until that was done too often."""
        try:
            for number in range(1, self.serve.restarts + 1):
                await self._until_ended(f"it is started again ({number} of {self.serve.restarts})")
                try:
                    await self.begin()
                except ServerError as error:
                    _log.warning("the agent's %s", error)
                except StoppedError:
                    return
            await self._until_ended("it is not started again")
        finally:
            self._settled.set()

    async def _until_ended(self, then: str) -> None:
        """Wait for its end while it is needed, and say so, since no call can."""
        process, ended = self._process, self._ended
        assert process is not None
        assert ended is not None
        if self._settled.is_set():
            await asyncio.wait({ended})
            self._settled.clear()
            processes.kill_group(process.pid)
            how = _how(ended.result())
            _log.warning("the agent's server: %s; %s; see %s", how, then, self.log)

    async def end(self) -> None:
        """Ask everything below the lifeline to end; it ends what is left after the grace."""
        process, ended = self._process, self._ended
        if process is None or ended is None:
            return
        try:
            if not ended.done() and processes.signal_descendants(process.pid, signal.SIGTERM):
                await asyncio.wait({ended}, timeout=self.grace)
        finally:
            if not ended.done():
                process.terminate()
                await asyncio.wait({ended}, timeout=_LEAVING)
            processes.kill_group(process.pid)  # the lifeline itself may have been killed

    async def make_way(self) -> None:
        """Nothing answers, and no socket lies, where the server is to listen.

        What a killed job left behind is given the time to go.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _LEAVING
        while await self.client.status(self.serve.ready):
            if loop.time() > deadline:
                raise ServerError(
                    f"server: {self.client.where} is taken by another process; end that one, "
                    "name another address, or leave out `serve` to use it"
                )
            await asyncio.sleep(_LOOK)
        path = self.client.socket
        with contextlib.suppress(FileNotFoundError):
            if path is not None and stat.S_ISSOCK(path.stat().st_mode):
                path.unlink()

    async def start(self) -> asyncio.subprocess.Process:
        """Raises ``OSError``, and ``ValueError`` for a placeholder nobody knows."""
        values = {
            "campaign_dir": str(self.client.folder),
            "run_dir": str(self.client.run_dir),
            "python": sys.executable,
        }
        argv = [render(word, values) for word in self.serve.command]
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._begins = os.fstat(log).st_size
            return await asyncio.create_subprocess_exec(
                *held(argv),
                cwd=self.client.folder,
                env={**os.environ, **self.serve.env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    async def until_ready(self, ended: asyncio.Future[int]) -> None:
        """Look again and again; raises :class:`ServerError` once there is no hope."""
        loop = asyncio.get_running_loop()
        deadline, status = loop.time() + self.serve.timeout, 0
        while status != 200:
            self.stop.check()
            if ended.done():
                raise ServerError(
                    f"server: {_how(ended.result())} before it was ready{self._last_words}"
                )
            if loop.time() > deadline:
                said = f"answers {status}" if status else "does not answer"
                raise ServerError(
                    f"server: {self.serve.ready} {said} after {self.serve.timeout:g} s; see "
                    f"`serve.timeout` and `serve.ready`{self._last_words}"
                )
            await asyncio.wait({ended}, timeout=_LOOK)
            status = await self.client.status(self.serve.ready)

    @property
    def _last_words(self) -> str:
        """The last words of its log on one line, without the key."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(self._begins, log.seek(0, os.SEEK_END) - _TAIL))
            text = self.client.without_key(log.read().decode(errors="replace"))
            lines = [re.sub(r"[^ -~]+", " ", line).strip() for line in text.splitlines()]
            if last := [line[:200] for line in lines if line][-_LINES:]:
                return f"; {LOG} ends: {' | '.join(last)}"
        return f"; {LOG} is empty"


def _how(code: int) -> str:
    return f"ended with exit code {code}" if code < 128 else f"ended by signal {code - 128}"
