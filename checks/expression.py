"""The condition language: `Condition` is one compiled condition.

The grammar is in :mod:`checks.grammar`, the tree in :mod:`checks.tree`, the walker in
:mod:`checks.evaluate`. docs/reference/expressions.md says what a condition means.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from checks.declared import Fields
from checks.evaluate import Record, Value, evaluator, look_up, truth
from checks.grammar import ConditionError, parse
from checks.tree import (
    Between,
    Compare,
    Field,
    In,
    ListOf,
    Literal,
    Node,
    Scalar,
    fields,
    printed,
    walk,
)
from checks.values import MISSING, clipped, kind_of, shown

if TYPE_CHECKING:
    from checks.ruletype import Doubles, Flags

    Columnar: TypeAlias = Callable[[Callable[[str], Doubles]], Flags]

__all__ = ["Condition", "ConditionError", "parse", "printed"]

_TEXT = 120  # characters of a condition in a detail
_NAMES = 20  # fields of a record named in a detail


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, compiled: ``value`` gives what it is for a record."""

    text: str
    tree: Node
    reads: tuple[Field, ...]
    value: Value
    # What judges columns of doubles; None where the condition reads anything else.
    columns: Callable[[], Columnar | None]

    @classmethod
    def of(cls, text: str, known: Fields | None = None) -> Condition:
        """Compile a condition; ``known`` are the fields it may read, ``None`` for any.

        Raises :class:`ConditionError` for what does not parse, reads no field or an unknown
        one, or compares what never compares.
        """
        tree = parse(text)
        reads = fields(tree)
        said = f"condition {clipped(text, _TEXT)!r}"
        if not reads:
            raise ConditionError(
                f"{said}: reads no field of the record, so it is always the same; name a field"
            )
        if known is not None:
            faults = [*_unknown(tree, known), *_never(tree, known)]
            if faults:
                raise ConditionError(f"{said}: {'; '.join(faults)}")
        return cls(text, tree, reads, evaluator(tree), cache(partial(_vectorised, tree)))

    def holds(self, record: Record) -> bool | None:
        """Whether it is true of the record; ``None`` when that cannot be told."""
        return truth(self.value(record))

    def said(self) -> str:
        return f"condition {clipped(self.text, _TEXT)!r}"

    def seen(self, record: Record) -> str:
        """Every field the condition reads, with its value: ``a=1, b='x'``."""
        return ", ".join(
            f"{field.name}={shown(look_up(record, field.path))}" for field in self.reads
        )

    def unknown(self, record: Record) -> str:
        """Why the condition cannot be evaluated for this record."""
        reasons = [
            _absent(field, record, quotable=field in _compared_to(self.tree))
            for field in self.reads
            if look_up(record, field.path) is MISSING
        ]
        if not reasons:
            return "it computes or searches with a value that is no number or no list"
        names = [str(name) for name in record]
        listed = ", ".join(clipped(name, 40) for name in names[:_NAMES])
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        has = f"the record has {listed}{more}" if names else "the record is empty"
        return f"{'; '.join(reasons)}; {has}"


def _vectorised(tree: Node) -> Columnar | None:
    from checks.vector import vectorised  # needs NumPy, which a suite may never need

    return vectorised(tree)


def _absent(field: Field, record: Record, *, quotable: bool) -> str:
    inside = [
        f"{name}.{field.name}"
        for name, value in list(record.items())[:_NAMES]
        if isinstance(value, Mapping) and field.name in value
    ]
    nearest = inside or difflib.get_close_matches(field.name, _plain_names(record), n=1)
    advice = f" (did you mean {nearest[0]}?)" if nearest else ""
    if quotable and not inside:
        advice += f" (to compare with text, quote it: {field.name!r})"
    return f"{field.name} is missing{advice}"


def _plain_names(record: Record) -> list[str]:
    return [str(name) for name in record if len(str(name)) <= 64][:200]


def _compared_to(tree: Node) -> set[Field]:
    """The fields on the right of a comparison, where text without quotes would stand."""
    right: set[Field] = set()
    for node, _ in walk(tree):
        if isinstance(node, Compare):
            right |= {operand for operand in node.operands[1:] if isinstance(operand, Field)}
    return right


def _unknown(tree: Node, known: Fields) -> Iterator[str]:
    for field in fields(tree):
        if known.kind(field.path[0]) is None and known.kind(field.name) is None:
            advice = f" (to compare with text, quote it: {field.name!r})"
            quoted = advice if field in _compared_to(tree) else ""
            yield f"{known.refusal(field.path[0])}{quoted}"


def _never(tree: Node, known: Fields) -> Iterator[str]:
    """Comparisons of a field with a literal of a kind the field never has."""
    for node, _ in walk(tree):
        for field, literal in _meetings(node):
            declared = known.kind(field.name)
            if declared is not None and not declared.admits(literal):
                article = kind_of(literal)
                yield (
                    f"{field.name} is {declared.words}, never {article} like {shown(literal)}; "
                    f"compare it with {declared.words}"
                )


def _meetings(node: Node) -> Iterator[tuple[Field, Scalar]]:
    match node:
        case Compare(operands, _):
            for left, right in pairwise(operands):
                match left, right:
                    case (Field() as field, Literal(value)) | (Literal(value), Field() as field):
                        if value is not None:
                            yield field, value
        case Between(Field() as field, Literal(low), _, _):
            yield field, low
        case In(Field() as field, ListOf(items), _):
            yield from ((field, item) for item in items if item is not None)
        case _:
            return
