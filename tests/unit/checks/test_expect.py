"""The block as a whole: defaults, routes, merging, refusals. What one entry may be: test_suite."""

from __future__ import annotations

from typing import Any

import pytest

from checks import template
from checks.declared import Fields
from checks.expect import Around, Expect, Prompt, read_expect
from checks.suite import SuiteError
from checks.world import World

RULE = {"type": "not_null", "field": "why"}
FILE: dict[str, Any] = {
    "fields": [
        {"id": "why", "type": "string", "expectations": [{"id": "there", "type": "not_null"}]},
        {"id": "cfl", "type": "number"},
    ],
    "expectations": [{"id": "low", "type": "expression", "params": {"condition": "cfl < 1"}}],
}
WORLD = World(fields=Fields.of(["why", "cfl"]), references=frozenset())
AROUND = Around(
    WORLD, suites={"shared": FILE, "empty": {"fields": []}}, prompts={"fix.md": "{failed_lines}"}
)


def block(given: object, defaults: object = None, around: Around = AROUND) -> Expect:
    found = read_expect(given, around, defaults=defaults)
    assert found is not None
    return found


def refused(given: object, defaults: object = None, around: Around = AROUND) -> tuple[str, ...]:
    with pytest.raises(SuiteError) as error:
        read_expect(given, around, defaults=defaults)
    return error.value.problems


def test_what_is_left_out_has_its_default() -> None:
    found = block({})
    assert (found.repair, found.structural, found.max_iterations) == ("auto", "retry", 2)
    assert (found.on_exhausted, found.judge_budget, found.suite.rules) == ("fallback", None, ())


def test_without_a_block_nothing_is_expected() -> None:
    assert read_expect(None, Around(WORLD, own=FILE)) is None


def test_a_block_merges_with_the_defaults_key_by_key_and_wins() -> None:
    defaults = {"repair": "auto", "max_iterations": 3, "on_exhausted": "fail"}
    found = block({"max_iterations": 4, "expectations": [RULE]}, defaults)
    assert (found.repair, found.max_iterations, found.on_exhausted) == ("auto", 4, "fail")
    assert len(found.suite.rules) == 1


@pytest.mark.parametrize(
    ("given", "around", "sources"),
    [
        ({"expectations": [RULE]}, AROUND, ["inline"]),
        ({"suite": "shared"}, AROUND, ["suite shared, field why", "suite shared"]),
        ({}, Around(WORLD, own=FILE), ["own file, field why", "own file"]),
    ],
    ids=["inline", "by name", "own file"],
)
def test_rules_come_by_one_of_three_routes_in_the_order_they_run(
    given: object, around: Around, sources: list[str]
) -> None:
    assert [rule.source for rule in block(given, around=around).suite.rules] == sources


def test_an_authored_prompt_is_a_name_or_the_text_itself() -> None:
    assert block({"repair": {"prompt": "fix.md"}}).repair == Prompt("fix.md", "{failed_lines}")
    text = "Again: {failed_lines}"
    assert block({"structural": {"prompt": text}}).structural == Prompt(text, text)


REFUSED: list[tuple[object, str]] = [
    ([RULE], "expect: [{'type': 'not_null', 'field': 'why'}]; it must be a mapping, not a list"),
    ({"max_iteration": 3}, "unknown key 'max_iteration'; did you mean max_iterations?"),
    ({"expectations": []}, "expectations: []; fill the list, or leave the key out"),
    ({"expectations": {"type": "x"}}, "it must be a list, not an object"),
    ({"expectations": [RULE], "suite": "shared"}, "suite and expectations are both given"),
    ({"suite": ""}, "suite: ''; it must be the name"),
    ({"suite": "shred"}, "suite: 'shred' is not found; did you mean shared? there are"),
    ({"suite": "empty"}, "suite empty: has no rules"),
    ({"repair": "always"}, "repair: 'always'; it is none, retry, auto or {prompt: …}"),
    ({"repair": False}, "in YAML no and off are false, quote the word"),
    ({"repair": None}, "repair: null"),
    ({"repair": {"template": "x"}}, "a mapping with template; it has the one key prompt"),
    ({"repair": {"prompt": 3}}, "prompt: 3; it must be a non-empty string"),
    ({"repair": {"prompt": "fx.md"}}, "prompt 'fx.md' is not found; there are fix.md"),
    ({"repair": {"prompt": "{failures}"}}, "unknown placeholder {failures}; the placeholders are"),
    ({"structural": "none"}, "structural: 'none'; it is retry, auto or {prompt: …}"),
    ({"repair": "none", "expectations": [RULE], "structural": "auto"}, "under repair: none"),
    ({"repair": "none", "expectations": [RULE], "max_iterations": 2}, "under repair: none"),
    ({"repair": "none", "expectations": [RULE], "on_exhausted": "fail"}, "under repair: none"),
    ({"repair": "none"}, "repair: none without rules checks nothing"),
    ({"max_iterations": 0}, "max_iterations: 0; it must be a whole number from 1 to 10"),
    ({"max_iterations": "3"}, "max_iterations: '3'; it must be a whole number"),
    ({"max_iterations": True}, "max_iterations: true"),
    ({"on_exhausted": "retrn_last"}, "did you mean return_last?"),
    ({"judge_budget": 0}, "judge_budget: 0; it must be a whole number, at least 1"),
    ({"judge_budget": 3, "expectations": [RULE]}, "judge_budget: no rule is judged"),
]


