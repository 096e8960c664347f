"""One entry of ``expectations:`` -> a rule, or everything that is wrong with the entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from checks import across
from checks.across import Across, Bounds
from checks.declared import Fields, Kind, nearest
from checks.evaluate import truth
from checks.expression import Condition, ConditionError
from checks.finding import Severity, Status
from checks.rule import Rule, keyer, runner
from checks.ruletype import RuleType, Scope, Test
from checks.selector import Each, Selector, Together, selector
from checks.values import clipped, kind_of, shown
from checks.world import EXPRESSION, GATE, JUDGE, KEYS, World, derived_id


class Refused(Exception):
    """Problems of one entry, each ``what: observed; what would be right``."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def label(entry: object, place: int) -> str:
    """What to call an entry in a message."""
    if isinstance(entry, Mapping):
        for key in ("id", "type"):
            if isinstance(name := entry.get(key), str) and name:
                return clipped(name, 60) if key == "id" else f"expectations[{place}] {name}"
    return f"expectations[{place}]"


def compiled(entry: object, world: World, source: str = "") -> Rule:
    """Compile one entry. Raises :class:`Refused`."""
    if not isinstance(entry, Mapping):
        raise Refused([f"{shown(entry)}; an entry of expectations is a mapping with a type"])
    kind = world.types().get(named) if isinstance(named := entry.get("type"), str) else None
    problems = [*_keys(entry, kind), *_type(entry, world), *_texts(entry)]
    severity = _level(entry, problems)
    scope = _scope(entry, problems)
    fields = world.fields if scope is Scope.RECORD else world.proposal
    params = entry.get("params")
    if not (params is None or isinstance(params, Mapping)):
        problems.append(f"params: {shown(params)}; it must be a mapping of names to values")
    if scope is Scope.BATCH and kind is not None and kind.name in across.TYPES:
        problems.append(
            f"scope: batch is one proposal, and {kind.name} compares candidates; leave it out"
        )
    given = dict(params) if isinstance(params, Mapping) else {}
    gate = _condition(given.pop(GATE, None), GATE, fields, problems)
    if kind is None:
        raise Refused(problems)
    reads = _selected(entry, kind, fields, problems)
    values = _values(kind, given, problems)
    condition = None
    if kind.name == EXPRESSION and "condition" in given:
        condition = _condition(given["condition"] or "", "condition", fields, problems)
    if kind.name == JUDGE:
        problems += _judge(values, world, scope)
    question = None if problems else _built(kind, values, reads, world, problems)
    if problems:
        raise Refused(problems)
    rule = Rule(
        id=str(entry.get("id") or derived_id(entry)),
        type=kind.name,
        severity=severity,
        hint=str(entry.get("hint") or ""),
        scope=scope,
        selector=reads,
        params=values,
        source=source,
        gate=gate,
        test=_expression(condition) if condition is not None else _of(question, Test),
        across=_of(question, Across),
        condition=condition,
    )
    return _running(rule)


def _running(rule: Rule) -> Rule:
    return replace(rule, run=runner(rule), keyed=keyer(rule), passing=rule.finding(Status.PASS))


def _of(question: object, kind: type[Any]) -> Any:
    return question if isinstance(question, kind) else None


def _expression(condition: Condition) -> Test:
    def detail(record: Mapping[str, object]) -> str:
        seen = f"({condition.seen(record)})"
        if condition.holds(record) is None:
            why = condition.unknown(record)
            return f"{condition.said()} cannot be evaluated {seen}: {why}"
        return f"{condition.said()} is false {seen}"

    value = condition.value

    def passes(record: Mapping[str, object]) -> bool:
        held = value(record)
        return held is True or (held is not False and truth(held) is True)

    return Test(passes, detail)


def _keys(entry: Mapping[str, object], kind: RuleType | None) -> list[str]:
    """Keys that are none of a rule's."""
    problems: list[str] = []
    flat: list[str] = []
    for key in entry:
        if key in KEYS:
            continue
        meant = nearest(str(key).lower(), KEYS)
        if kind is not None and (key in kind.params or key == GATE):
            flat.append(str(key))
        elif meant:
            problems.append(f"unknown rule key {shown(key)}; {meant.strip()}")
        else:
            problems.append(
                f"unknown rule key {shown(key)}; the keys are {', '.join(KEYS)}, and what a type "
                "takes belongs under params:"
            )
    if flat:
        problems.append(f"what a type takes belongs under params:; move {', '.join(flat)} there")
    return problems


def _type(entry: Mapping[str, object], world: World) -> list[str]:
    name, known = entry.get("type"), world.types()
    if name is None:
        return [f"type is missing; it is one of {', '.join(known)}"]
    if not isinstance(name, str):
        return [f"type: {shown(name)}; it must be a string"]
    if name not in known:
        meant = nearest(name.lower(), known)
        return [f"unknown type {shown(name)}; {meant}the types are {', '.join(known)}"]
    if name == JUDGE and world.references is None:
        return [f"{JUDGE}: no judge is configured; configure one (judge:), or leave the rule out"]
    return []


