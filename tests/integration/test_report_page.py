"""The page of a report: read as text, and looked at in a browser at three widths, by day and night.

The pictures are kept where SIMGATE_PICTURES says, for whoever wants to see them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import browser
import running
from campaign.report.figures import figures
from campaign.report.histories import SHOWN
from campaign.report.page import page
from folders import simgate
from longrun import write
from running import agent, run

WIDTHS = (390, 820, 1400)
PAPER = {False: (255, 255, 255), True: (20, 24, 29)}
HOSTILE = (
    "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title=1\">"
)
GOOD = [{"x": 0.1, "y": 0.2}, {"x": 0.2, "y": 0.4}, {"x": 0.3, "y": 0.6}]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of 300 candidates."""
    folder = tmp_path_factory.mktemp("page")
    write(folder / "run", 300)
    out = folder / "report.html"
    found = simgate("report", folder / "run", "--html", out)
    assert (found.exit_code, found.output) == (0, f"wrote {out}\n")
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run whose verifier, rule and agent write HTML into everything they can."""
    folder = tmp_path_factory.mktemp("hostile")
    functions = running.FUNCTIONS | {
        "tests:rejects": lambda _: {"verdict": "reject", "reason": HOSTILE},
        "tests:fails": lambda _: {"loss": HOSTILE},
    }
    rule = {"id": HOSTILE, "type": "expression", "params": {"condition": "x < 0.25"}}
    changes: dict[str, Any] = {
        "rounds": 1,
        "agent": {"kind": "replay", "file": "none.yaml"},
        "expect": {"max_iterations": 1, "expectations": [rule]},
        "policy": {"semantic_rejection": "return_last"},
        "simulation": {"kind": "python", "walltime": "10s", "function": "tests:fails"},
    }
    script = agent([*GOOD[:2], {"x": HOSTILE, HOSTILE: 1}])
    config = running.config(**changes)
    ran = run(folder / "run", config, proposer=script, functions=functions)
    directory = figures(ran.run_dir).work.failing[0].directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stderr").write_text(HOSTILE)
    out = folder / "report.html"
    out.write_text(page(figures(ran.run_dir)))
    return out


def without_island(text: str) -> str:
    return re.sub(r'<script type="application/json".*?</script>', "", text, flags=re.S)


def test_the_page_fetches_nothing(written: Path) -> None:
    text = written.read_text()
    assert not re.findall(r'\b(?:src|href|action|data)="(?!#)[^"]*', without_island(text))
    assert not re.findall(r"url\((?!#)", text)
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_text_of_the_run_is_text_on_the_page(hostile: Path) -> None:
    text = hostile.read_text()
    assert "&lt;/script&gt;&lt;script&gt;" in text
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    assert "<img" not in text


def test_a_page_of_many_candidates_says_what_it_leaves_out(tmp_path: Path) -> None:
    write(tmp_path / "run", SHOWN + 1000)
    text = page(figures(tmp_path / "run"))
    assert re.search(r"1,\d\d\d more: <code>simgate why RUN CANDIDATE</code>", text)
    assert len(text) < 5e6


@pytest.mark.browser
def test_a_browser_runs_the_page_and_nothing_of_the_run(hostile: Path) -> None:
    text = browser.dom(hostile, 820)
    assert "<title>bowl: report</title>" in text
    assert text.count(">LaTeX</button>") >= 5  # the page's own script has run
    assert "<img" not in without_island(text)


@pytest.mark.browser
def test_a_browser_shows_every_part(written: Path) -> None:
    text = without_island(browser.dom(written, 1400))
    plain = re.sub(r"<[^>]+>", " ", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.S))
    for said in (
        "Best observation", "Surrogate's optimum", "The gate saved", "node-hours of tasks",
        "Node-hours each check saved", "rejected first", "What was left of each cap",
        "busy", "idle", "lost", "Most failing", "Slowest", "its node went away", "Candidates",
    ):  # fmt: skip
        assert said in plain, said
    assert text.count("<svg") == 4
    assert text.count('<details class="row"') >= 300


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(written: Path, width: int) -> None:
    probe = "<script>document.body.dataset.wide = document.documentElement.scrollWidth</script>"
    text = re.sub(r"<meta http-equiv[^>]*>", "", written.read_text())
    page = written.with_name(f"probe-{width}.html")
    page.write_text(text.replace("</body>", f"{probe}</body>"))
    wide = re.search(r'data-wide="(\d+)"', browser.dom(page, width))
    assert wide is not None
    assert int(wide[1]) == width


@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_picture_has_the_colours_of_day_and_night(
    written: Path, width: int, dark: bool
) -> None:
    out = written.with_name(f"{width}-{'dark' if dark else 'light'}.png")
    browser.picture(written, out, width, dark=dark)
    if kept := os.environ.get("SIMGATE_PICTURES"):
        shutil.copy(out, kept)
    with Image.open(out) as image:
        seen = image.convert("RGB")
    assert seen.width == width
    assert seen.getpixel((1, 1)) == PAPER[dark]
    colours = seen.getcolors(1 << 24)
    assert colours is not None
    assert len(colours) > 100  # text and plots, not an empty page


@pytest.mark.browser
def test_it_can_be_printed(written: Path, tmp_path: Path) -> None:
    browser.pdf(written, tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
