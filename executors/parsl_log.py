"""What Parsl and its programs write down: warnings, into files that are closed again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from parsl.logconfigs.file import FileLogging


class WarningsLog(FileLogging):
    """Parsl's file log, warnings only; it travels, pickled, to interchange, pool and workers.

    By default all of them write several lines per task, which takes longer than the dispatch.
    """

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)

    def initialize_logging(self, *, log_dir: Path, log_name: str) -> Callable[[], None]:
        """As Parsl does it, but the file does not stay open afterwards."""
        before = list(logging.getLogger("parsl").handlers)
        undo = super().initialize_logging(log_dir=log_dir, log_name=log_name)
        ours = [h for h in logging.getLogger("parsl").handlers if h not in before]

        def close() -> None:
            undo()
            for handler in ours:
                handler.close()

        return close
