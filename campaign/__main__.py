"""``python -m campaign`` is ``simgate``, on an interpreter of one's choice."""

from __future__ import annotations

from campaign.cli import main

main(prog_name="simgate")
