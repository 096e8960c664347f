"""Where in a campaign's file and folder its rules stand, and what is said of a place there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.crossing import Found, Plain
from campaign.gateconfig import ENDINGS
from campaign.problems import ConfigError, Loc, clip

if TYPE_CHECKING:
    from campaign.yamlfile import Document

RULES = "rules"
"""The folder, in that of the campaign, of named suites."""

BLOCKS: tuple[Loc, ...] = (("defaults", "expect"), ("expect",), ("agent", "expect"))
"""Where a block may stand; of a key that is given twice the later holds."""

_SUFFIXES = (".yaml", ".yml")
_WORD = re.compile(r"[a-z_]+")


def at(data: object, loc: Loc) -> object:
    for part in loc:
        data = data.get(str(part)) if isinstance(data, Mapping) else None
    return data


def kind(parameter: object) -> str:
    match parameter:
        case {"type": "float" | "int"}:
            return "number"
        case {"type": "categorical", "choices": [*choices]}:
            kinds = {
                "boolean" if isinstance(one, bool) else "text" if isinstance(one, str) else "number"
                for one in choices
            }
            return kinds.pop() if len(kinds) == 1 else "any"
        case _:
            return "any"


def own_file(data: Plain) -> Mapping[str, object] | None:
    """The rules that stand in the campaign's own file, as a file of rules; ``None`` for none."""
    parameters = data.get("parameters")
    named = parameters if isinstance(parameters, Mapping) else {}
    on_fields = {
        str(name): parameter.get("expectations") if isinstance(parameter, Mapping) else None
        for name, parameter in named.items()
    }
    own = data.get("expectations")
    if own is None and not any(rules is not None for rules in on_fields.values()):
        return None
    fields = [
        {"id": name} if rules is None else {"id": name, "expectations": rules}
        for name, rules in on_fields.items()
    ]
    return {"fields": fields} if own is None else {"fields": fields, "expectations": own}


class Files:
    """What a block names in the campaign's folder."""

    def __init__(self, folder: Path, block: Mapping[str, object]) -> None:
        self.problems: list[Found] = []
        self.paths = {
            path.stem: path
            for suffix in _SUFFIXES
            for path in sorted((folder / RULES).glob(f"*{suffix}"))
        }
        self.suites: dict[str, Plain] = {name: {} for name in sorted(self.paths)}
        self.documents: dict[str, Document] = {}
        name = block.get("suite")
        if isinstance(name, str) and name in self.paths:
            self._read(name)
        self.prompts = {
            reference: text
            for key in ("repair", "structural")
            if isinstance(reference := at(block, (key, "prompt")), str)
            and (text := prompt_text(folder, reference)) is not None
        }

    def _read(self, name: str) -> None:
        from campaign.yamlfile import read_bytes

        path = self.paths[name]
        try:
            document = read_bytes(path.read_bytes())
        except (ConfigError, OSError) as error:
            said = error.problems if isinstance(error, ConfigError) else [error.strerror]
            self.problems += [(("suite",), f"{path}: {one}") for one in said]
            return
        self.problems += [(("suite",), f"{path}: {one}") for one in document.problems]
        self.documents[name] = document
        if isinstance(document.data, Mapping):
            self.suites[name] = document.data
        else:
            self.problems.append((("suite",), f"{path}: a file of rules is a mapping"))

    def line(self, name: str, place: Loc) -> str:
        """Where something stands in a suite's file, for a message."""
        document = self.documents.get(name)
        lines = {} if document is None else document.lines
        found = next(
            (lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), 1
        )
        return f"{self.paths[name]}, line {found}"


def prompt_text(folder: Path, reference: str) -> str | None:
    """The text of a file that a repair names, ``None`` where there is no such file."""
    try:
        return (folder / reference).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def placed(problem: str, *, data: Plain, blocks: Mapping[Loc, Plain], files: Files) -> Found:
    """A problem at its place in the campaign's file."""
    from checks.sources import OWN, Placed

    if not isinstance(problem, Placed):
        return located(problem, (), blocks)
    source = problem.source
    if source.file == "":
        return (*_giver(blocks, str(source.place[0])), *source.place), str(problem)
    if source.file != OWN:
        where = files.line(source.file, source.place)
        return (*_giver(blocks, "suite"), "suite"), f"{where}: {problem}"
    if source.place[0] != "fields":
        return source.place, str(problem)
    parameters = data.get("parameters")
    names = list(parameters) if isinstance(parameters, Mapping) else []
    return ("parameters", names[int(source.place[1])], *source.place[2:]), str(problem)


def located(text: str, loc: Loc, blocks: Mapping[Loc, Plain]) -> Found:
    """A problem that begins with the key it is about."""
    word = _WORD.match(text)
    key = word[0] if word else ""
    giver = loc or _giver(blocks, key)
    if not loc and any(key in block for block in blocks.values()):
        return (*giver, key), text.removeprefix(f"{key}: ")
    return giver, text.removeprefix(f"{key}: ")


def _giver(blocks: Mapping[Loc, Plain], key: str) -> Loc:
    """The block whose word on a key holds."""
    return next((loc for loc in reversed(BLOCKS) if key in blocks.get(loc, {})), ("expect",))


def endings(data: Plain, blocks: Mapping[Loc, Plain]) -> Iterator[Found]:
    """``on_exhausted`` and the policy it is short for, set differently."""
    giver = _giver(blocks, "on_exhausted")
    word = blocks.get(giver, {}).get("on_exhausted")
    ending = ENDINGS.get(word) if isinstance(word, str) else None
    for name in ("structural_failure", "semantic_rejection"):
        for loc in (("agent", "policy", name), ("policy", name)):
            said = at(data, loc)
            if ending is not None and isinstance(said, str):
                if said != ending:
                    yield (
                        (*giver, "on_exhausted"),
                        f"{word!r}, which is short for {name}: {ending}, but "
                        f"{'.'.join(map(str, loc))} is {clip(said)}; leave one of them out",
                    )
                break


def guard(data: Plain) -> Iterator[Found]:
    """What is wrong with the guard of the simulation."""
    place: Loc = ("simulation", "guard", "condition")
    text, parameters = at(data, place), data.get("parameters")
    if not isinstance(text, str) or not isinstance(parameters, Mapping):
        return
    from checks.declared import Fields
    from checks.expression import Condition, ConditionError

    kinds = {str(name): kind(parameter) for name, parameter in parameters.items()}
    try:
        Condition.of(text, Fields.of({**kinds, "expect": "object"}))
    except ConditionError as fault:
        yield place, str(fault)
