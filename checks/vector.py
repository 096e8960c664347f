"""A condition's tree -> a function of columns of doubles, where the tree only reads numbers.

Every operation is one that IEEE 754 fixes to the bit, so that a column gives what the walker
gives for each record; logarithm, exponential and power are the walker's own, value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from checks.ieee import ARITHMETIC, FUNCTION
from checks.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Field,
    In,
    IsNull,
    ListOf,
    Literal,
    Negative,
    Node,
    Not,
    Or,
)
from checks.values import is_number

if TYPE_CHECKING:
    from checks.ruletype import Doubles, Flags

Read: TypeAlias = "Callable[[str], Doubles]"  # the column of a field
_Quantity: TypeAlias = "Callable[[Read], Doubles]"
_Truth: TypeAlias = "Callable[[Read], Flags]"

_EXACT = 2**53
_COMPARISONS: Mapping[str, Callable[..., Flags]] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_FIXED: Mapping[str, Callable[..., Doubles]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
    "abs": np.abs, "sqrt": np.sqrt, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


class _NotNumeric(Exception):
    """The tree reads something that is no column of doubles."""


def vectorised(tree: Node) -> _Truth | None:
    """The condition for columns; ``None`` where only the walker can tell."""
    try:
        truth = _truth(tree)
    except _NotNumeric:
        return None

    def judge(read: Read) -> Flags:
        with np.errstate(all="ignore"):
            return truth(read)

    return judge


def _truth(node: Node) -> _Truth:
    match node:
        case And(parts):
            return _all(tuple(map(_truth, parts)), np.logical_and)
        case Or(parts):
            return _all(tuple(map(_truth, parts)), np.logical_or)
        case Not(operand):
            inner = _truth(operand)
            return lambda read: ~inner(read)
        case Compare(operands, operators):
            pairs = zip(operators, operands, operands[1:], strict=False)
            return _all(tuple(_pair(*pair) for pair in pairs), np.logical_and)
        case Between(value, Literal(low), Literal(high), negated):
            inside = _all(
                (_pair(">=", value, Literal(low)), _pair("<=", value, Literal(high))),
                np.logical_and,
            )
            return (lambda read: ~inside(read)) if negated else inside
        case IsNull(Field((name,)), negated):  # a number is there
            return lambda read: np.full(len(read(name)), negated)
        case In(value, ListOf(items), negated) if items:
            any_of = _all(tuple(_pair("==", value, Literal(item)) for item in items), np.logical_or)
            return (lambda read: ~any_of(read)) if negated else any_of
        case Field():
            number = _quantity(node)
            return lambda read: _nonzero(number(read))
        case _:
            raise _NotNumeric


def _nonzero(values: Doubles) -> Flags:
    return np.not_equal(values, 0) & np.equal(values, values)


def _all(parts: tuple[_Truth, ...], join: Callable[..., Flags]) -> _Truth:
    if len(parts) == 1:
        return parts[0]

    def joined(read: Read) -> Flags:
        found = parts[0](read)
        for part in parts[1:]:
            found = join(found, part(read))
        return found

    return joined


def _pair(sign: str, left: Node, right: Node) -> _Truth:
    compare = _COMPARISONS[sign]
    first, second = _quantity(left), _quantity(right)
    return lambda read: compare(first(read), second(read))


def _quantity(node: Node) -> _Quantity:
    match node:
        case Field((name,)):
            return lambda read: read(name)
        case Literal(value) if is_number(value) and -_EXACT <= value <= _EXACT:
            constant = np.array(value, dtype=np.float64)
            return lambda _: constant
        case Negative(operand):
            inner = _quantity(operand)
            return lambda read: -inner(read)
        case Arithmetic(sign, left, right):
            return _binary(sign, _quantity(left), _quantity(right))
        case Call(name, (argument,)):
            return _unary(name, _quantity(argument))
        case Call(name, arguments):
            extreme, inner_all = _FIXED[name], tuple(map(_quantity, arguments))
            return lambda read: reduce(extreme, (part(read) for part in inner_all))
        case _:
            raise _NotNumeric


def _binary(sign: str, first: _Quantity, second: _Quantity) -> _Quantity:
    fixed = _FIXED.get(sign)
    if fixed is not None:
        return lambda read: fixed(first(read), second(read))
    one = ARITHMETIC[sign]

    def each(read: Read) -> Doubles:
        left, right = np.broadcast_arrays(first(read), second(read))
        pairs = zip(left.ravel().tolist(), right.ravel().tolist(), strict=True)
        return np.fromiter((one(a, b) for a, b in pairs), np.float64, left.size)

    return each


def _unary(name: str, inner: _Quantity) -> _Quantity:
    fixed = _FIXED.get(name)
    if fixed is not None:
        return lambda read: fixed(inner(read))
    one = FUNCTION[name]
    return lambda read: np.fromiter(map(one, np.ravel(inner(read)).tolist()), np.float64)
