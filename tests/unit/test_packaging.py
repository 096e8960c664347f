"""What an installed wheel must be: complete, typed, and the thing under test."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PACKAGES = ("campaign", "checks", "executors")
# What runs on a worker, where nothing but Python and the user's own modules is certain.
WORKER_MODULES = (
    "executors.guard",
    "executors.lifeline",
    "executors.mpi_main",
    "executors.runner",
    "executors.task_main",
)
NOT_ON_A_WORKER = {"parsl", "pydantic", "pydantic_core", "opentelemetry", "msgspec", "rich"}

installed = pytest.mark.skipif(
    os.environ.get("SIMGATE_INSTALLED_TEST") != "1", reason="runs on the installed wheel"
)


def imported_by(module: str) -> set[str]:
    """The top-level modules that importing ``module`` in a fresh interpreter loads."""
    code = f"import {module}, sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


@installed
@pytest.mark.parametrize("package", PACKAGES)
def test_the_tests_see_the_installed_package_and_not_the_checkout(package: str) -> None:
    found = importlib.import_module(package).__file__
    assert found is not None
    assert Path(found).is_relative_to(sysconfig.get_path("purelib"))


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_says_that_it_is_typed(package: str) -> None:
    found = importlib.import_module(package).__file__
    assert found is not None
    assert Path(found).with_name("py.typed").is_file()


@installed
def test_the_wheel_brings_the_command_and_nothing_beside_the_three_packages() -> None:
    distribution = importlib.metadata.distribution("simgate")
    commands = distribution.entry_points.select(group="console_scripts", name="simgate")
    assert [command.value for command in commands] == ["campaign.cli:main"]
    tops = {file.parts[0] for file in distribution.files or ()}
    assert {top for top in tops if "." not in top} == set(PACKAGES)


@pytest.mark.parametrize("module", WORKER_MODULES)
def test_what_a_worker_imports_needs_no_driver_library(module: str) -> None:
    assert not imported_by(module) & NOT_ON_A_WORKER


def test_the_gate_needs_pydantic_and_the_opentelemetry_api_only() -> None:
    assert not imported_by("checks") & {"parsl", "click", "rich", "msgspec", "yaml", "numpy"}


def test_only_what_exports_telemetry_knows_the_opentelemetry_sdk() -> None:
    known = {
        f"{package}.{path.stem}"
        for package in PACKAGES
        for path in Path(importlib.import_module(package).__path__[0]).rglob("*.py")
        if re.search(r"(import|from) opentelemetry\.(sdk|exporter)", path.read_text())
    }
    assert known == {"campaign.exporting", "campaign.providers"}