@pytest.mark.parametrize(("given", "problem"), REFUSED)
def test_a_block_that_cannot_be_meant_is_refused(given: object, problem: str) -> None:
    assert any(problem in one for one in refused(given))


def test_all_that_is_wrong_is_said_at_once_with_the_rule_it_is_about() -> None:
    given = {
        "repair": "allways",
        "max_iterations": 11,
        "expectations": [{"id": "one", "type": "not_null"}, {"type": "nothing", "field": "why"}],
    }
    problems = refused(given)
    assert [problem.split(":")[0] for problem in problems] == [
        "repair", "max_iterations", "one", "expectations[1] nothing",
    ]  # fmt: skip


def test_defaults_are_held_to_the_same_keys() -> None:
    assert refused(None, {"repairs": "auto"}) == (
        "defaults.expect: unknown key 'repairs'; did you mean repair? the keys are repair, "
        "structural, max_iterations, structural_budget, on_exhausted, judge_budget, "
        "expectations, suite",
    )


def test_a_merge_that_gives_two_routes_is_refused() -> None:
    assert "both given" in refused({"suite": "shared"}, {"expectations": [RULE]})[0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"fields": [{"id": "why", "expectations": [RULE]}]}, "its place names the field"),
        ({"fields": [{"id": "why", "items": {"properties": {"text": {"expectations": []}}}}]},
         "rules on why.items.properties.text, inside the field why"),
        ({"fields": [{"id": "why", "expectations": {"type": "not_null"}}]}, "it must be a list"),
        ({"fields": [{"id": "why", "expectations": [{"type": "no_null_fields"}]}]},
         "reads the whole record and takes no field; remove field: 'why'"),
        ({"fields": "why"}, "fields: 'why'; it must be a list"),
        ({"fields": ["why"]}, "fields: 'why'; each is a mapping with an id"),
        ({"repair": "auto"}, "unknown key 'repair'; a file of rules has name, version"),
    ],
)  # fmt: skip
def test_a_file_whose_rules_nobody_could_reach_is_refused(
    change: dict[str, Any], problem: str
) -> None:
    around = Around(WORLD, suites={"q": {"expectations": [RULE], **change}})
    assert any(problem in one for one in refused({"suite": "q"}, around=around))


def test_an_agent_that_cannot_repair_keeps_an_inherited_policy_out_and_refuses_its_own() -> None:
    around = Around(WORLD, cannot_repair="agent kind 'replay' gives the same answer again")
    inherited = {"repair": "auto", "max_iterations": 3}
    assert block({"expectations": [RULE]}, inherited, around).repair == "none"
    assert read_expect(None, around, defaults=inherited) is None
    problem = refused({"repair": "auto", "expectations": [RULE]}, around=around)[0]
    assert problem.endswith("gives the same answer again; use repair: none")


def test_a_field_cannot_have_the_name_verdicts_are_attached_under() -> None:
    around = Around(World(fields=Fields.of(["why", "expect"])))
    assert "the verdict is attached under this key" in refused({}, around=around)[0]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{original_prompt} {{literal}} {response_json}", ""),
        ("fix {failed_lines", "unbalanced braces"),
        ("fix failed_lines}", "unbalanced braces"),
        ("{}", "unknown placeholder {}"),
        ("{0}", "unknown placeholder {0}"),
        ("{original_prompt.__class__}", "unknown placeholder {original_prompt.__class__}"),
        ("{failed_lines!r}", "{failed_lines} with a format"),
        ("{failed_lines:>9}", "{failed_lines} with a format"),
    ],
)
def test_a_template_has_four_placeholders_and_nothing_else(text: str, fault: str) -> None:
    found = template.faults(text)
    assert fault in found[0] if fault else found == []
