"""Campaign folders that run as they stand, and the command line on them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner, Result

from campaign.cli import main
from square import square

SLOW = """
import time

def stable(candidate):
    time.sleep(60)

def bowl(candidate):
    return {"loss": 1.0}
"""
"""A model whose verifier takes its time."""

MODEL = """
def bowl(candidate):
    return {"loss": (candidate["x"] - 0.3) ** 2 + (candidate["y"] - 0.6) ** 2}


def stable(candidate):
    if candidate["x"] > 0.7:
        return {"verdict": "reject", "reason": f"x: {candidate['x']}; at most 0.7 is stable"}
    return {"verdict": "pass"}
"""


def plain(**changes: Any) -> dict[str, Any]:
    """A campaign of two rounds on threads; ``changes`` replace top-level keys."""
    config: dict[str, Any] = {
        "version": 1,
        "name": "bowl",
        "parameters": square(),
        "objective": {"name": "loss", "direction": "minimize"},
        "rounds": 2,
        "batch_size": 2,
        "seed": 3,
        "agent": {"kind": "surrogate"},
        "verifiers": [
            {"name": "stable", "kind": "python", "function": "model:stable", "walltime": "10s"}
        ],
        "simulation": {"kind": "python", "function": "model:bowl", "walltime": "10s"},
        "executors": {"default": {"kind": "threads", "workers": 2}},
    }
    return config | changes


def folder(directory: Path, **changes: Any) -> Path:
    """Write the campaign and its module."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "campaign.yaml").write_text(yaml.safe_dump(plain(**changes), sort_keys=False))
    (directory / "model.py").write_text(MODEL)
    return directory


def simgate(*words: object) -> Result:
    """The command in this process; what it raised is no part of a result that a user sees."""
    return CliRunner().invoke(main, [str(word) for word in words])


def argv(*words: object) -> list[str]:
    """The command line of the command, with this Python."""
    return [sys.executable, "-c", "from campaign.cli import main; main()", *map(str, words)]


def process(*words: object, timeout: float = 120, **how: Any) -> subprocess.CompletedProcess[str]:
    """The command as a process of its own."""
    return subprocess.run(
        argv(*words), capture_output=True, text=True, check=False, timeout=timeout, **how
    )


def interrupted(*words: object, by: signal.Signals) -> tuple[int, str]:
    """The command as a process that gets a signal once its agent is asked.

    Its exit code, and what it said from then on.
    """
    with subprocess.Popen(argv(*words), stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        for line in driver.stdout:
            if "asks for" in line:
                break
        driver.send_signal(by)
        said = driver.stdout.read()
        return driver.wait(30), said
