"""What candidates would be held to: of a campaign, or of a file of rules that stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from campaign.config import CampaignConfig
from campaign.configfile import LoadedConfig, load_config
from campaign.expectations import CHECKS, custom_types, refusal
from campaign.gateconfig import observes
from campaign.grid import is_stepped
from campaign.judging import Layers, bounds
from campaign.problems import ConfigError, Problem
from campaign.yamlfile import FILE_NAME, read_bytes
from checks.domain import derived
from checks.finding import Layer, Severity

if TYPE_CHECKING:
    from campaign.yamlfile import Document

_KINDS: Mapping[object, str] = {
    "string": "text", "text": "text", "number": "number", "integer": "number",
    "boolean": "boolean", "array": "list", "list": "list", "object": "object",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleBook:
    """Rules and where they come from. ``config`` is None for a file of rules alone."""

    path: Path
    layers: Layers
    config: CampaignConfig | None = None
    observes: bool = False
    texts: tuple[str, ...] = ()  # fields that hold text


@dataclass(frozen=True, slots=True)
class Row:
    """One thing a candidate is put to, in the order of its layer."""

    id: str
    type: str
    layer: str
    severity: str
    scope: str
    reads: str
    source: str
    hint: str = ""
    row_condition: str = ""
    params: Mapping[str, object] = field(default_factory=dict)


def open_book(path: Path, overrides: Sequence[str] = ()) -> RuleBook:
    """Read a campaign, or a file of rules: a mapping with ``expectations`` or ``fields``.

    Raises ``ConfigError`` with every problem.
    """
    document = _rules_alone(path)
    if document is not None:
        if overrides:
            raise ConfigError([Problem("", "--set: a file of rules has no keys to set")], str(path))
        return _of_file(path, document)
    return of_config(load_config(path, overrides))


def of_config(loaded: LoadedConfig) -> RuleBook:
    """The rules of a campaign that was read."""
    config = loaded.config
    suite = None if loaded.expect is None or not loaded.expect.suite.rules else loaded.expect.suite
    texts = ("rationale", *(n for n, p in config.parameters.items() if _holds_text(p)))
    layers = Layers(bounds(config.parameters), suite)
    return RuleBook(loaded.path, layers, config, observes(config), texts)


def rows(book: RuleBook) -> Iterator[Row]:
    """Everything that would run, in its order."""
    if book.config is not None:
        yield from _derived(book.config)
    suite = book.layers.suite
    for rule in () if suite is None else suite.rules:
        passing = rule.passing
        reads = str(rule.selector) if rule.selector is not None else ""
        yield Row(
            id=rule.id,
            type=rule.type,
            layer=passing.layer.value,
            severity=rule.severity.value,
            scope=rule.scope.value,
            reads=reads or (rule.condition.text if rule.condition else "the whole record"),
            source=rule.source,
            hint=rule.hint,
            row_condition="" if rule.gate is None else rule.gate.text,
            params=rule.params,
        )
    for index, verifier in enumerate(() if book.config is None else book.config.verifiers):
        yield Row(
            id=verifier.name,
            type=verifier.kind,
            layer=Layer.VERIFIER.value,
            severity=Severity.ERROR.value,
            scope="record",
            reads="the parameters",
            source=f"verifiers[{index}]",
        )


def _derived(config: CampaignConfig) -> Iterator[Row]:
    def row(check: str, layer: Layer, scope: str, reads: str, source: str) -> Row:
        return Row(check, check, layer.value, Severity.ERROR.value, scope, reads, source)

    size = f"batch_size: {config.batch_size}"
    for check in derived(is_stepped(config.parameters)):
        match check:
            case "count":
                yield row(check, Layer.SHAPE, "batch", "the answer", size)
            case "distinct":
                yield row(check, Layer.DOMAIN, "record", "every parameter", "parameters")
            case _:
                yield row(check, Layer.SCHEMA, "record", "every parameter", "parameters")


def _holds_text(parameter: object) -> bool:
    choices = getattr(parameter, "choices", ())
    return bool(choices) and all(isinstance(choice, str) for choice in choices)


def _rules_alone(path: Path) -> Document | None:
    """The file when it is one of rules and no campaign; ``None`` when it is not, or not there."""
    try:
        if path.is_dir() or path.name == FILE_NAME:
            return None
        document = read_bytes(path.read_bytes())
    except (ConfigError, OSError, ValueError):
        return None  # read again, and refused, as a campaign
    data = document.data
    if not isinstance(data, dict) or {"parameters", "simulation", "objective"} & data.keys():
        return None
    return document if {"expectations", "fields"} & data.keys() else None


def _of_file(path: Path, document: Document) -> RuleBook:
    from checks.declared import Fields
    from checks.sources import entries_of_file
    from checks.suite import compile_rules
    from checks.world import World

    data = document.data
    assert isinstance(data, dict)
    problems: list[str] = [*map(str, document.problems)]
    entries = entries_of_file(data, path.name, problems)
    if not entries and not problems:
        problems.append("no rules; give its fields or itself expectations:")
    kinds = _declared(data)
    world = World(
        references=frozenset(),  # whether there is a judge is for a campaign to say
        fields=Fields.of(kinds) if kinds else None,
        own=custom_types(path.absolute().parent.parent / CHECKS, path.absolute().parent / CHECKS),
    )
    rules, refused = compile_rules(entries, world)
    if problems or refused:
        raise _placed([*problems, *refused], path, document)
    from checks.suite import Suite

    texts = tuple(name for name, kind in kinds.items() if kind == "text")
    return RuleBook(path, Layers((), Suite(rules)), texts=texts)


def _declared(data: Mapping[str, object]) -> dict[str, str]:
    """The fields a file declares, with what they hold."""
    fields = data.get("fields")
    return {
        str(item["id"]): _KINDS.get(item.get("type"), "any")
        for item in (fields if isinstance(fields, list) else ())
        if isinstance(item, Mapping) and "id" in item
    }


def _placed(problems: Sequence[str], path: Path, document: Document) -> ConfigError:
    from checks.sources import Placed

    if not any(isinstance(one, Placed) for one in problems):
        return refusal(problems, str(path))
    found = []
    for one in problems:
        place = one.source.place if isinstance(one, Placed) else ()
        lines = [document.lines.get(place[:end]) for end in range(len(place), 0, -1)]
        line = next((number for number in lines if number), None)
        found.append(Problem("", str(one), line))
    return ConfigError(found, str(path))
