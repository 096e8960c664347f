"""Whatever encoding standard output has, everything is printed and nothing raises."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import running
from campaign.clibase import print_json
from campaign.outlet import STAND_IN, open_outlets, say
from folders import argv, folder, process

ASCII = os.environ | {"PYTHONIOENCODING": "ascii"}
TARGET = {"name": "loss", "target": 0.0, "tolerance": 0.5}


def printed(monkeypatch: pytest.MonkeyPatch, encoding: str) -> io.BytesIO:
    """What goes to a standard output of that encoding, which refuses what it does not have."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    open_outlets()
    return raw


@pytest.mark.parametrize(
    ("encoding", "told"),
    [
        ("utf-8", "30 ± 1 … läuft 界".encode()),
        ("ascii", rb"30 +- 1 ... l\xe4uft \u754c"),
        ("latin-1", b"30 \xb1 1 ... l\xe4uft \\u754c"),
    ],
)
def test_a_character_that_is_not_there_has_a_stand_in(
    monkeypatch: pytest.MonkeyPatch, encoding: str, told: bytes
) -> None:
    raw = printed(monkeypatch, encoding)
    say("30 ± 1 … läuft 界")
    assert raw.getvalue() == told + b"\n"


def test_the_bytes_of_a_file_name_come_out_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = printed(monkeypatch, "utf-8")
    say(f"wrote {os.fsdecode(b'r-' + bytes([255]))}")
    assert raw.getvalue() == b"wrote r-\xff\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_json_means_the_same_in_every_encoding(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    raw = printed(monkeypatch, encoding)
    print_json({"reason": "±…ä"})
    assert json.loads(raw.getvalue().decode(encoding)) == {"reason": "±…ä"}


def test_only_what_cannot_be_encoded_has_a_stand_in() -> None:
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", STAND_IN)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "report", "watch", "why"])
def test_a_run_is_looked_at_in_ascii(tmp_path: Path, command: str) -> None:
    running.run(tmp_path, running.config(rounds=1, objective=TARGET))
    words = (command, tmp_path, "r1 s0") if command == "why" else (command, tmp_path)
    found = process(*words, env=ASCII)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.isascii()


@pytest.mark.slow
def test_a_run_whose_lines_nobody_reads_any_more_goes_on_and_is_quiet(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=1)
    words = argv("run", campaign, "--run-dir", tmp_path / "r")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        assert driver.stderr is not None
        assert b"job 1 on" in driver.stdout.readline()
        driver.stdout.close()
        said = driver.stderr.read()
        assert (driver.wait(120), said) == (0, b"")


@pytest.mark.slow
def test_a_run_that_is_done_ends_with_0_whatever_its_output_can_hold(tmp_path: Path) -> None:
    campaign = folder(tmp_path / "c", rounds=1, objective=TARGET)
    found = process("run", campaign, "--run-dir", tmp_path / "r", env=ASCII)
    assert (found.returncode, found.stderr) == (0, "")
    assert "target 0 +- 0.5" in " ".join(found.stdout.split())
