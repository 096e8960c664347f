"""What docs/how-to/report.md says of the commands and of the columns holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaign.report.export import candidates, observed
from folders import simgate
from longrun import write

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "report.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in PAGE.splitlines())
    return [line for line in lines if line.startswith("simgate ")]


def test_every_command_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    write(Path("RUN"), 200)
    known = str(observed(Path("RUN"))[0]["candidate"])
    found = commands()
    assert len(found) == 9
    for line in found:
        words = line.replace("1e2a1c", known[:12]).split()[1:]
        ran = simgate(*words)
        assert ran.exit_code == 0, (line, ran.output)


def test_the_columns_of_the_page_are_those_of_the_rows(tmp_path: Path) -> None:
    write(tmp_path, 200)
    table = PAGE.partition("| column | meaning |")[2]
    told = set(re.findall(r"`([\w.]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()
                                                   if line.startswith("| `"))))  # fmt: skip
    rows = {*observed(tmp_path)[0], *candidates(tmp_path)[0]}
    wanted = {re.sub(r"^(parameters|outputs)\..*", r"\1.NAME", name) for name in rows}
    assert told == wanted
