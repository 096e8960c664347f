"""The stand-in of the page on dry runs is one."""

from __future__ import annotations

from typing import Any

import yaml

import pages
from campaign.configfile import config_from_mapping
from campaign.dryrun import dry_run, stand_in
from folders import plain
from pages import Block


@pages.each(pages.blocks("docs/how-to/dry-run.md", "yaml"))
def test_the_stand_in_of_the_page_is_taken(block: Block) -> None:
    config: dict[str, Any] = plain(verifiers=[]) | yaml.safe_load(block.text)
    found = dry_run(config_from_mapping(config), 2)
    assert stand_in(found.config) is not None
    assert found.cuts[-1] == "simulation: simulation.dry_run stands in for it"
