"""A campaign run and gone on with from Python."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from campaign import (
    ConfigError,
    JobOutcome,
    LedgerError,
    RunDirError,
    candidates,
    fold,
    load_config,
    observed,
    read,
    resume,
    run,
)
from folders import folder

INTERRUPTS = """
import os
import pathlib
import signal

TOLD = pathlib.Path(__file__).with_name("told")


def propose(ask):
    if not TOLD.exists():
        TOLD.touch()
        os.kill(os.getpid(), signal.SIGINT)
    return {"candidates": [{"x": 0.1, "y": 0.2}, {"x": 0.6, "y": 0.4}]}
"""


def test_a_run_ends_as_its_ledger_says_and_its_end_is_told_again(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path), ["rounds=1"])
    ending = asyncio.run(run(loaded, tmp_path / "run"))
    assert ending.outcome is JobOutcome.DONE
    ended = fold(read(tmp_path / "run")).job_ended
    assert ended is not None
    assert (ended.outcome, ended.reason) == (ending.outcome, ending.reason)
    before = read(tmp_path / "run")
    assert asyncio.run(resume(tmp_path / "run")) == ending
    assert read(tmp_path / "run") == before


def test_rows_have_the_same_columns_and_one_candidate_each(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path), ["rounds=1"])
    asyncio.run(run(loaded, tmp_path / "run"))
    rows = observed(tmp_path / "run")
    assert len({row["candidate"] for row in rows}) == len(rows) == loaded.config.batch_size
    assert len({tuple(row) for row in rows}) == 1
    assert len(candidates(tmp_path / "run")) >= len(rows)


def test_what_cannot_run_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path), ["simulation.function=model:nothing"])
    with pytest.raises(ConfigError, match="nothing"):
        asyncio.run(run(loaded, tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_directory_that_holds_a_run_gets_no_other(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path), ["rounds=1"])
    asyncio.run(run(loaded, tmp_path / "run"))
    with pytest.raises(RunDirError, match="already holds a run"):
        asyncio.run(run(loaded, tmp_path / "run"))


def test_a_directory_without_a_run_is_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="holds no run"):
        asyncio.run(resume(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_a_signal_stops_a_run_that_is_then_gone_on_with(tmp_path: Path) -> None:
    agent = {"kind": "python", "function": "model:propose"}
    place = folder(tmp_path / "bowl", agent=agent, rounds=1)
    with (place / "model.py").open("a") as model:
        model.write(INTERRUPTS)
    ending = asyncio.run(run(load_config(place), tmp_path / "run"))
    assert (ending.outcome, ending.reason) == (JobOutcome.STOPPED, "SIGINT received")
    assert asyncio.run(resume(tmp_path / "run")).outcome is JobOutcome.DONE


def test_a_thread_that_gets_no_signals_runs_nothing(tmp_path: Path) -> None:
    loaded = load_config(folder(tmp_path))
    said: list[str] = []

    def elsewhere() -> None:
        with pytest.raises(RuntimeError, match="main thread") as refused:
            asyncio.run(run(loaded, tmp_path / "run"))
        said.append(str(refused.value))

    thread = threading.Thread(target=elsewhere, name="worker")
    thread.start()
    thread.join()
    assert said
    assert "'worker'" in said[0]
