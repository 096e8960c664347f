"""A driver that kills itself with SIGKILL around an event of its ledger.

    python mortal_driver.py RUN_DIR CAMPAIGN KIND NTH before|after

With KIND ``never`` it lives. ``before`` is between what an event tells and its being on disk;
exit status as ``simgate resume`` or ``simgate run``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import campaign.drive
from campaign.configfile import load_config
from campaign.events import Entry, Event
from campaign.ledger import Ledger


def main(run_dir: Path, folder: Path, kind: str, nth: int, when: str) -> None:
    seen = 0

    class MortalLedger(Ledger):
        def append(self, *events: Event) -> tuple[Entry, ...]:
            nonlocal seen
            matching = sum(event.__struct_config__.tag == kind for event in events)
            doomed = seen < nth <= seen + matching
            seen += matching
            if doomed and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            entries = super().append(*events)
            if doomed:
                os.kill(os.getpid(), signal.SIGKILL)
            return entries

    vars(campaign.drive)["Ledger"] = MortalLedger
    created = None
    if not (run_dir / "ledger.jsonl").exists() or (run_dir / "ledger.jsonl").stat().st_size == 0:
        loaded = load_config(folder)
        created = campaign.drive.creation(loaded.config, loaded.folder, surrogate_only=False)
    ending, _ = asyncio.run(campaign.drive.drive(run_dir, created))
    print(ending.outcome, ending.reason)
    sys.exit({"done": 0, "failed": 1, "stopped": 75}[ending.outcome])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
