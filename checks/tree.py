"""The tree of a condition: frozen nodes, printed back as the language they came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

KEYWORDS = frozenset(
    ["and", "or", "not", "in", "like", "between", "is", "null", "true", "false", "contains"]
)  # reserved in any case
FUNCTIONS = {"abs": (1, 1), "sqrt": (1, 1), "log": (1, 1), "exp": (1, 1), "min": (2, 16)}
FUNCTIONS["max"] = FUNCTIONS["min"]  # fewest and most arguments

_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Literal:
    value: Scalar


@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Field:
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """As a person writes it: dotted, without quotes."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Negative:
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str  # + - * / **
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain: every neighbouring pair of operands holds. One operator fewer than operands."""

    operands: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class In:
    value: Node
    choices: ListOf | Field
    negated: bool


@dataclass(frozen=True, slots=True)
class Like:
    value: Node
    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Contains:
    value: Node
    part: Node
    negated: bool


@dataclass(frozen=True, slots=True)
class Between:
    value: Node
    low: Literal
    high: Literal
    negated: bool


@dataclass(frozen=True, slots=True)
class IsNull:
    field: Field
    negated: bool


@dataclass(frozen=True, slots=True)
class Not:
    operand: Node


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


Node: TypeAlias = (
    Literal | ListOf | Field | Negative | Arithmetic | Call | Compare
    | In | Like | Contains | Between | IsNull | Not | And | Or
)  # fmt: skip


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Negative(inner) | Not(inner):
            return (inner,)
        case Arithmetic(_, left, right) | Contains(left, right, _):
            return (left, right)
        case Call(_, parts) | Compare(parts, _) | And(parts) | Or(parts):
            return parts
        case In(value, choices, _):
            return (value, choices)
        case Like(value, _, _):
            return (value,)
        case Between(value, low, high, _):
            return (value, low, high)
        case IsNull(field, _):
            return (field,)
        case Literal() | ListOf() | Field():
            return ()


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Every node, each after its parent and before its right neighbours, with its depth."""
    left = [(node, 1)]
    while left:
        current, depth = left.pop()
        yield current, depth
        left.extend((child, depth + 1) for child in reversed(children(current)))


def fields(node: Node) -> tuple[Field, ...]:
    """The fields a condition reads, each once, from left to right."""
    found = {part: None for part, _ in walk(node) if isinstance(part, Field)}
    return tuple(found)


# How tightly a node binds; a child that binds no tighter than its place asks for parentheses.
_OR, _AND, _NOT, _COMPARE, _TEST, _SUM, _TERM, _FACTOR, _POWER, _ATOM = range(10)
_BINDS = {"+": _SUM, "-": _SUM, "*": _TERM, "/": _TERM, "**": _POWER}


def printed(node: Node) -> str:
    """The condition as text; parsing it gives an equal tree."""
    return _print(node, _OR)


def _print(node: Node, place: int) -> str:
    text, binds = _written(node)
    return text if binds >= place else f"({text})"


def _written(node: Node) -> tuple[str, int]:
    match node:
        case Or(parts):
            return " or ".join(_print(part, _AND) for part in parts), _OR
        case And(parts):
            return " and ".join(_print(part, _NOT) for part in parts), _AND
        case Not(operand):
            return f"not {_print(operand, _NOT)}", _NOT
        case Compare(operands, operators):
            words = [_print(operands[0], _TEST)]
            for operator, operand in zip(operators, operands[1:], strict=True):
                words += [operator, _print(operand, _TEST)]
            return " ".join(words), _COMPARE
        case In() | Like() | Contains() | Between() | IsNull():
            return _test(node), _TEST
        case _:
            return _quantity(node)


def _test(node: In | Like | Contains | Between | IsNull) -> str:
    maybe = "NOT " if node.negated else ""
    match node:
        case IsNull(field, _):
            return f"{_name(field)} IS {maybe}NULL"
        case In(value, ListOf(items), _):
            return f"{_print(value, _SUM)} {maybe}IN [{', '.join(map(_literal, items))}]"
        case In(value, choices, _):
            return f"{_print(value, _SUM)} {maybe}IN {_print(choices, _ATOM)}"
        case Like(value, pattern, _):
            return f"{_print(value, _SUM)} {maybe}LIKE {_literal(pattern)}"
        case Contains(value, part, _):
            return f"{_print(value, _SUM)} {maybe}CONTAINS {_print(part, _SUM)}"
        case Between(value, low, high, _):
            ends = f"{_literal(low.value)} AND {_literal(high.value)}"
            return f"{_print(value, _SUM)} {maybe}BETWEEN {ends}"


def _quantity(node: Node) -> tuple[str, int]:
    match node:
        case Arithmetic("**", left, right):
            return f"{_print(left, _ATOM)} ** {_print(right, _FACTOR)}", _POWER
        case Arithmetic(operator, left, right):
            binds = _BINDS[operator]
            return f"{_print(left, binds)} {operator} {_print(right, binds + 1)}", binds
        case Negative(operand):
            return f"-{_print(operand, _FACTOR)}", _FACTOR
        case Call(function, arguments):
            return f"{function}({', '.join(_print(a, _OR) for a in arguments)})", _ATOM
        case ListOf(items):
            return f"[{', '.join(map(_literal, items))}]", _ATOM
        case Field():
            return _name(node), _ATOM
        case Literal(value):
            text = _literal(value)
            return text, _FACTOR if text.startswith("-") else _ATOM
        case _:
            raise AssertionError(node)


def _name(field: Field) -> str:
    return ".".join(
        part if _PLAIN.match(part) and part.lower() not in KEYWORDS else f"`{part}`"
        for part in field.path
    )


def _literal(value: Scalar) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + "".join(_ESCAPES.get(c, c) for c in value) + "'"
    return repr(value)
