"""A condition's tree -> a function of one record: the walker.

Each node becomes a closure once, so that a record costs a few calls. A value the record does not
give, or that arithmetic cannot use, is ``MISSING`` and makes whatever reads it ``MISSING``; only
IS NULL, ``and`` and ``or`` decide all the same where they can.

Arithmetic is that of IEEE 754 doubles: 1/0 is infinite, 0/0 and sqrt(-1) are NaN, nothing raises.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from checks.ieee import ARITHMETIC, EXTREMES, FUNCTION, as_float
from checks.pattern import like
from checks.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Contains,
    Field,
    In,
    IsNull,
    Like,
    ListOf,
    Literal,
    Negative,
    Node,
    Not,
    Or,
    Scalar,
)
from checks.values import MISSING, is_list, is_number, order, same, text_of

Record: TypeAlias = Mapping[str, object]
Value: TypeAlias = Callable[[Record], object]
Pair: TypeAlias = Callable[[object, object], object]

NUMBERS = (float, int)  # exact types: a boolean is neither


def evaluator(node: Node) -> Value:
    """The closure that gives a node's value for a record."""
    match node:
        case Literal(value):
            return lambda _: value
        case ListOf(items):
            return lambda _: items
        case Field(path):
            return _field(path)
        case Compare(operands, operators):
            return _compare(operands, operators)
        case And(parts):
            return _junction(parts, deciding=False)
        case Or(parts):
            return _junction(parts, deciding=True)
        case Not(operand):
            return _not(evaluator(operand))
        case Negative() | Arithmetic() | Call():
            return _quantity(node)
        case _:
            return _test(node)


def truth(value: object) -> bool | None:
    """Whether a value counts as true; ``None`` when that cannot be told.

    False are ``null``, ``false``, 0, NaN and what is empty.
    """
    if value is True or value is False:
        return value
    if value is MISSING:
        return None
    if is_number(value):
        return value == value and value != 0
    return bool(value) if isinstance(value, str | list | tuple | Mapping) else value is not None


def look_up(record: Record, path: tuple[str, ...]) -> object:
    """The value at a dotted path; a key that is the whole dotted name comes first."""
    if len(path) == 1:
        return record.get(path[0], MISSING)
    whole = record.get(".".join(path), MISSING)
    if whole is not MISSING:
        return whole
    value: object = record
    for part in path:
        if not isinstance(value, Mapping):
            return MISSING
        value = value.get(part, MISSING)
    return value


def _field(path: tuple[str, ...]) -> Value:
    if len(path) > 1:
        return lambda record: look_up(record, path)
    name = path[0]
    return lambda record: record.get(name, MISSING)


def _not(inner: Value) -> Value:
    def negated(record: Record) -> object:
        held = truth(inner(record))
        return MISSING if held is None else not held

    return negated


def _junction(parts: tuple[Node, ...], *, deciding: bool) -> Value:
    inner = tuple(map(evaluator, parts))

    def joined(record: Record) -> object:
        unknown = False
        for part in inner:
            held = truth(part(record))
            if held is deciding:
                return deciding
            unknown = unknown or held is None
        return MISSING if unknown else not deciding

    return joined


_BY_VALUE: Mapping[str, Callable[[Any, Any], object]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


def _pair(sign: str) -> Pair:
    """One comparison, of values that are there."""
    by_value = _BY_VALUE[sign]
    wanted = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0)}.get(sign, ())

    def holds(left: object, right: object) -> object:
        if type(left) in NUMBERS and type(right) in NUMBERS:
            return by_value(left, right)
        if left is MISSING or right is MISSING:
            return MISSING
        if wanted:
            return order(left, right) in wanted
        return same(left, right) is (sign == "==")

    return holds


