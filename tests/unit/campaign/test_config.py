"""The models: frozen, consistent however they are made, and light to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from campaign.config import CampaignConfig
from campaign.configfile import load_config

CASES = Path(__file__).parents[2] / "cases"


@pytest.fixture
def plain() -> dict[str, Any]:
    loaded = load_config(CASES / "accepted" / "every_kind_of_task.yaml")
    return loaded.config.model_dump(mode="json")


def test_a_config_cannot_be_changed(plain: dict[str, Any]) -> None:
    config = CampaignConfig.model_validate(plain)
    with pytest.raises(ValidationError):
        config.rounds = 3
    with pytest.raises(ValidationError):
        config.simulation.ranks = 3


def test_what_spans_fields_holds_without_the_file_too(plain: dict[str, Any]) -> None:
    plain["simulation"] |= {"ranks": 9, "executor": "big", "launcher": ["{nowhere}"]}
    plain["objective"] = {"name": "y", "target": 1.0}
    with pytest.raises(ValidationError) as caught:
        CampaignConfig.model_validate(plain)
    assert [error["loc"] for error in caught.value.errors()] == [
        ("objective", "tolerance"),
        ("simulation", "ranks"),
        ("simulation", "launcher", 0),
    ]


def test_a_budget_is_found_by_its_name(plain: dict[str, Any]) -> None:
    plain["budgets"] = {"node_hours": 2, "generations": {"limit": 3, "per": "job"}}
    budgets = CampaignConfig.model_validate(plain).budgets
    caps = [budgets.cap(name) for name in ("node_hours", "verifier_node_hours", "generations")]
    assert [(cap.limit, cap.per) if cap else None for cap in caps] == [
        (2.0, "campaign"),
        None,
        (3, "job"),
    ]


def test_reading_a_config_imports_nothing_heavy() -> None:
    heavy = ("numpy", "scipy", "parsl", "rich", "opentelemetry", "jsonschema", "campaign.wording")
    code = f"import sys, campaign.configfile; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
