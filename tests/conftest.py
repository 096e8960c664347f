"""What a test may need of the machine, and how Hypothesis runs on a busy one."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import browser

HERE = Path(__file__).parent
CI = os.environ.get("CI", "").lower() in {"true", "1"}

# A deadline per example fails on a machine that is busy with something else.
settings.register_profile("simgate", deadline=None, derandomize=CI)
settings.load_profile("simgate")


def _missing(marker: str) -> str | None:
    """What a test with this marker lacks here."""
    if marker == "lammps" and shutil.which("lmp") is None:
        return "LAMMPS (lmp)"
    if marker == "mpi":
        if importlib.util.find_spec("mpi4py") is None:
            return "mpi4py, of the extra mpi"
        if not Path(sys.executable).with_name("mpiexec").exists():
            return "the mpiexec of the extra mpi"
    if marker == "browser" and browser.program() is None:
        return "a browser (chromium-headless-shell)"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs, real clusters and what a reader types take their time: all are slow."""
    for item in items:
        if item.path.relative_to(HERE).parts[0] in ("docs", "integration", "slurm"):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met; under CI, fail it."""
    for marker in ("browser", "lammps", "mpi"):
        if item.get_closest_marker(marker) and (missing := _missing(marker)):
            if CI:
                pytest.fail(f"CI lacks {missing}", pytrace=False)
            pytest.skip(f"needs {missing}")