def _compare(operands: tuple[Node, ...], operators: tuple[str, ...]) -> Value:
    if len(operators) > 1:
        pairs = zip(operands, operators, operands[1:], strict=False)
        return _junction(
            tuple(Compare((left, right), (sign,)) for left, sign, right in pairs), deciding=False
        )
    left, right = map(evaluator, operands)
    holds = _pair(operators[0])
    if not isinstance(operands[1], Literal):
        return lambda record: holds(left(record), right(record))
    constant, by_value = operands[1].value, _BY_VALUE[operators[0]]
    plain = type(constant) in NUMBERS

    def against(record: Record) -> object:
        value = left(record)
        if plain and type(value) is float:
            return by_value(value, constant)
        return holds(value, constant)

    return against


def _test(node: Node) -> Value:
    match node:
        case IsNull(Field(path), negated):
            return lambda record: _is_null(look_up(record, path)) is not negated
        case In(value, ListOf(items), negated):
            return _known(evaluator(value), lambda v: _listed(v, items), negated)
        case In(value, choices, negated):
            return _in_field(evaluator(value), evaluator(choices), negated)
        case Like(value, pattern, negated):
            matches = like(pattern, ignore_case=True)
            return _known(evaluator(value), lambda v: matches(text_of(v)), negated)
        case Contains(value, part, negated):
            whole, inner = evaluator(value), evaluator(part)
            return lambda record: _contains(whole(record), inner(record), negated)
        case Between(value, Literal(low), Literal(high), negated):
            return _known(evaluator(value), lambda v: _within(v, low, high), negated)
        case _:
            raise AssertionError(node)


def _is_null(value: object) -> bool:
    return value is None or value is MISSING


def _known(inner: Value, holds: Callable[[object], bool], negated: bool) -> Value:
    def tested(record: Record) -> object:
        value = inner(record)
        return MISSING if value is MISSING else holds(value) is not negated

    return tested


def _listed(value: object, items: tuple[object, ...] | list[object]) -> bool:
    return any(same(value, item) for item in items)


def _in_field(value: Value, choices: Value, negated: bool) -> Value:
    def tested(record: Record) -> object:
        wanted, listed = value(record), choices(record)
        if wanted is MISSING or not is_list(listed):
            return MISSING
        return _listed(wanted, listed) is not negated

    return tested


def _contains(whole: object, part: object, negated: bool) -> object:
    """Whether a list has an equal item, or a text the part's text somewhere in it."""
    if whole is MISSING or part is MISSING:
        return MISSING
    if is_list(whole):
        return _listed(part, whole) is not negated
    if isinstance(whole, Mapping):
        return _listed(part, list(whole)) is not negated
    text, sought = text_of(whole), text_of(part)
    return (text is not None and sought is not None and sought in text) is not negated


def _within(value: object, low: Scalar, high: Scalar) -> bool:
    return order(value, low) in (0, 1) and order(value, high) in (0, -1)


def _quantity(node: Negative | Arithmetic | Call) -> Value:
    match node:
        case Negative(operand):
            return _unary(operator.neg, evaluator(operand))
        case Arithmetic(sign, left, right):
            return _binary(ARITHMETIC[sign], evaluator(left), evaluator(right))
        case Call(name, arguments) if name in EXTREMES:
            return _extreme(EXTREMES[name], tuple(map(evaluator, arguments)))
        case Call(name, arguments):
            return _unary(FUNCTION[name], evaluator(arguments[0]))


def _unary(apply: Callable[[float], float], inner: Value) -> Value:
    def result(record: Record) -> object:
        number = as_float(inner(record))
        return MISSING if number is None else apply(number)

    return result


def _binary(apply: Callable[[float, float], float], first: Value, second: Value) -> Value:
    def result(record: Record) -> object:
        left, right = first(record), second(record)
        if type(left) is float and type(right) is float:
            return apply(left, right)
        a, b = as_float(left), as_float(right)
        return MISSING if a is None or b is None else apply(a, b)

    return result


def _extreme(choose: Callable[[list[float]], float], inner: tuple[Value, ...]) -> Value:
    def result(record: Record) -> object:
        found = [as_float(part(record)) for part in inner]
        known = [number for number in found if number is not None]
        if len(known) < len(found):
            return MISSING
        return math.nan if any(number != number for number in known) else choose(known)

    return result
