"""What docs/how-to/report.md says of the commands and of the columns holds."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

import pages
from campaign.report.export import candidates, observed
from folders import simgate
from longrun import write
from pages import Block

REPORT = "docs/how-to/report.md"
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "report.md").read_text(encoding="utf-8")


@pages.whole(pages.blocks(REPORT, ""))
def test_every_command_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: tuple[Block, ...]
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    write(Path("RUN"), 200)
    known = str(observed(Path("RUN"))[0]["candidate"])
    for line in (line for block in blocks for line in pages.lines(block)):
        program, *words = line.partition("#")[0].replace("1e2a1c", known[:12]).split()
        assert program == "simgate"
        ran = simgate(*words)
        assert ran.exit_code == 0, (line, ran.output)


@pages.each(pages.blocks(REPORT, "python"))
def test_a_run_is_plotted_with_pandas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: Block
) -> None:
    """Without pandas, which simgate does not need: what is plotted are columns of a run."""
    code = compile(block.text, str(block), "exec")
    monkeypatch.chdir(tmp_path)
    write(Path("RUN"), 200)
    assert set(re.findall(r'"(\w+)"', block.text)) <= observed(Path("RUN"))[0].keys()
    if importlib.util.find_spec("pandas") is not None:
        assert (
            simgate("export", "RUN", "--format", "parquet", "--out", "run.parquet").exit_code == 0
        )
        exec(code, {})


def test_the_columns_of_the_page_are_those_of_the_rows(tmp_path: Path) -> None:
    write(tmp_path, 200)
    table = PAGE.partition("| column | meaning |")[2]
    told = set(re.findall(r"`([\w.]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()
                                                   if line.startswith("| `"))))  # fmt: skip
    rows = {*observed(tmp_path)[0], *candidates(tmp_path)[0]}
    wanted = {re.sub(r"^(parameters|outputs)\..*", r"\1.NAME", name) for name in rows}
    assert told == wanted
