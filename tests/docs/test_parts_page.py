"""The programs of docs/how-to/use-the-parts.md, copied and run, print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from folders import simgate

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-parts.md"
PROGRAM = re.compile(
    r"^```python\n# (\w+\.py)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAMS = {name: (body, said) for name, body, said in PROGRAM.findall(TEXT)}


def runs_as_told(name: str, folder: Path) -> None:
    body, said = PROGRAMS[name]
    (folder / name).write_text(body, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, said), done.stderr


def test_every_program_of_the_page_is_run_here() -> None:
    known = {"ask_again", "judge_records", "spring", "run_tasks", "throw_once", "tell_events"}
    assert set(PROGRAMS) == {f"{name}.py" for name in known}
    assert TEXT.count("```python") == len(PROGRAMS)


@pytest.mark.parametrize("name", ["ask_again.py", "judge_records.py"])
def test_the_gate_works_alone(name: str, tmp_path: Path) -> None:
    runs_as_told(name, tmp_path)


def test_the_executors_work_alone(tmp_path: Path) -> None:
    (tmp_path / "spring.py").write_text(PROGRAMS["spring.py"][0], encoding="utf-8")
    runs_as_told("run_tasks.py", tmp_path)


def test_a_run_is_driven_and_read_from_python(tmp_path: Path) -> None:
    assert simgate("init", str(tmp_path / "throw")).exit_code == 0
    runs_as_told("throw_once.py", tmp_path)
    runs_as_told("tell_events.py", tmp_path)
