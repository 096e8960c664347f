"""The head start guesses what a config names, and harms nobody when it guesses wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.configfile import load_config
from campaign.foresight import head_start
from campaign.preflight import inspect
from executors.probe import Probe

CONFIG = """
version: 1
name: guess
parameters: {x: {type: float, min: 0, max: 1}}
objective: {name: y, direction: minimize}
rounds: 1
batch_size: 1
agent: surrogate
simulation: {kind: python, function: "tasks:simulate", walltime: 1m}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "campaign.yaml").write_text(CONFIG)
    (tmp_path / "tasks.py").write_text("def simulate(candidate):\n    return {'y': 1.0}\n")
    return tmp_path


def test_the_functions_of_the_file_are_imported_ahead(folder: Path) -> None:
    with head_start(folder) as begun:
        assert begun.names == ("tasks:simulate",)
        assert inspect(load_config(folder), begun).problems == ()
        assert begun.reasons() == {}  # it was asked: nothing is left to wait for


def test_an_override_that_names_another_function_is_looked_at_all_the_same(folder: Path) -> None:
    with head_start(folder) as begun:
        loaded = load_config(folder, ["simulation.function=tasks:missing"])
        (problem,) = inspect(loaded, begun).problems
    assert "has no attribute 'missing'" in problem.message


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"a: [", b"- 1", b"x: &a [*a]"])
def test_a_file_that_cannot_be_read_starts_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "campaign.yaml").write_bytes(content)
    with head_start(tmp_path) as begun:
        assert begun.names == ()
    with head_start(tmp_path / "nowhere") as begun:
        assert begun.names == ()


def test_a_path_that_cannot_be_looked_at_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with head_start(tmp_path / "file" / ("x" * 300)) as begun:
        assert begun.names == ()


def test_a_probe_nobody_asks_is_ended(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import signal\nsignal.pause()\n")
    with Probe(["slow:f"], str(tmp_path)) as probe:
        process = probe._process
        assert process is not None
        assert process.poll() is None
    assert process.poll() is not None


def test_a_module_that_takes_too_long_is_named(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import signal\nsignal.pause()\n")
    with Probe(["slow:f"], str(tmp_path)) as probe:
        assert probe.reasons(0.2) == {"slow:f": "importing took more than 0.2 s"}
