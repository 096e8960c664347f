"""The private Slurm that the tests of this folder share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from minicluster import ACCOUNTING_PROGRAMS, Minicluster, minicluster, missing

CI = os.environ.get("CI", "").lower() in {"true", "1"}


def _require(lacking: str | None, what: str) -> None:
    if lacking is None:
        return
    if CI:
        pytest.fail(f"CI lacks {what}: {lacking}", pytrace=False)
    pytest.skip(f"needs {what}, and there is no {lacking}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met; under CI, fail it."""
    if item.get_closest_marker("slurm"):
        _require(missing(), "Slurm")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Minicluster]:
    """Four nodes of four CPUs, shared by the session: leave them as they were."""
    _require(missing(), "Slurm")
    with minicluster() as cluster:
        yield cluster


@pytest.fixture
def accounting() -> None:
    _require(missing(ACCOUNTING_PROGRAMS), "Slurm's accounting")
