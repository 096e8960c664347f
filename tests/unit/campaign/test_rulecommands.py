"""`simgate rules` and `simgate check`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import folders
from campaign.cli import main
from campaign.packing import pack

CASES = Path(__file__).parents[2] / "cases" / "conformance"
SUM = {
    "id": "sum",
    "type": "expression",
    "params": {"condition": "x + y <= 1"},
    "hint": "lower x or y",
}
WORDS = {"id": "why", "type": "not_null", "field": "rationale", "severity": "warn"}
GOOD, BAD = {"x": 0.2, "y": 0.3}, {"x": 0.9, "y": 0.9}


def ruled(directory: Path, *rules: object, **changes: Any) -> Path:
    return folders.folder(directory, expect={"expectations": [SUM, *rules]}, **changes)


def records(directory: Path, *candidates: object) -> Path:
    path = directory / "records.json"
    path.write_text(json.dumps([pack(one) for one in candidates]))
    return path


def checked(config: Path, *words: object) -> dict[str, Any]:
    result = folders.simgate("check", config, *words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_rules_shows_all_that_would_run_in_order(tmp_path: Path) -> None:
    result = folders.simgate("rules", ruled(tmp_path, WORDS), "--json")
    found = json.loads(result.stdout)
    shown = [(row["id"], row["layer"], row["severity"], row["source"]) for row in found["rules"]]
    assert shown == [
        ("count", "shape", "error", "batch_size: 2"),
        *[(name, "schema", "error", "parameters")
          for name in ("unknown", "missing", "type", "finite", "bounds")],
        ("distinct", "domain", "error", "parameters"),
        ("sum", "domain", "error", "inline"),
        ("why", "domain", "warn", "inline"),
        ("stable", "verifier", "error", "verifiers[0]"),
    ]  # fmt: skip
    table = folders.simgate("rules", tmp_path).output
    assert "x + y <= 1" in table
    assert "step" not in table
    assert table.index("distinct") < table.index("sum") < table.index("stable")


def test_rules_shows_the_step_where_a_parameter_has_one(tmp_path: Path) -> None:
    x = {"type": "float", "min": 0, "max": 1}
    config = ruled(tmp_path, parameters={"x": {**x, "step": 0.5}, "y": x})
    found = json.loads(folders.simgate("rules", config, "--json").stdout)["rules"]
    assert [row["id"] for row in found][5:8] == ["bounds", "step", "distinct"]
    tried = records(tmp_path, {"x": 0.5, "y": 0.1}, {"x": 0.4, "y": 0})
    judged = checked(config, "--records", tried)
    assert [one["passes"] for one in judged["records"]] == [True, False]


def test_rules_says_when_they_only_watch(tmp_path: Path) -> None:
    expect = {"repair": "none", "expectations": [SUM]}
    result = folders.simgate("rules", folders.folder(tmp_path, expect=expect))
    assert "blocks nothing" in result.output


def test_check_gives_the_verdict_of_every_record(tmp_path: Path) -> None:
    config = ruled(tmp_path, WORDS)
    found = checked(config, "--records", records(tmp_path, GOOD | {"rationale": "so"}, BAD))
    first, second = found["records"]
    assert first["passes"]
    assert first["expect"]["overall_pass"]
    assert [one["passed"] for one in second["expect"]["outcomes"]] == [False, False]
    assert second["expect"]["failed"] == ["sum"]
    assert found["summary"]["passed"] == 1
    assert {"id": "sum", "passed": 1, "failed": 1, "skipped": 0, "errors": 0} in (
        found["summary"]["rules"]
    )


def test_check_tells_in_words_what_rejects_a_record(tmp_path: Path) -> None:
    odd = {"x": 2, "y": 0.1, "z": 1}
    result = folders.simgate(
        "check", ruled(tmp_path), "--records", records(tmp_path, GOOD, BAD, odd)
    )
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[:3] == [
        "record 2 rejected by sum: condition 'x + y <= 1' is false (x=0.9, y=0.9)",
        'record 3 rejected by unknown: "z": unknown parameter; known are x, y',
        "record 3 rejected by bounds: x: 2.0; at most 1.0",
    ]
    assert lines[-1] == "1 of 3 records pass"


def test_check_reads_standard_input(tmp_path: Path) -> None:
    words = ["check", str(ruled(tmp_path)), "--records", "-", "--json"]
    result = CliRunner().invoke(main, words, input="x,y\n0.1,0.1\n0.9,0.9\n")
    assert [one["passes"] for one in json.loads(result.stdout)["records"]] == [True, False]


def test_check_judges_the_file_as_one_batch(tmp_path: Path) -> None:
    found = checked(ruled(tmp_path), "--records", records(tmp_path, GOOD, BAD, GOOD))
    assert found["records"][2]["parameters"][0]["check"] == "distinct"


def test_a_threshold_that_is_missed_exits_with_1(tmp_path: Path) -> None:
    words = ["check", ruled(tmp_path), "--records", records(tmp_path, GOOD, BAD), "--fail-under"]
    assert folders.simgate(*words, 50).exit_code == 0
    missed = folders.simgate(*words, 51)
    assert missed.exit_code == 1
    assert "50% of the records pass; at least 51% must" in missed.output


def test_what_only_watches_rejects_no_record(tmp_path: Path) -> None:
    expect = {"repair": "none", "expectations": [SUM]}
    config = folders.folder(tmp_path, expect=expect)
    found = checked(config, "--records", records(tmp_path, BAD))
    assert found["records"][0]["passes"]
    assert found["records"][0]["expect"]["overall_pass"] is False


def test_a_check_of_ones_own_that_raises_is_told_apart(tmp_path: Path) -> None:
    config = ruled(tmp_path)
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "mine.py").write_text(
        "from checks import check\n\n\n@check('picky')\ndef picky(value, params):\n    1 / 0\n"
    )
    plain = yaml.safe_load((config / "campaign.yaml").read_text())
    plain["expect"]["expectations"].append({"id": "mine", "type": "picky", "field": "x"})
    (config / "campaign.yaml").write_text(yaml.safe_dump(plain))
    result = folders.simgate("check", config, "--records", records(tmp_path, GOOD))
    said = "record 1 NOT CHECKED by mine: check raised ZeroDivisionError: division by zero"
    assert said in result.output


def test_what_a_check_of_ones_own_prints_is_not_in_the_answer(tmp_path: Path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "loud.py").write_text(
        "from checks import check\nprint('read')\n\n\n@check('loud')\n"
        "def loud(value, params):\n    print('asked')\n    return True, ''\n"
    )
    config = ruled(tmp_path, {"id": "heard", "type": "loud", "field": "x"})
    result = folders.simgate("check", config, "--records", records(tmp_path, GOOD), "--json")
    assert json.loads(result.stdout)["summary"]["passed"] == 1
    assert result.stderr.split() == ["read", "asked"]


def test_a_file_of_rules_alone_judges_records_of_any_fields(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"expectations": [SUM]}))
    found = checked(rules, "--records", records(tmp_path, {"x": 1, "y": 0, "name": "a"}))
    assert found["records"][0]["passes"]
    rules.write_text(yaml.safe_dump({"fields": [{"id": "x", "type": "number"}],
                                     "expectations": [SUM]}))  # fmt: skip
    refused = folders.simgate("check", rules, "--records", records(tmp_path, GOOD))
    assert refused.exit_code == 2
    assert "line 2: sum: condition 'x + y <= 1': unknown field 'y'" in refused.output


def test_what_is_wrong_with_records_or_rules_is_told_without_a_traceback(tmp_path: Path) -> None:
    missing = folders.simgate("check", ruled(tmp_path), "--records", tmp_path / "none.json")
    assert missing.exit_code == 2
    assert "cannot be read" in missing.output
    nothing = folders.simgate("check", tmp_path / "none.yaml", "--records", missing)
    assert nothing.exit_code == 2


def conformance() -> list[Any]:
    settled = json.loads((CASES / "settled.json").read_text(encoding="utf-8"))["rules"]
    cases = json.loads((CASES / "rules.json").read_text(encoding="utf-8"))
    return [
        pytest.param(case, id=case["id"])
        for case in cases
        if case["id"] not in settled and "unparseable" not in case.get("note", "")
    ]


@pytest.mark.parametrize("case", conformance()[::6])
def test_check_answers_a_conformance_case_as_the_library_does(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    (tmp_path / "rules.json").write_text(json.dumps({"expectations": [case["rule"]]}))
    (tmp_path / "record.json").write_text(json.dumps([case["record"]]))
    found = checked(tmp_path / "rules.json", "--records", tmp_path / "record.json")
    (outcome,) = found["records"][0]["expect"]["outcomes"]
    expected = case["expected"]
    assert (outcome["passed"], outcome["skipped"]) == (expected["passed"], expected["skipped"])


def test_a_file_of_rules_alone_may_hold_judged_ones(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    judged = {"id": "sound", "type": "llm_judge", "field": "x", "params": {"rule": "It is sound."}}
    path.write_text(yaml.safe_dump({"expectations": [judged]}))
    result = folders.simgate("rules", path, "--json")
    assert result.exit_code == 0, result.output
    assert [row["id"] for row in json.loads(result.stdout)["rules"]] == ["sound"]
