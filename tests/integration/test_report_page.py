"""The page of a report: read as text, and looked at in a browser at three widths, by day and night.

The pictures are kept where SIMGATE_PICTURES says, for whoever wants to see them.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

import browser
import running
from campaign.report.export import candidates
from campaign.report.figures import figures
from campaign.report.histories import SHOWN
from campaign.report.page import page
from folders import simgate
from longrun import write
from running import agent, run
from square import GOOD

WIDTHS = (390, 820, 1400)
PAPER = {False: (255, 255, 255), True: (20, 24, 29)}
HOSTILE = (
    "</script><script>document.title='hacked'</script><img src=x onerror=\"document.title=1\">"
)
LOG = "\x1b[31mERROR\x1b[0m \x00 \u202egnp.exe é 漢字\n" + "x" * 1_000_000 + HOSTILE


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
    many = {f"\x07{name}": 1 for name in range(5000)}
    script = agent([*GOOD[:2], {"x": HOSTILE, HOSTILE: 1, "\u202e": 2} | many])
    config = running.config(**changes)
    ran = run(folder / "run", config, proposer=script, functions=functions)
    directory = figures(ran.run_dir).work.failing[0].directory
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stderr").write_text(LOG)
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


def test_what_no_reader_sees_is_shown_by_its_code_or_left_out(hostile: Path) -> None:
    text = without_island(hostile.read_text())
    assert not {c for c in text if not c.isprintable()} - {"\n", "\t"}
    assert "\\x07" in text
    assert "[31m" not in text


def test_text_without_end_is_cut(hostile: Path) -> None:
    """A log of a megabyte, and a candidate of five thousand names."""
    assert len(hostile.read_bytes()) < 400_000
    assert " and 4903 more" in hostile.read_text()


@pytest.mark.slow
def test_a_page_of_many_candidates_is_bounded_and_says_where_the_others_are(
    tmp_path: Path,
) -> None:
    sizes = []
    for more in (1000, 4000):
        run_dir = tmp_path / f"run-{more}"
        write(run_dir, SHOWN + more)
        text = page(figures(run_dir))
        assert text.count('<details class="row"><summary>r') == SHOWN
        assert f"2,000 of {SHOWN + more:,} are on this page" in text
        assert f"The other {more:,} have no line here" in text
        assert "simgate export RUN --what candidates --out candidates.csv" in text
        assert len(candidates(run_dir)) == SHOWN + more
        sizes.append(len(text.encode()))
    assert sizes[1] < 1.05 * sizes[0] < 2.5e6


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
        "By layer and rule", "later repaired", "Node-hours each check saved", "rejected first",
        "What was left of each cap", "busy", "idle", "lost", "Most failing", "Slowest",
        "its node went away", "Candidates",
    ):  # fmt: skip
        assert said in plain, said
    assert text.count("<svg") == 4
    assert text.count('<details class="row"') >= 300


def probed(written: Path, expression: str, width: int = 1400) -> str:
    """What an expression says after the page's own script has run."""
    probe = f"<script>document.body.dataset.said = encodeURIComponent({expression})</script>"
    text = re.sub(r"<meta http-equiv[^>]*>", "", written.read_text())
    page = written.with_name("probe.html")
    page.write_text(text.replace("</body>", f"{probe}</body>"))
    said = re.search(r'data-said="([^"]*)"', browser.dom(page, width))
    assert said is not None
    return unquote(said[1])


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_window(written: Path, width: int) -> None:
    assert int(probed(written, "document.documentElement.scrollWidth", width)) == width


def copied(written: Path, form: str, heading: str) -> list[str]:
    table = f"[...document.querySelectorAll('h3')].find((one) => one.textContent === '{heading}')"
    found = f"{table}.nextElementSibling.querySelector('table')"
    return probed(written, f"forms.{form}({found})").splitlines()


@pytest.mark.browser
def test_a_table_is_copied_with_numbers_a_program_can_read(written: Path) -> None:
    rows = list(csv.DictReader(copied(written, "CSV", "Node-hours each check saved")))
    shown = {one["check"]: float(one["saved"]) for one in rows}
    found = {one.check: one.saved for one in figures(written.parent / "run").gate.savings}
    assert {name: pytest.approx(saved, rel=1e-3) for name, saved in found.items()} == {
        name: saved for name, saved in shown.items() if name != "all"
    }
    assert copied(written, "TSV", "By layer and rule")[0].split("\t")[:3] == [
        *("step", "check", "entered")
    ]


@pytest.mark.browser
def test_a_table_is_copied_as_latex_with_signs_and_powers_as_mathematics(written: Path) -> None:
    text = written.read_text()
    made = written.with_name("numbers.html")
    row = '<td class="n">-4.4e-05</td><td class="n">12,345</td><td>50 % of a_b</td>'
    table = f"<table id=made><tr><th class=n>a</th><th class=n>b</th><th>c</th></tr><tr>{row}</tr>"
    made.write_text(text.replace("<footer", f"{table}</table><footer"))
    said = probed(made, "forms.LaTeX(document.querySelector('#made'))").splitlines()
    assert said[0] == r"\begin{tabular}{rrl}"
    assert said[4] == r"$-4.4 \times 10^{-5}$ & 12,345 & 50 \% of a\_b \\"


@pytest.mark.browser
def test_printing_opens_the_logs_and_closes_them_again(written: Path) -> None:
    count = "tries.filter((line) => line.open).length"
    event = "(dispatchEvent(new Event('{}print')), {})"
    after = event.format("before", f"{count} + ' ' + {event.format('after', count)}")
    opened, left = probed(written, after).split()
    assert int(opened) == written.read_text().count('<details class="row"><summary><b>')
    assert int(left) == 0


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
