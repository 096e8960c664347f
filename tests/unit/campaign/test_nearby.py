"""Where a directory holds no run, what was meant is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from campaign.ledger import NAME
from campaign.nearby import meant
from folders import folder, simgate


def run_at(directory: Path, at: float) -> Path:
    directory.mkdir(parents=True)
    (directory / NAME).touch()
    os.utime(directory / NAME, (at, at))
    return directory


def test_the_last_runs_within_a_directory_are_named(tmp_path: Path) -> None:
    runs = [run_at(tmp_path / f"r{number}", 1000.0 + number) for number in range(5)]
    assert meant(tmp_path) == f"it holds runs, the last of them {runs[4]}, {runs[3]}, {runs[2]}"


def test_a_misspelt_run_is_answered_by_the_one_beside_it(tmp_path: Path) -> None:
    there = run_at(tmp_path / "throw-1", 0.0)
    assert meant(tmp_path / "trow-1") == f"did you mean {there}?"
    assert meant(tmp_path / "other" / "trow-1") == ""
    assert meant(tmp_path / "quite-another") == ""


@pytest.mark.parametrize("words", [("status",), ("report",), ("export",), ("watch", "--once")])
def test_a_campaign_in_place_of_a_run_is_told_from_one(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    campaign = folder(tmp_path)
    found = simgate(*words, campaign)
    assert found.exit_code == 2
    assert f"it holds a campaign, which simgate run {campaign} runs" in found.output
