"""Where a directory holds no run: what somebody may have meant."""

from __future__ import annotations

import difflib
from pathlib import Path

from campaign.ledger import NAME, NoLedgerError
from campaign.yamlfile import FILE_NAME

_SHOWN = 3


def told(error: NoLedgerError) -> str:
    """The error, and what is near the directory it is about."""
    missing = error.__cause__
    named = missing.filename if isinstance(missing, OSError) else None
    hint = meant(Path(named).parent) if named else ""
    return f"{error}; {hint}" if hint else str(error)


def meant(directory: Path) -> str:
    """A run within the directory, or one of a like name beside it; "" where there is none."""
    if (directory / FILE_NAME).is_file():
        return f"it holds a campaign, which simgate run {directory} runs"
    if within := _runs(directory):
        return f"it holds runs, the last of them {', '.join(map(str, within[:_SHOWN]))}"
    beside = {one.name: one for one in _runs(directory.parent)}
    like = difflib.get_close_matches(directory.name, beside, _SHOWN)
    return f"did you mean {beside[like[0]]}?" if like else ""


def _runs(directory: Path) -> list[Path]:
    """The runs in a directory, the last one that anything happened in first."""
    try:
        ledgers = [one / NAME for one in directory.iterdir()]
        found = {one.parent: one.stat().st_mtime for one in ledgers if one.is_file()}
    except OSError:
        return []
    return sorted(found, key=lambda one: (-found[one], one.name))
