"""``simgate init``: a small campaign in a folder of its own, that runs as it stands."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from campaign.schema import schema_text

SCHEMA_NAME = "campaign.schema.json"
_STARTER = ("campaign.yaml", "model.py")


class ScaffoldError(ValueError):
    """A folder that cannot take the new campaign; the message names what is in the way."""


def init(directory: Path) -> tuple[Path, ...]:
    """Write the starter campaign into a new or empty folder; gives the files written.

    Raises ``ScaffoldError`` when something is there already or cannot be written.
    """
    try:
        _refuse_full(directory)
        directory.mkdir(parents=True, exist_ok=True)
        starter = resources.files("campaign") / "starter"
        texts = {name: (starter / name).read_text(encoding="utf-8") for name in _STARTER}
        written = []
        for name, text in (texts | {SCHEMA_NAME: schema_text()}).items():
            # "x": whatever appeared since the look above is not overwritten either.
            with (directory / name).open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(directory / name)
        return tuple(written)
    except (OSError, ValueError) as error:
        if isinstance(error, ScaffoldError):
            raise
        raise ScaffoldError(f"{directory}: cannot be written: {error}; name another one") from error


def _refuse_full(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise ScaffoldError(f"{directory}: a file; name a new or empty folder")
    if directory.is_dir() and (names := sorted(one.name for one in directory.iterdir())):
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        raise ScaffoldError(
            f"{directory}: holds {', '.join(names[:3])}{more}; name a new or empty folder"
        )
