"""The tutorial, done by somebody who copies every block."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return [body for found, body in BLOCK.findall(text) if found == language]


def test_the_first_campaign_works_by_copy_and_paste(tmp_path: Path) -> None:
    (program,) = blocks("tutorial/first-campaign.md", "python")
    (config,) = blocks("tutorial/first-campaign.md", "yaml")
    commands = [
        line for block in blocks("tutorial/first-campaign.md", "") for line in block.splitlines()
    ]
    assert commands[0] == "mkdir throw"
    (tmp_path / "throw").mkdir()
    (tmp_path / "throw" / "flight.py").write_text(program)
    (tmp_path / "throw" / "campaign.yaml").write_text(config)
    simgate = tmp_path / "bin" / "simgate"
    simgate.parent.mkdir()
    simgate.write_text(f"#!{sys.executable}\nfrom campaign.cli import main\nmain()\n")
    simgate.chmod(0o755)
    path = f"{simgate.parent}{os.pathsep}{os.environ['PATH']}"
    said = ""
    for command in commands[1:]:
        ran = subprocess.run(
            command.split(),
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
        said += ran.stdout
    angle = float(re.search(r"angle=([\d.]+)", said[said.index("Result:") :]).group(1))  # type: ignore[union-attr]
    assert 35 < angle < 45
