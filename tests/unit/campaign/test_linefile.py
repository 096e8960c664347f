"""A file of whole lines, whatever becomes of the disk."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from campaign.linefile import LineFile


@pytest.fixture
def losses() -> list[str]:
    return []


@pytest.fixture
def room() -> Iterator[None]:
    """No file of this process may grow beyond 100 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def test_lines_are_appended(tmp_path: Path, losses: list[str]) -> None:
    path = tmp_path / "lines"
    path.write_text("one\n")
    file = LineFile(path, losses.append)
    assert file.write("two\n") == 4
    file.close()
    assert path.read_text() == "one\ntwo\n"
    assert losses == []


@pytest.mark.usefixtures("room")
def test_a_line_that_does_not_fit_leaves_no_half_of_itself(
    tmp_path: Path, losses: list[str]
) -> None:
    path = tmp_path / "lines"
    file = LineFile(path, losses.append)
    for line in ("a" * 60, "b" * 60, "c" * 20):
        assert file.write(f"{line}\n") == len(line) + 1
    file.close()
    assert path.read_text().split() == ["a" * 60, "c" * 20]
    assert losses == [f"{path}: File too large"]


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
