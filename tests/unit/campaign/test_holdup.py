"""What of the user's own holds up the driver is told, and two signals end it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading

from campaign.holdup import HoldUp, place

ATTENDED = """
import asyncio, os, signal
from campaign.holdup import HoldUp

async def main():
    holdup = HoldUp(deaf=0.0)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print, "heard")
    signal.signal(signal.SIGTERM, holdup.arrived)
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGTERM)

asyncio.run(main())
"""


def test_a_loop_that_does_not_turn_is_told_with_the_place_that_holds_it_up() -> None:
    told: list[str] = []
    said = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        said.set()

    async def busy() -> None:
        with HoldUp(patience=0.01, tell=tell).watching():
            assert said.wait(60)  # blocks the loop on purpose

    asyncio.run(busy())
    (text,) = told
    assert "has held up the run for 0.01 s" in text
    assert "threading.py, line" in text


def test_a_loop_that_turns_is_not_told() -> None:
    told: list[str] = []

    async def turns() -> None:
        with HoldUp(patience=0.01, tell=told.append).watching():
            for _ in range(100):
                await asyncio.sleep(0)

    asyncio.run(turns())
    assert told == []


def test_only_a_signal_after_one_that_was_left_unheard_ends_the_driver() -> None:
    left: list[str] = []
    holdup = HoldUp(deaf=0.0, leave=left.append)
    holdup.arrived(signal.SIGTERM, None)
    holdup.heard()
    holdup.arrived(signal.SIGTERM, None)
    assert left == []
    holdup.arrived(signal.SIGINT, None)
    assert left == ["SIGINT again, while something holds up the driver; ended at once"]


def test_signals_in_quick_succession_are_left_to_the_loop() -> None:
    left: list[str] = []
    holdup = HoldUp(deaf=60.0, leave=left.append)
    for _ in range(5):
        holdup.arrived(signal.SIGTERM, None)
    assert left == []


def test_it_is_ended_as_a_run_that_can_be_gone_on_with() -> None:
    found = subprocess.run([sys.executable, "-c", ATTENDED], capture_output=True, check=False)
    assert found.returncode == 75
    assert found.stderr.startswith(b"simgate: SIGTERM again, while <string>, line ")
    assert found.stdout == b""


def test_a_place_is_a_file_a_line_and_a_function() -> None:
    said = place(sys._getframe())
    assert said.startswith(f"{__file__}, line ")
    assert said.endswith("in test_a_place_is_a_file_a_line_and_a_function")
