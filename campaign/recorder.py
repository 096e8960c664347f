"""The one way the loop changes anything: an event on disk, then in the state, then on screen."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

from campaign.events import Entry, Event
from campaign.ledger import Ledger
from campaign.state import CampaignState

_log = logging.getLogger(__name__)
Listener: TypeAlias = Callable[[Entry, CampaignState], None]


class Recorder:
    """Appends events in groups: what arrives while a write is on its way shares the next one.

    A listener that fails is not called again; nobody watching is no reason to end a campaign.
    """

    def __init__(
        self, ledger: Ledger, state: CampaignState, listeners: Sequence[Listener] = ()
    ) -> None:
        self.state = state
        self._ledger = ledger
        self._listeners = list(listeners)
        self._waiting: list[tuple[tuple[Event, ...], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    def listen(self, listener: Listener) -> None:
        """Have one more listener from the next event on."""
        self._listeners.append(listener)

    async def record(self, *events: Event) -> None:
        """Return when the events are durable and in the state.

        Raises :class:`campaign.ledger.LedgerError` when they cannot be written. A cancelled
        caller's events are written all the same: they state what has happened.
        """
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.add_done_callback(_seen)  # its caller may have been cancelled
        self._waiting.append((events, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await asyncio.shield(written)

    async def close(self) -> None:
        """Return when nothing is left to write."""
        if self._writer is not None:
            await self._writer

    async def _write(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            events = [event for some, _ in group for event in some]
            try:
                entries = await asyncio.to_thread(self._ledger.append, *events)
                self._publish(entries)
            except Exception as error:  # handed to the callers, whose events these are
                for _, written in group:
                    if not written.cancelled():
                        written.set_exception(error)
            else:
                for _, written in group:
                    if not written.cancelled():
                        written.set_result(None)

    def _publish(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.state.apply(entry)
            for listener in tuple(self._listeners):
                try:
                    listener(entry, self.state)
                except SystemExit:  # by which a closed pipe is left: nobody reads any more
                    self._listeners.remove(listener)
                except Exception as error:  # of a view, which no campaign ends with
                    self._listeners.remove(listener)
                    _log.warning("a view failed: %s: %s", type(error).__name__, error)


def _seen(written: asyncio.Future[None]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        written.exception()
