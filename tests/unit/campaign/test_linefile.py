"""A file of whole lines, whatever becomes of the disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from campaign.linefile import LineFile


@pytest.fixture
def losses() -> list[str]:
    return []


def test_lines_are_appended(tmp_path: Path, losses: list[str]) -> None:
    path = tmp_path / "lines"
    path.write_text("one\n")
    file = LineFile(path, losses.append)
    assert file.write("two\n") == 4
    file.close()
    assert path.read_text() == "one\ntwo\n"
    assert losses == []


SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from campaign.linefile import LineFile

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
losses = []
file = LineFile(Path(sys.argv[1]), losses.append)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for line in ("a" * 60, "b" * 60, "c" * 20):
    assert file.write(f"{line}\\n") == len(line) + 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
file.close()
print(losses)
"""


def test_a_line_that_does_not_fit_leaves_no_half_of_itself(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    argv = [sys.executable, "-c", SMALL_DISK, str(path)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert path.read_text().split() == ["a" * 60, "c" * 20]
    assert ran.stdout.strip() == str([f"{path}: File too large"])


def test_a_full_device_is_told_each_time_and_stops_nobody(losses: list[str]) -> None:
    file = LineFile(Path("/dev/full"), losses.append)
    file.write("one\n")
    file.write("two\n")
    file.close()
    assert losses == ["/dev/full: No space left on device"] * 2


def test_what_comes_after_the_end_goes_nowhere(tmp_path: Path, losses: list[str]) -> None:
    path = tmp_path / "lines"
    file = LineFile(path, losses.append)
    file.close()
    file.close()
    with path.with_name("another").open("wb"):  # has the number that was the file's
        assert file.write("late\n") == 5
    assert [one.read_text() for one in tmp_path.iterdir()] == ["", ""]
    assert losses == []
