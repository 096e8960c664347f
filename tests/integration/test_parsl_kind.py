"""Executors of kind parsl: a function of the campaign's own gives Parsl's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from executors.base import TaskStatus
from executors.config import ParslConfig
from executors.parsl import ExecutorError
from opened import Opened

pytestmark = pytest.mark.slow

SITE = """
from parsl import Config
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor
from parsl.providers import LocalProvider


def threads():
    return Config(executors=[ThreadPoolExecutor(label="mine", max_threads=2)])


def pool():
    provider = LocalProvider(init_blocks=1, max_blocks=1)
    return Config(executors=[HighThroughputExecutor(
        label="mine", provider=provider, address="127.0.0.1", max_workers_per_node=2,
        cores_per_worker=0.01,
    )])


def several():
    return Config(executors=[ThreadPoolExecutor(label="a"), ThreadPoolExecutor(label="b")])


def none():
    return "a cluster"
"""


def opened(folder: Path, function: str) -> Opened:
    (folder / "campaign").mkdir()
    (folder / "campaign" / "site_of_mine.py").write_text(SITE)
    config = ParslConfig(kind="parsl", function=f"site_of_mine:{function}", workers=2)
    return Opened({"mine": config}, folder / "run", modules=folder / "campaign")


@pytest.mark.parametrize("function", ["threads", "pool"])
def test_tasks_run_where_the_function_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no virtual environment is activated
    running = opened(tmp_path, function)
    try:
        results = [running.begin(running.task("double", "mine")) for _ in range(4)]
        assert [one.result(60).value for one in results] == [{"y": 1.0}] * 4
        failed = running.run(running.task("raises_keyword_only", "mine"))
        assert failed.status is TaskStatus.ERROR
    finally:
        running.close()


@pytest.mark.parametrize(("function", "found"), [("several", "Config"), ("none", "'a cluster'")])
def test_what_is_no_configuration_of_one_executor_is_refused(
    tmp_path: Path, function: str, found: str
) -> None:
    with pytest.raises(ExecutorError, match=r"give a parsl\.Config with one executor") as error:
        opened(tmp_path, function)
    assert found in str(error.value)
