"""The committed pages say what the commands and the events are."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaign.manual import MADE, render_commands, render_ledger
from campaign.pythonmanual import render_python
from campaign.telemetrymanual import render_telemetry

DOCS = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("commands.md", render_commands()),
        ("ledger.md", render_ledger()),
        ("python.md", render_python(MADE)),
        ("telemetry.md", render_telemetry(MADE)),
    ],
)
def test_the_committed_page_is_up_to_date(page: str, text: str) -> None:
    assert (DOCS / page).read_text() == text, "run python -m campaign.manual"
