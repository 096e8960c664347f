"""A headless Chromium, as a person's browser: it runs a page's script and takes its picture."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_DARK, _LIGHT = 0, 1


def program() -> str | None:
    """The first browser found, None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def dom(page: Path, width: int) -> str:
    """The document after its scripts have run, in a window of that width."""
    return _run("--dump-dom", page, width)


def picture(page: Path, out: Path, width: int, *, dark: bool, height: int = 1600) -> None:
    scheme = f"--blink-settings=preferredColorScheme={_DARK if dark else _LIGHT}"
    _run(f"--screenshot={out}", page, width, scheme, height=height)


def pdf(page: Path, out: Path) -> None:
    _run(f"--print-to-pdf={out}", page, 1000)


def _run(task: str, page: Path, width: int, *more: str, height: int = 1600) -> str:
    browser = program()
    assert browser is not None
    profile = page.parent / "profile"
    words = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--hide-scrollbars", f"--user-data-dir={profile}", f"--window-size={width},{height}",
        *more, task, page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
