"""Exceptions nobody expected are found and kept."""

from __future__ import annotations

from pathlib import Path

from campaign.crash import cause, keep


def test_the_cause_is_what_the_task_groups_wrapped() -> None:
    inner = ValueError("inner")
    assert cause(ExceptionGroup("a", [ExceptionGroup("b", [inner]), KeyError("c")])) is inner
    assert cause(inner) is inner


def test_details_are_kept_in_the_run_directory_or_in_a_file_of_their_own(tmp_path: Path) -> None:
    error = ValueError("half a surrogate: \udcff")
    assert keep(error, tmp_path) == tmp_path / "crash.txt"
    assert "half a surrogate" in (tmp_path / "crash.txt").read_text()
    elsewhere = keep(error, tmp_path / "missing")
    assert elsewhere is not None
    assert elsewhere.read_text().startswith("ValueError")
    elsewhere.unlink()
