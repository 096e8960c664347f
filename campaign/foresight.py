"""A head start for the preflight: what a config seems to name is imported while it is still read.

Importing a campaign's functions and building the config's models each take a few tenths of a
second and need nothing of each other. What is looked at here is only a guess at the file: the
preflight asks for what the validated config names, and starts a probe of its own if that differs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from campaign.problems import ConfigError
from campaign.yamlfile import FILE_NAME, MAX_BYTES, read_bytes
from executors.base import Json
from executors.probe import Probe

NAMED_BY = ("function", "reader")
STANDS_IN = "dry_run"  # what no other run imports


def head_start(config: Path) -> Probe:
    """A probe of every function the file seems to name; of none where it cannot be read."""
    path = config.absolute()
    data: Json = None
    # What is wrong with the file is said by who reads it in earnest.
    with contextlib.suppress(ConfigError, OSError, ValueError):
        path = path / FILE_NAME if path.is_dir() else path
        with path.open("rb") as file:
            data = read_bytes(file.read(MAX_BYTES + 1)).data
    return Probe(sorted(set(_functions(data))), str(path.parent))


def _functions(data: Json) -> Iterator[str]:
    if isinstance(data, list):
        for item in data:
            yield from _functions(item)
    if isinstance(data, dict):
        for key, value in data.items():
            if key in NAMED_BY and isinstance(value, str) and ":" in value:
                yield value
            elif key != STANDS_IN:
                yield from _functions(value)
