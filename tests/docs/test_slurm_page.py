"""The page on Slurm has every way to run there; that its parts load, test_every_block tells."""

from __future__ import annotations

import re

import pages


def test_the_page_has_every_kind() -> None:
    parts = pages.blocks("docs/how-to/run-on-slurm.md", "yaml")
    kinds = {kind for part in parts for kind in re.findall(r"kind: (\w+)", part.text)}
    assert {"slurm", "allocation", "mpi", "parsl"} <= kinds
