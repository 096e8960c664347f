"""Every example of the pages on rules: what is printed is what the code answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import folders
import pages
from campaign.configfile import LoadedConfig, load_config
from campaign.yamlfile import read_text
from checks import Status, Suite, Verdict, compile_suite
from checks.custom import discover
from checks.finding import Severity
from checks.judge import Counted, Judge, Question
from checks.manual import MADE, PARAMS, SAYS, rendered
from checks.ruletype import RuleType, Scope
from checks.suite import SuiteError
from checks.world import BUILT_IN, KEYS
from pages import Block

DOCS = Path(__file__).parents[3] / "docs"
PAGE, HOW_TO = DOCS / "reference" / "rules.md", DOCS / "how-to" / "write-rules.md"
PAGES = (PAGE, HOW_TO)
PIECE = re.compile(
    r"^#+ (?P<heading>.*)$|^```(?P<language>\w*)\n(?P<body>(?s:.*?))^```$|^\| (?P<row>`.*) \|$",
    re.MULTILINE,
)
FILE = re.compile(r"# ((?:rules|checks)/[\w.]+|campaign\.yaml)\n")
CALLS = 2  # the judge's budget in a row without replies


@dataclass
class Example:
    """A rule, what it is put to, and what the page says of that: an outcome, or a cell."""

    where: str
    rules: list[Any]
    given: list[Any]
    said: Any


@dataclass
class Page:
    examples: list[Example] = field(default_factory=list)
    rows: list[Example] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)  # name, text


def pieces(path: Path) -> Iterator[tuple[str, str, str]]:
    for found in PIECE.finditer(path.read_text(encoding="utf-8")):
        kind = "heading" if found["heading"] else "row" if found["row"] else "block"
        yield kind, found["language"] or "", found["heading"] or found["row"] or found["body"]


def read(path: Path) -> Page:
    page, heading, rules, given = Page(), "", list[Any](), list[Any]()
    for kind, language, text in pieces(path):
        if kind == "heading":
            _close(page, heading, rules, given)
            heading, rules, given = text.strip("`"), [], []
        elif kind == "row":
            cells = [cell.strip() for cell in text.split(" | ")]
            if heading == "What is refused":
                page.refused.append((code(cells[0]), cells[1]))
            elif rules and text.startswith(("`{", "`[{")):
                records = [json.loads(code(cell)) for cell in cells[:-1]]
                page.rows.append(Example(heading, rules, records, cells[-1]))
        elif file := FILE.match(text):
            page.files.append((file[1], text))
        elif language == "yaml":
            _close(page, heading, rules, given)
            rules, given = plain(text), []
        elif language == "json":
            given.append(json.loads(text))
    _close(page, heading, rules, given)
    return page


def _close(page: Page, heading: str, rules: list[Any], given: list[Any]) -> None:
    """The last JSON after a rule is the outcome of what stands before it."""
    if given:
        assert len(given) > 1, heading
        page.examples.append(Example(heading, rules, given[:-1], given[-1]))


def code(cell: str) -> str:
    assert cell[0] == cell[-1] == "`", cell
    return cell[1:-1]


def plain(text: str) -> Any:
    document = read_text(text)
    assert not document.problems
    return document.data


def at(page: Path) -> list[Example]:
    return [*READ[page].examples, *READ[page].rows]


READ = {page: read(page) for page in PAGES}
PARAMETERS: dict[Path, Any] = {
    page: plain(next(text for name, text in READ[page].files if name == "campaign.yaml"))[
        "parameters"
    ]
    for page in PAGES
}


def written(page: Path, folder: Path) -> Path:
    """A campaign's folder with the suites and checks of a page."""
    for name, text in READ[page].files:
        if name != "campaign.yaml":
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Path, Path]:
    return {page: written(page, tmp_path_factory.mktemp(page.stem)) for page in PAGES}


@cache
def own(folder: Path) -> Mapping[str, RuleType]:
    return discover(folder / "checks", installed=False)


def compiled(page: Path, rules: list[Any], folder: Path) -> Suite:
    bounds = {n: (p["min"], p["max"]) for n, p in PARAMETERS[page].items() if "min" in p}
    return compile_suite(rules, bounds=bounds, types=own(folder), judge=())


def judged(suite: Suite, given: list[Any], history: list[Any]) -> Verdict:
    if suite.rules[0].judged:
        return replied(suite, *given)
    (record,) = given
    if suite.rules[0].scope is Scope.BATCH:
        return suite.judge_proposal(record)
    batch = record if isinstance(record, list) else [record]
    return suite.judge_batch(batch, history=history)[-1]


def replied(suite: Suite, record: object, replies: list[object]) -> Verdict:
    left = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]

    async def ask(_: Question) -> str:
        return left.pop(0)

    judge = Judge(Counted(ask, budget=len(replies) or CALLS))
    verdict = asyncio.run(judge.judge(suite, record))
    assert not left
    return verdict


def answered(page: Path, example: Example, folder: Path) -> Verdict:
    suite, given = compiled(page, example.rules, folder), example.given
    history: list[Any] = []
    if suite.rules[0].type == "distinct_from_history":
        history, given = past(page, example), given[-1:]
    return judged(suite, given, history)


def past(page: Path, example: Example) -> list[Any]:
    (shown,) = (one for one in READ[page].examples if one.where == example.where)
    found: list[Any] = shown.given[0]
    return found


