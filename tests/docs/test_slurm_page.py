"""The page on Slurm says what loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import running

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-on-slurm.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
# What a block leaves out because the ones before it have it.
NODES = {"default": {"kind": "mpi", "nodes": 4}}


@pytest.mark.parametrize("text", BLOCKS)
def test_a_part_of_the_page_is_accepted_as_it_stands(text: str) -> None:
    part: dict[str, Any] = yaml.safe_load(text)
    if "simulation" in part:
        part = {"executors": NODES, "verifiers": []} | part
    config = running.config(**part)
    assert set(part["executors"]) == set(config.executors)
    for label, executor in part["executors"].items():
        assert config.executors[label].kind == executor["kind"]


def test_the_page_has_every_kind() -> None:
    kinds = {kind for text in BLOCKS for kind in re.findall(r"kind: (\w+)", text)}
    assert {"slurm", "allocation", "mpi", "parsl"} <= kinds
