"""Whether a driver lives is seen in its lock, on another machine by its heartbeat alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from campaign.lock import BEAT, LEASE, NAME, Holder, WriterLock
from campaign.pulse import Pulse, Sign


@dataclass
class Clock:
    """Stands still until it is set."""

    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


def elsewhere(directory: Path, beat: float) -> None:
    """A lock of a driver on another host, last heard of at ``beat`` by the file's clock."""
    holder = asdict(Holder("another-host", 7, "1", "boot"))
    (directory / NAME).write_text(json.dumps(holder))
    os.utime(directory / NAME, (beat, beat))


def test_a_driver_on_this_machine_lives_until_its_lock_is_given_back(tmp_path: Path) -> None:
    pulse = Pulse(tmp_path)
    assert pulse.look() is Sign.ABSENT
    with WriterLock(tmp_path):
        assert pulse.look() is Sign.ALIVE
    assert pulse.look() is Sign.ABSENT


def test_a_process_that_has_ended_on_this_machine_is_dead_at_once(tmp_path: Path) -> None:
    code = (
        "import sys, os, pathlib\n"
        "from campaign.lock import WriterLock\n"
        "WriterLock(pathlib.Path(sys.argv[1])).acquire()\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert Pulse(tmp_path).look() is Sign.DEAD


def test_a_driver_elsewhere_is_silent_after_a_lease_without_a_beat(tmp_path: Path) -> None:
    clock = Clock()
    pulse = Pulse(tmp_path, clock, wall=lambda: 500.0)
    elsewhere(tmp_path, 495.0)
    assert pulse.look() is Sign.ALIVE
    assert pulse.silence == 5.0
    clock.time += LEASE - 6
    assert pulse.look() is Sign.ALIVE
    clock.time += 2
    assert pulse.look() is Sign.SILENT
    elsewhere(tmp_path, 495.0 + LEASE)
    assert pulse.look() is Sign.ALIVE
    assert pulse.silence == 0.0


def test_a_clock_that_is_wrong_counts_only_until_the_next_beat(tmp_path: Path) -> None:
    clock = Clock()
    pulse = Pulse(tmp_path, clock, wall=lambda: 5000.0)
    elsewhere(tmp_path, 100.0)
    assert pulse.look() is Sign.SILENT
    clock.time += BEAT
    elsewhere(tmp_path, 100.0 + BEAT)
    assert pulse.look() is Sign.ALIVE


def test_a_look_writes_nothing(tmp_path: Path) -> None:
    elsewhere(tmp_path, 100.0)
    before = tmp_path.stat().st_mtime_ns
    Pulse(tmp_path).look()
    assert [one.name for one in tmp_path.iterdir()] == [NAME]
    assert tmp_path.stat().st_mtime_ns == before
