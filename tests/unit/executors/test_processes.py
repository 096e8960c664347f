"""Processes that are found by a mark in their environment."""

from __future__ import annotations

import os
import signal
import subprocess

from executors.processes import kill_marked


def test_what_bears_the_mark_is_killed_however_lately_it_was_started() -> None:
    for number in range(20):
        mark = f"MARKED_BY={os.getpid()}-{number}"
        name, _, value = mark.partition("=")
        with subprocess.Popen(["sleep", "600"], env={**os.environ, name: value}) as process:
            assert kill_marked(mark.encode())
            assert process.wait() == -signal.SIGKILL


def test_what_does_not_bear_the_mark_is_left_alone_and_not_waited_for() -> None:
    for environment in ({}, dict(os.environ)):
        with subprocess.Popen(["/bin/sleep", "600"], env=environment) as process:
            assert kill_marked(b"MARKED_BY=nobody")
            assert process.poll() is None
            process.kill()