def named(example: Example) -> str:
    return f"{example.where}: {json.dumps(example.given)[:60]}"


def every(kind: str) -> list[Any]:
    return [
        pytest.param(page, one, id=f"{page.stem}: {named(one)}")
        for page in PAGES
        for one in getattr(READ[page], kind)
    ]


@pytest.mark.parametrize(("page", "example"), every("examples"))
def test_an_outcome_is_what_the_page_prints(
    page: Path, example: Example, made: Mapping[Path, Path]
) -> None:
    found = answered(page, example, made[page]).as_record()
    outcomes = found["outcomes"]
    assert isinstance(outcomes, list)
    assert example.said == (found if "outcomes" in example.said else outcomes[0])


@pytest.mark.parametrize(("page", "example"), every("rows"))
def test_a_row_says_what_the_rule_says(
    page: Path, example: Example, made: Mapping[Path, Path]
) -> None:
    (finding,) = answered(page, example, made[page]).findings
    detail = example.said.removeprefix("passes").removeprefix(": ")
    passes = example.said.startswith("passes")
    assert (finding.passed, finding.reason) == (passes, code(detail) if detail else "")


@pages.each(pages.blocks("docs/how-to/write-rules.md", "json", "python"))
def test_a_block_of_the_page_is_part_of_an_example_or_a_file_it_needs(block: Block) -> None:
    """So the tests above and below compare it; a suite is compiled with the page's checks."""
    said = [one for example in READ[HOW_TO].examples for one in (*example.given, example.said)]
    files = [text for _, text in READ[HOW_TO].files]
    assert block.text in files if block.file else json.loads(block.text) in said


def test_a_judge_that_cannot_tell_rejects_nothing(made: Mapping[Path, Path]) -> None:
    rows = [row for row in READ[PAGE].rows if row.where == "llm_judge"]
    said = [answered(PAGE, row, made[PAGE]).findings[0].status for row in rows]
    reject = Status.REJECT
    assert said == [reject, Status.PASS, Status.ERROR, Status.SKIPPED, reject, reject]


@pytest.mark.parametrize(("entry", "refusal"), READ[PAGE].refused)
def test_what_the_page_says_is_refused_is_refused_so(entry: str, refusal: str) -> None:
    kinds = dict.fromkeys(("velocity", "dt", "cells"), "number")
    bounds = {"dt": (0.001, 0.1)}
    with pytest.raises(SuiteError, match=re.escape(refusal)):
        compile_suite(
            [plain(entry)], fields={**kinds, "scheme": "text", "rationale": "text"}, bounds=bounds
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_part_of_a_configuration_is_accepted(page: Path, made: Mapping[Path, Path]) -> None:
    for name, text in READ[page].files:
        if name == "campaign.yaml":
            loaded(page, made[page], **plain(text))


def loaded(page: Path, folder: Path, **changes: Any) -> LoadedConfig:
    simulation = folders.plain()["simulation"] | changes.pop("simulation", {})
    parameters = changes.pop("parameters", PARAMETERS[page])
    config = {**changes, "parameters": parameters, "simulation": simulation}
    return load_config(folders.folder(folder, **config))


def test_rules_come_from_the_first_place_there_is(made: Mapping[Path, Path]) -> None:
    own, suite = (plain(text) for name, text in READ[PAGE].files[1:] if name == "campaign.yaml")

    def ids(**changes: Any) -> list[str]:
        expect = loaded(PAGE, made[PAGE], **changes).expect
        assert expect is not None
        return [rule.id for rule in expect.suite.rules]

    inline = {"expectations": [{"id": "given", "type": "not_null", "field": "dt"}]}
    assert ids(**own) == ["moderate", "courant"]
    assert ids(**own, **suite) == ["cells_on_ranks", "courant"]
    assert ids(**own, expect=inline) == ["given"]


@pages.each(pages.blocks("docs/how-to/write-rules.md", "csv"))
def test_the_candidates_of_the_page_can_be_checked(made: Mapping[Path, Path], block: Block) -> None:
    folder = made[HOW_TO]
    loaded(HOW_TO, folder, expect={"suite": "flow"})
    (folder / "candidates.csv").write_text(block.text)
    said = folders.simgate("check", folder, "--records", folder / "candidates.csv", "--json")
    assert said.exit_code == 0, said.output
    failed = [one["expect"]["failed"] for one in json.loads(said.output)["records"]]
    assert failed == [[], ["courant"], ["tight", "fast_transform"]]


def test_the_tables_are_made_from_the_types() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == rendered(page), "run python -m checks.manual"
    assert [found[2] for found in MADE.finditer(page)] == ["types", *BUILT_IN]


def test_every_type_and_parameter_is_described() -> None:
    assert list(SAYS) == list(BUILT_IN)
    kinds = {name: list(kind.params) for name, kind in BUILT_IN.items() if kind.params}
    assert {name: list(says) for name, says in PARAMS.items()} == kinds


def test_every_type_key_and_severity_is_on_the_page() -> None:
    shown = {example.where for example in at(PAGE)}
    assert set(BUILT_IN) <= shown
    page = PAGE.read_text(encoding="utf-8")
    for word in (*KEYS, *Severity):
        assert f"\n| `{word}` |" in page
