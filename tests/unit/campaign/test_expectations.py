"""Rules of a configuration: where they come from, what holds, and where a refusal stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import folders
from campaign.configfile import load_config
from campaign.expectations import compiled, kept
from campaign.gateconfig import Policies, iterations, observes, policies
from campaign.problems import ConfigError

SUM = {"id": "sum", "type": "expression", "params": {"condition": "x + y <= 1"}}
LOW = {"id": "low", "type": "value_between", "params": {"max": 0.5}}
JUDGED = {"type": "llm_judge", "field": "x", "params": {"rule": "it is good"}}
PARAMETERS = folders.plain()["parameters"]


def on_x(*rules: object) -> dict[str, Any]:
    x: dict[str, Any] = PARAMETERS["x"] | {"expectations": list(rules)}
    return {**PARAMETERS, "x": x}


def problems(directory: Path, **changes: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        load_config(folders.folder(directory, **changes))
    return [str(problem) for problem in error.value.problems]


def sources(directory: Path, **changes: Any) -> list[tuple[str, str]]:
    loaded = load_config(folders.folder(directory, **changes))
    assert loaded.expect is not None
    return [(rule.id, rule.source) for rule in loaded.expect.suite.rules]


def suite(directory: Path, name: str, content: object) -> None:
    (directory / "rules").mkdir(parents=True, exist_ok=True)
    (directory / "rules" / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def test_rules_stand_inline_on_parameters_in_the_file_or_in_a_suite(tmp_path: Path) -> None:
    suite(tmp_path / "c", "shared", {"fields": [{"id": "x", "expectations": [LOW]}],
                                     "expectations": [SUM]})  # fmt: skip
    assert sources(tmp_path / "a", expect={"expectations": [SUM]}) == [("sum", "inline")]
    own = sources(tmp_path / "b", parameters=on_x(LOW), expectations=[SUM])
    assert own == [("low", "own file, field x"), ("sum", "own file")]
    named = sources(tmp_path / "c", expect={"suite": "shared"})
    assert named == [("low", "suite shared, field x"), ("sum", "suite shared")]


def test_the_nearer_block_wins_key_by_key(tmp_path: Path) -> None:
    loaded = load_config(
        folders.folder(
            tmp_path,
            defaults={"expect": {"max_iterations": 3, "on_exhausted": "fail"}},
            expect={"max_iterations": 4, "expectations": [SUM]},
            agent={"kind": "surrogate", "expect": {"max_iterations": 5}},
        )
    )
    assert loaded.expect is not None
    assert (loaded.expect.max_iterations, loaded.expect.on_exhausted) == (5, "fail")
    assert iterations(loaded.config) == 5
    assert policies(loaded.config) == Policies("tombstone", "tombstone")


def test_the_agents_policy_wins_key_by_key(tmp_path: Path) -> None:
    loaded = load_config(
        folders.folder(
            tmp_path,
            policy={"semantic_rejection": "tombstone", "check_error": "fail_run"},
            agent={"kind": "surrogate", "policy": {"semantic_rejection": "return_last"}},
        )
    )
    assert policies(loaded.config) == Policies("fallback", "return_last", check_error="fail_run")


def test_under_repair_none_a_round_has_one_generation(tmp_path: Path) -> None:
    expect = {"repair": "none", "expectations": [SUM]}
    config = load_config(folders.folder(tmp_path, expect=expect)).config
    assert observes(config)
    assert iterations(config) == 1


def test_an_agent_that_reads_no_feedback_is_asked_again_without_it(tmp_path: Path) -> None:
    loaded = load_config(folders.folder(tmp_path, expect={"repair": "auto"}))
    assert loaded.expect is not None
    assert loaded.expect.repair == "retry"
    agent = {"kind": "surrogate", "expect": {"repair": "auto"}}
    (said,) = problems(tmp_path / "b", agent=agent)
    assert said.endswith(
        "agent.expect.repair: 'auto', but the agent surrogate reads no feedback; use repair: retry"
    )


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"expect": {"repare": "none"}}, "expect: unknown key 'repare'; did you mean repair? "),
    ({"defaults": {"expect": {"repair": "non"}}}, "defaults.expect.repair: 'non'; did you mean"),
    ({"expect": {"expectations": [SUM | {"field": "x"}]}},
     "expect.expectations[0]: sum: expression reads the whole record"),
    ({"expect": {"expectations": [SUM, SUM]}},
     "expect.expectations[1]: sum: two rules share this id"),
    ({"expect": {"suite": "sheared"}},
     "expect.suite: 'sheared' is not found; did you mean shared?"),
    ({"expect": {"suite": "shared", "expectations": [SUM]}},
     "expect.suite: suite and expectations are both given"),
    ({"expectations": [LOW | {"field": "z"}]}, "expectations[0]: low: field: unknown field 'z'"),
    ({"parameters": on_x(LOW | {"field": "x"})},
     "parameters.x.expectations[0]: own file: field x: expectations: field: 'x'; its place"),
    ({"expect": {"expectations": [SUM | {"id": "stable"}]}},
     "expect.expectations[0]: stable: a verifier has this name; give the rule another id"),
    ({"expectations": [SUM | {"id": "bounds"}]},
     "expectations[0]: bounds: a check of the parameters has this name"),
    ({"expectations": [SUM | {"id": "step"}]},
     "expectations[0]: step: a check of the parameters has this name"),
    ({"expectations": [{"type": "distinct", "field": "candidates", "scope": "batch"}]},
     "expectations[0]: expectations[0] distinct: scope: batch is one proposal, and distinct"),
    ({"parameters": on_x(SUM)}, "parameters.x.expectations[0]: sum: expression reads the whole"),
    ({"expect": {"repair": "none"}}, "expect.repair: none without rules checks nothing"),
    ({"expect": {"repair": "none", "max_iterations": 2, "expectations": [SUM]}},
     "expect.max_iterations: 2 under repair: none"),
    ({"expect": {"expectations": [JUDGED]}},
     "expect.expectations[0]: expectations[0] llm_judge: llm_judge: no judge is configured"),
    ({"judge": {"model": "m", "url": "http://a/v1"}, "expect": {"expectations": [SUM]}},
     "judge: no rule is judged; add a rule of type llm_judge, or leave judge out"),
    ({"expect": {"on_exhausted": "fail"}, "policy": {"structural_failure": "fallback"}},
     "expect.on_exhausted: 'fail', which is short for structural_failure: tombstone, but policy."),
    ({"parameters": PARAMETERS | {"rationale": PARAMETERS["x"]}},
     "parameters.rationale: 'rationale' is what a rule calls the agent's reasons"),
    ({"parameters": PARAMETERS | {"expect": PARAMETERS["x"]}},
     "parameters.expect: 'expect' is what a guard calls the verdict"),
    ({"simulation": folders.plain()["simulation"] | {"guard": {"condition": "expct.ok == true"}}},
     "simulation.guard.condition: condition 'expct.ok == true': unknown field 'expct'; did you"),
    ({"simulation": folders.plain()["simulation"] | {"guard": {"condition": "1 < 2"}}},
     "simulation.guard.condition: condition '1 < 2'"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), REFUSED, ids=[said[:60] for _, said in REFUSED])
def test_what_cannot_be_meant_is_refused_at_its_place(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    suite(tmp_path, "shared", {"expectations": [SUM]})
    (found,) = problems(tmp_path, **changes)
    line, _, rest = found.partition(", ")
    assert line.startswith("line ")
    assert rest.startswith(said)


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": {"model": "m", "url": "http://a/v1"}},
        {"agent": {"kind": "openai", "model": "m", "url": "http://a/v1"}},
    ],
    ids=["of its own", "the agent's"],
)
def test_judged_rules_hold_where_there_is_a_judge(tmp_path: Path, changes: dict[str, Any]) -> None:
    loaded = load_config(folders.folder(tmp_path, expectations=[JUDGED], **changes))
    assert loaded.expect is not None
    assert [rule.judged for rule in loaded.expect.suite.rules] == [True]
    data = loaded.config.model_dump(mode="json")
    assert compiled(kept(loaded.expect), data, tmp_path) is not None


def test_problems_of_a_suite_name_their_own_file_and_line(tmp_path: Path) -> None:
    rules = [SUM, {"type": "value_between", "field": "x", "params": {"min": 2, "max": 1}}]
    suite(tmp_path, "shared", {"expectations": rules})
    (found,) = problems(tmp_path, expect={"suite": "shared"})
    assert f"expect.suite: {tmp_path / 'rules' / 'shared.yaml'}, line 6: " in found


def test_rules_and_all_else_are_refused_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, rounds=0, expect={"expectations": [SUM | {"severity": "fatal"}]})
    assert len(found) == 2
    assert "rounds: found 0" in found[0]
    assert "sum: unknown severity 'fatal'" in found[1]


def test_a_broken_file_of_checks_is_named(tmp_path: Path) -> None:
    directory = folders.folder(tmp_path, expect={"expectations": [SUM]})
    (directory / "checks").mkdir()
    (directory / "checks" / "mine.py").write_text("from checks import check\n@check('a b')\ndef f")
    with pytest.raises(ConfigError) as error:
        load_config(directory)
    assert "mine.py" in str(error.value)


def test_the_rules_of_a_run_compile_again_from_its_ledger_alone(tmp_path: Path) -> None:
    suite(tmp_path, "shared", {"fields": [{"id": "x", "expectations": [LOW]}]})
    loaded = load_config(folders.folder(tmp_path, expect={"suite": "shared"}))
    rules = kept(loaded.expect)
    (tmp_path / "rules" / "shared.yaml").unlink()
    again = compiled(rules, loaded.config.model_dump(mode="json"), tmp_path)
    assert again is not None
    assert [(rule.id, rule.source) for rule in again.rules] == [("low", "suite shared, field x")]
    assert again.judge({"x": 0.7, "y": 0.1}).failed == ("low",)


def test_a_run_without_rules_has_none(tmp_path: Path) -> None:
    loaded = load_config(folders.folder(tmp_path))
    assert loaded.expect is None
    assert compiled(kept(None), {}, tmp_path) is None