def _texts(entry: Mapping[str, object]) -> list[str]:
    problems: list[str] = []
    for key in ("id", "hint"):
        value = entry.get(key)
        if key in entry and not (value is None or isinstance(value, str)):
            problems.append(f"{key}: {shown(value)}; it must be a string, not {kind_of(value)}")
    if isinstance(entry.get("id"), str) and not str(entry["id"]).strip():
        problems.append("id must not be empty; leave it out to have one derived")
    return problems


def _level(entry: Mapping[str, object], problems: list[str]) -> Severity:
    soft = entry.get("type") == JUDGE
    value = entry.get("severity", Severity.INFO.value if soft else Severity.ERROR.value)
    if isinstance(value, str) and value in (levels := [str(level) for level in Severity]):
        return Severity(value)
    levels = [str(level) for level in Severity]
    problems.append(
        f"unknown severity {shown(value)}; {nearest(value, levels)}the levels are error, warn "
        "and info"
    )
    return Severity.ERROR


def _scope(entry: Mapping[str, object], problems: list[str]) -> Scope:
    value = entry.get("scope", Scope.RECORD.value)
    if value in (Scope.RECORD.value, Scope.BATCH.value):
        return Scope(str(value))
    problems.append(f"unknown scope {shown(value)}; it is record (a candidate) or batch")
    return Scope.RECORD


def _condition(
    value: object, name: str, fields: Fields | None, problems: list[str]
) -> Condition | None:
    if value is None:
        return None
    if not isinstance(value, str):
        problems.append(f"{name}: {shown(value)}; it must be a non-empty condition in quotes")
        return None
    try:
        return Condition.of(value, fields)
    except ConditionError as fault:
        problems.append(f"{name}: {fault}" if name == GATE else str(fault))
        return None


def _selected(
    entry: Mapping[str, object], kind: RuleType, fields: Fields | None, problems: list[str]
) -> Selector | None:
    if kind.whole_record:
        if "field" in entry:
            problems.append(
                f"{kind.name} reads the whole record and takes no field; remove field: "
                f"{shown(entry['field'])}"
            )
        return None
    if entry.get("field") is None:
        problems.append("field is missing; name the field the rule reads")
        return None
    try:
        found = selector(entry["field"], fields)
    except ValueError as fault:
        problems.append(str(fault))
        return None
    if isinstance(found, Together) and not kind.together:
        problems.append(
            f"field: {kind.name} reads one value, not the list {found}; give each field a rule"
        )
    if isinstance(found, Each) and not kind.each:
        problems.append(f"field: {kind.name} compares records, not the items of {found}")
    declared = Kind.ANY
    if fields is not None and not isinstance(found, Together):
        declared = fields.kind(found.names[0]) or Kind.ANY
    if kind.of_lists and isinstance(found, Each) and declared is Kind.TEXTS:
        problems.append(f"field: each item of {found} is text; {kind.name} reads a list")
    if kind.of_lists and not isinstance(found, Each) and declared.scalar:
        problems.append(f"field: {found} is {declared.words}; {kind.name} reads a list")
    return found


def _values(kind: RuleType, given: Mapping[str, object], problems: list[str]) -> dict[str, Any]:
    known = [*kind.params, GATE]
    for name in given:
        if name not in kind.params:
            takes = ", ".join(kind.params) or "none but row_condition"
            problems.append(
                f"type {kind.name!r} takes no parameter {shown(name)}; "
                f"{nearest(name, known)}its parameters are {takes}"
            )
    values: dict[str, Any] = {}
    for name, param in kind.params.items():
        value = given.get(name)
        if value is None and (name not in given or (param.nullable and not param.required)):
            if param.required:
                problems.append(
                    f"type {kind.name!r} requires parameter {name!r}; give params: {{{name}: …}}"
                )
            values[name] = param.default
            continue
        try:
            values[name] = param.read(value)
        except ValueError as fault:
            problems.append(f"{name}: {fault}")
    return values


def _judge(values: Mapping[str, Any], world: World, scope: Scope) -> list[str]:
    """What is wrong with the references of a judged rule's context."""
    problems = []
    of_batch = scope is Scope.BATCH and world.proposal_references is not None
    known = sorted((world.proposal_references if of_batch else world.references) or ())
    for reference in values.get("context") or ():
        if not isinstance(reference, str) or reference.count(".") != 1:
            problems.append(f"context: {shown(reference)}; each is a name.field string")
        elif reference not in known:
            listed = ", ".join(known) or "none"
            problems.append(
                f"context: unknown {shown(reference)}; {nearest(reference, known)}"
                f"there are {listed}"
            )
    return problems


def _built(
    kind: RuleType, values: dict[str, Any], reads: Selector | None, world: World,
    problems: list[str],
) -> object:  # fmt: skip
    """The rule's question; the parameters fit one by one, here they have to fit together."""
    try:
        if kind.name == "min_separation":
            values["bounds"] = _ranges(values["bounds"], reads, world)
        return kind.build(values)
    except ValueError as fault:
        problems.append(str(fault))
        return None


def _ranges(
    given: Bounds | None, reads: Selector | None, world: World
) -> list[tuple[float, float]]:
    """The range of each field a rule reads, from the rule or from the parameters."""
    names = () if reads is None else reads.names
    known = {**(world.bounds or {}), **(given or {})}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"bounds: none for {', '.join(unknown)}; give params: {{bounds: {{{unknown[0]}: "
            "[low, high]}}"
        )
    return [known[name] for name in names]
