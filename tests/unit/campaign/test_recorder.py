"""The recorder groups what happens at once, and hides nothing from whoever waits."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from campaign.events import Entry, RoundEnded, RoundStarted, RunCreated
from campaign.ledger import Ledger, LedgerError, read
from campaign.recorder import Recorder
from campaign.state import CampaignState

CREATED = RunCreated(version=1, simgate="0.1.0", name="n", mode="campaign", folder="/f", config={})


class Counting(Ledger):
    """A ledger that remembers how many events each append had."""

    groups: list[int]

    def append(self, *events):  # type: ignore[no-untyped-def]
        self.groups.append(len(events))
        return super().append(*events)


def test_what_arrives_during_a_write_shares_the_next_one_in_order(tmp_path: Path) -> None:
    async def main(ledger: Ledger) -> CampaignState:
        recorder = Recorder(ledger, CampaignState())
        await recorder.record(CREATED)
        await asyncio.gather(*(recorder.record(RoundStarted(round=n)) for n in range(1, 41)))
        return recorder.state

    ledger = Counting(tmp_path)
    ledger.groups = []
    with ledger:
        state = asyncio.run(main(ledger))
    assert sum(ledger.groups) == 41
    assert len(ledger.groups) <= 3
    assert list(state.rounds) == list(range(1, 41))
    rounds = [entry.event for entry in read(tmp_path)][1:]
    assert rounds == [RoundStarted(round=n) for n in range(1, 41)]


def test_events_are_on_disk_and_in_the_state_before_the_caller_and_the_listeners_go_on(
    tmp_path: Path,
) -> None:
    seen: list[tuple[int, int, bool]] = []

    def listen(entry: Entry, state: CampaignState) -> None:
        seen.append((entry.n, len(read(tmp_path)), state.run is not None))

    async def main(ledger: Ledger) -> None:
        recorder = Recorder(ledger, CampaignState(), [listen])
        await recorder.record(CREATED, RoundStarted(round=1))
        assert 1 in recorder.state.rounds

    with Ledger(tmp_path) as ledger:
        asyncio.run(main(ledger))
    assert seen == [(1, 2, True), (2, 2, True)]


def test_a_ledger_that_cannot_be_written_reaches_every_caller(tmp_path: Path) -> None:
    async def main(ledger: Ledger) -> list[BaseException | None]:
        recorder = Recorder(ledger, CampaignState())
        await recorder.record(CREATED)
        (tmp_path / "writer.lock").unlink()
        said = [recorder.record(RoundStarted(round=n)) for n in range(3)]
        found = await asyncio.gather(*said, return_exceptions=True)
        await recorder.close()
        assert recorder.state.rounds == {}
        return found

    with Ledger(tmp_path) as ledger:
        found = asyncio.run(main(ledger))
    assert [type(one) for one in found] == [LedgerError] * 3


def test_the_events_of_a_cancelled_caller_are_written_all_the_same(tmp_path: Path) -> None:
    async def main(ledger: Ledger) -> None:
        recorder = Recorder(ledger, CampaignState())
        await recorder.record(CREATED)
        caller = asyncio.create_task(recorder.record(RoundEnded(round=1)))
        await asyncio.sleep(0)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        await recorder.close()

    with Ledger(tmp_path) as ledger:
        asyncio.run(main(ledger))
    assert [entry.event for entry in read(tmp_path)] == [CREATED, RoundEnded(round=1)]


@pytest.mark.parametrize("error", [BrokenPipeError("gone"), SystemExit(1), ZeroDivisionError()])
def test_a_view_that_fails_is_dropped_and_the_campaign_goes_on(
    tmp_path: Path, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []
    heard = []

    def fails(entry: Entry, _: CampaignState) -> None:
        calls.append(entry.n)
        raise error

    async def main(ledger: Ledger) -> None:
        recorder = Recorder(ledger, CampaignState(), [fails, lambda entry, _: heard.append(entry)])
        await recorder.record(CREATED)
        await recorder.record(RoundStarted(round=1))

    with Ledger(tmp_path) as ledger:
        asyncio.run(main(ledger))
    assert calls == [1]
    assert len(heard) == 2
    closed = isinstance(error, SystemExit)  # by which a pipe is left that nobody reads any more
    assert ("a view failed" in caplog.text) == (not closed)
