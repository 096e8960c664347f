"""The stand-in of the page on dry runs is one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from campaign.configfile import config_from_mapping
from campaign.dryrun import dry_run, stand_in
from folders import plain

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "dry-run.md"


def test_the_stand_in_of_the_page_is_taken() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    executors = {"default": {"kind": "local"}, "whole": {"kind": "mpi", "nodes": 2}}
    config: dict[str, Any] = plain(executors=executors) | yaml.safe_load(block)
    found = dry_run(config_from_mapping(config), 2)
    assert stand_in(found.config) is not None
    assert found.cuts[-1] == "simulation: simulation.dry_run stands in for it"
