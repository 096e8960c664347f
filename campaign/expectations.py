"""A campaign's rules: found in its configuration and folder, compiled, refused with their lines.

Works on plain data, as :mod:`campaign.crossing` does, so that what is wrong with the rules comes
out together with everything else. The compiled rules of a run come from its ledger alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.crossing import Found, Plain
from campaign.events import RuleRecord
from campaign.grounding import RATIONALE, references
from campaign.judging import CANDIDATES
from campaign.problems import ConfigError, Loc, Problem
from campaign.ruleplaces import BLOCKS, Files, at, endings, guard, kind, located, own_file, placed
from checks.domain import DERIVED

if TYPE_CHECKING:
    from checks.expect import Expect
    from checks.ruletype import RuleType
    from checks.suite import Suite
    from checks.world import World

CHECKS = "checks"
"""The folder, in that of the campaign, of checks of one's own."""

_DEAF = ("surrogate", "replay")  # agents that can be asked again but read no feedback


def resolve(data: Plain, folder: Path) -> tuple[Expect | None, list[Found]]:
    """The block that holds, its rules compiled, and every reason why it cannot be.

    Reads the suite that is named and imports the campaign's own checks.
    """
    blocks = {loc: block for loc in BLOCKS if isinstance(block := at(data, loc), Mapping)}
    found = [*guard(data), *endings(data, blocks)]
    own = own_file(data)
    if not any(blocks.values()) and own is None:
        return None, [*found, *_idle_judge(data, None)]
    from checks.expect import Around, read_expect, shape
    from checks.suite import SuiteError

    plain: dict[Loc, Mapping[str, object]] = {}
    for loc, block in blocks.items():
        refused = shape(block, str(loc[-1]))
        found += [located(text, loc, blocks) for text in refused]
        wrong = {key for key in block if shape({key: 0}, "")}
        plain[loc] = {key: value for key, value in block.items() if key not in wrong}
    inherited = {**plain.get(BLOCKS[0], {}), **plain.get(BLOCKS[1], {})}
    files = Files(folder, {**inherited, **plain.get(BLOCKS[2], {})})
    found += files.problems
    try:
        around = Around(
            world=_world(data, folder),
            own=own,
            suites=files.suites,
            prompts=files.prompts,
            cannot_steer=_cannot_steer(data),
        )
        expect = read_expect(plain.get(BLOCKS[2], {}), around, defaults=inherited)
    except SuiteError as error:
        place = partial(placed, data=data, blocks=blocks, files=files)
        return None, [*found, *map(place, error.problems)]
    except ConfigError as error:  # of the checks' files
        return None, [*found, *(((), problem.message) for problem in error.problems)]
    if expect is not None:
        place = partial(placed, data=data, blocks=blocks, files=files)
        found += map(place, _taken_names(expect, data))
    return expect, [*found, *_idle_judge(data, expect)]


def _taken_names(expect: Expect, data: Plain) -> Iterator[str]:
    """Rules that are named like something else a candidate is put to."""
    from checks.sources import Placed

    verifiers = data.get("verifiers")
    named = {
        name: "a verifier"
        for one in (verifiers if isinstance(verifiers, list) else ())
        if isinstance(one, Mapping) and isinstance(name := one.get("name"), str)
    } | dict.fromkeys(DERIVED, "a check of the parameters")
    for rule, (_, source) in zip(expect.suite.rules, expect.entries, strict=True):
        if what := named.get(rule.id):
            text = f"{rule.id}: {what} has this name; give the rule another id"
            yield Placed(text, source)


def _idle_judge(data: Plain, expect: Expect | None) -> Iterator[Found]:
    rules = () if expect is None else expect.suite.rules
    if isinstance(data.get("judge"), Mapping) and not any(rule.judged for rule in rules):
        yield ("judge",), "no rule is judged; add a rule of type llm_judge, or leave judge out"


def kept(expect: Expect | None) -> list[RuleRecord]:
    """The rules of a block in the order they run, as a ledger keeps them."""
    entries = [] if expect is None else expect.entries
    return [RuleRecord(dict(e), source.name) for e, source in entries if isinstance(e, Mapping)]


def compiled(rules: Sequence[RuleRecord], data: Plain, folder: Path) -> Suite | None:
    """The rules of a run, ``None`` when it has none.

    Raises ``ConfigError`` when they no longer compile, as when a check's file is gone.
    """
    if not rules:
        return None
    from checks.sources import Source
    from checks.suite import Suite, compile_rules

    entries: list[tuple[object, Source]] = [(one.entry, Source(one.source)) for one in rules]
    found, problems = compile_rules(entries, _world(data, folder))
    if problems:
        raise refusal(problems, "the rules of this run")
    return Suite(found)


def custom_types(*folders: Path) -> Mapping[str, RuleType]:
    """The types of rules of one's own: in the first of the folders that is there, and installed.

    Raises ``ConfigError`` when a check cannot be used.
    """
    from checks.custom import CheckError, discover

    here = next((folder for folder in folders if folder.is_dir()), None)
    try:
        return discover(here)
    except CheckError as error:
        raise refusal([str(error)], str(here or "installed checks")) from error


def refusal(problems: Sequence[str], source: str) -> ConfigError:
    """Problems without a place in a file, as the one exception commands know."""
    return ConfigError([Problem("", str(problem)) for problem in problems], source)


def _world(data: Plain, folder: Path) -> World:
    """What is known of a candidate before there is one; raises ``ConfigError``."""
    from checks.declared import Fields
    from checks.expect import VERDICT_KEY
    from checks.world import World

    own = custom_types(folder / CHECKS)
    parameters = data.get("parameters")
    named = [str(name) for name in parameters] if isinstance(parameters, Mapping) else []
    known = references(named, described=bool(data.get("description")))
    grounds = known if _has_judge(data) else (None, None)
    if not isinstance(parameters, Mapping):
        # Its own problem; nothing is known of any field.
        return World(own=own, references=grounds[0], proposal_references=grounds[1])
    kinds = {str(name): kind(parameter) for name, parameter in parameters.items()}
    kinds.pop(VERDICT_KEY, None)  # refused by that name
    bounds = {str(name): ends for name, one in parameters.items() if (ends := _range(one))}
    return World(
        fields=Fields.of({**kinds, RATIONALE: "text"}),
        proposal=Fields.of({RATIONALE: "text", CANDIDATES: "list"}),
        bounds=bounds,
        own=own,
        references=grounds[0],
        proposal_references=grounds[1],
    )


def _has_judge(data: Plain) -> bool:
    agent = data.get("agent")
    kind = agent.get("kind") if isinstance(agent, Mapping) else agent
    return kind == "openai" or isinstance(data.get("judge"), Mapping)


def _range(parameter: object) -> tuple[float, float] | None:
    match parameter:
        case {
            "type": "float" | "int",
            "min": int() | float() as low,
            "max": int() | float() as high,
        }:
            return (float(low), float(high)) if low < high else None
        case _:
            return None


def _cannot_steer(data: Plain) -> str:
    agent = data.get("agent")
    kind = agent.get("kind") if isinstance(agent, Mapping) else agent
    return f"the agent {kind} reads no feedback" if kind in _DEAF else ""
