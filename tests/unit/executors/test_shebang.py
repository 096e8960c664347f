from __future__ import annotations

from pathlib import Path

import pytest

from executors.shebang import no_interpreter


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"#!/bin/sh\n", ""),
        (b"#! /bin/sh -e\n", ""),
        (b"#!/bin/sh", ""),
        (b"echo\n", ""),
        (b"#!\n", ""),
        (b"\x7fELF", ""),
        (b"#!/no/sh -e\n", "its first line names the interpreter '/no/sh', which is not there"),
        (
            b"#!/bin/sh\r\n",
            "its first line names the interpreter '/bin/sh\\r', which is not there; "
            "end its lines by \\n alone",
        ),
    ],
)
def test_an_interpreter_that_is_not_there_is_named(
    tmp_path: Path, content: bytes, said: str
) -> None:
    script = tmp_path / "run"
    script.write_bytes(content)
    script.chmod(0o755)
    assert no_interpreter(str(script)) == said


def test_of_a_program_that_is_not_there_nothing_is_said(tmp_path: Path) -> None:
    assert no_interpreter(str(tmp_path / "gone")) == ""
    assert no_interpreter(str(tmp_path)) == ""
