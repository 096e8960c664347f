"""What a program may build on: few names, each told about, none costs before it is used."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import campaign
import executors
from campaign.pythonmanual import described

PACKAGES = ("campaign", "checks", "executors")
HEAVY = {
    "click", "lark", "matplotlib", "msgspec", "numpy", "parsl", "pydantic", "re2", "rich", "scipy",
    "yaml",
}  # fmt: skip


def test_the_public_names_of_the_campaign_are_these() -> None:
    assert campaign.__all__ == [
        "AgentError", "CampaignState", "ConfigError", "Ending", "JobOutcome", "LedgerError",
        "LoadedConfig", "RunDirError", "candidates", "fold", "load_config", "observed", "read",
        "resume", "run",
    ]  # fmt: skip


def test_the_public_names_of_the_executors_are_these() -> None:
    assert executors.__all__ == [
        "CommandWork", "Executor", "ExecutorConfig", "ExecutorError", "MpiWork", "Output",
        "ParslExecutors", "PythonWork", "Resources", "Task", "TaskResult", "TaskStatus", "Work",
        "open_executors",
    ]  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_offers_at_most_fifteen_names_and_tells_of_each(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) <= 15
    assert [name for name in module.__all__ if len(described(module, name)) < 20] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_public_name_is_that_of_a_module_which_would_take_its_place(package: str) -> None:
    module = importlib.import_module(package)
    modules = {path.stem for path in Path(module.__path__[0]).iterdir()}
    # accept is imported with its package, after its module, and so stays.
    assert modules & set(module.__all__) <= {"accept"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_is_not_offered_is_refused_as_in_any_module(package: str) -> None:
    with pytest.raises(AttributeError, match=f"'{package}' has no attribute 'nothing'"):
        importlib.import_module(package).nothing  # noqa: B018


@pytest.mark.parametrize(
    ("code", "allowed"),
    [
        ("import campaign", set()),
        ("import checks", set()),
        ("import executors", set()),
        ("from campaign import read", {"msgspec"}),
        ("import campaign.cli", {"click"}),
    ],
)
def test_an_import_costs_no_library_that_it_does_not_use(code: str, allowed: set[str]) -> None:
    script = f"{code}; import sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert set(done.stdout.split()) & HEAVY <= allowed
