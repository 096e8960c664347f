"""Text of a condition -> its tree, or what is wrong with it and where.

The grammar is LALR(1) and read by lark. Nothing a condition says reaches Python: there are no
calls but those of six functions, no attributes, no indices.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import TYPE_CHECKING

from checks.advice import advice
from checks.tree import (
    FUNCTIONS,
    KEYWORDS,
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
    printed,
    walk,
)
from checks.values import clipped, is_number, order

if TYPE_CHECKING:
    from lark import Lark, Token
    from lark.exceptions import UnexpectedInput

LONGEST = 4_000  # characters
DEEPEST = 60  # levels; an operator is one, parentheses are none

GRAMMAR = r"""
start: _or
_or: any_of
?any_of: all_of (OR all_of)*
?all_of: none_of (AND none_of)*
?none_of: NOT none_of -> negation | compare
?compare: test (COMPARISON test)*
?test: sum
    | sum IS NOT? NULL -> is_null
    | sum NOT? IN choices -> is_in
    | sum NOT? LIKE STRING -> like
    | sum NOT? CONTAINS sum -> contains
    | sum NOT? BETWEEN sum AND sum -> between
?choices: items | "(" [literal ("," literal)*] ")" -> items | field
items: "[" [literal ("," literal)*] "]"
?sum: term | sum SIGN term -> arithmetic
?term: factor | term SCALE factor -> arithmetic
?factor: SIGN factor -> signed | power
?power: atom | atom POWER factor -> arithmetic
?atom: plain | field | items | "(" _or ")" | NAME "(" [any_of ("," any_of)*] ")" -> call
?literal: plain | SIGN NUMBER -> signed_number
?plain: NUMBER -> number | STRING -> string | TRUE -> true | FALSE -> false | NULL -> null
field: (NAME | QUOTED) ("." (NAME | QUOTED))*

COMPARISON: "==" | "!=" | "<=" | ">=" | "<" | ">"
POWER: "**"
SIGN: "+" | "-"
SCALE: "*" | "/"
NUMBER: /(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?/
STRING: /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/s
NAME: /[^\W\d]\w*/
QUOTED: /`[^`\n]+`/
OR.2: /or(?!\w)/i
AND.2: /and(?!\w)/i
NOT.2: /not(?!\w)/i
IN.2: /in(?!\w)/i
IS.2: /is(?!\w)/i
LIKE.2: /like(?!\w)/i
CONTAINS.2: /contains(?!\w)/i
BETWEEN.2: /between(?!\w)/i
NULL.2: /null(?!\w)/i
TRUE.2: /true(?!\w)/i
FALSE.2: /false(?!\w)/i
%import common.WS
%ignore WS
"""

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class ConditionError(ValueError):
    """A condition that cannot be used; the message says what, where, and what would be right."""


def parse(text: str) -> Node:
    """Read a condition. Raises :class:`ConditionError`."""
    from lark import exceptions

    if len(text) > LONGEST:
        raise ConditionError(
            f"condition {clipped(text, 40)!r}: {len(text)} characters; at most {LONGEST}"
        )
    if not text.strip():
        raise ConditionError("condition must be a non-empty text; as in 'density > 0.5'")
    said = f"condition {clipped(text, 120)!r}"
    if text.strip().startswith("udf:"):
        raise ConditionError(f"{said}: udf: is not supported; register a @check instead")
    try:
        tree: Node = _parser().parse(text)  # type: ignore[assignment]  # what _Builder made
    except exceptions.UnexpectedInput as fault:
        raise ConditionError(f"{said}: {_where(text, fault)}") from None
    except _Fault as fault:
        raise ConditionError(f"{said}: {fault}") from None
    if max(depth for _, depth in walk(tree)) > DEEPEST:
        raise ConditionError(f"{said}: nested too deep; at most {DEEPEST} levels")
    return tree


def _where(text: str, fault: UnexpectedInput) -> str:
    """What is wrong at a place where the grammar knows no way on."""
    ended = getattr(getattr(fault, "token", None), "type", "") == "$END"
    at = len(text) if ended else getattr(fault, "pos_in_stream", 0)
    rest = text[at:]
    if not rest.strip():
        return f"ends too early, at column {len(text) + 1}; a value or a ) is missing"
    place = f"column {at + 1}: {clipped(rest, 20)!r} is not expected there"
    said = advice(text[:at].rstrip(), rest)
    return f"{place}; {said}" if said else place


class _Fault(Exception):
    """What is wrong with a part of a condition that parses."""


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(GRAMMAR, parser="lalr", maybe_placeholders=False, transformer=_Builder())


class _Builder:
    """Makes the nodes, while the parser goes; each method gets the parts of its rule."""

    def start(self, parts: list[Node]) -> Node:
        return parts[0]

    def any_of(self, parts: list[Node]) -> Node:
        return Or(tuple(parts[::2]))

    def all_of(self, parts: list[Node]) -> Node:
        return And(tuple(parts[::2]))

    def negation(self, parts: list[Node]) -> Node:
        return Not(parts[1])

    def compare(self, parts: list[Node]) -> Node:
        operators = tuple(str(sign) for sign in parts[1::2])
        found = Compare(tuple(parts[::2]), operators)
        ways = ({"<", "<="}, {">", ">="}, {"=="})
        if len(operators) > 1 and not any(set(operators) <= way for way in ways):
            raise _Fault(f"{printed(found)!r} changes direction; join its parts with `and`")
        return found

    def is_null(self, parts: list[Node]) -> Node:
        if not isinstance(parts[0], Field):
            raise _Fault(f"IS NULL reads a field, not {printed(parts[0])!r}")
        return IsNull(parts[0], negated=len(parts) == 4)

    def is_in(self, parts: list[Node]) -> Node:
        choices = parts[-1]
        if not isinstance(choices, ListOf | Field):
            raise _Fault(f"IN takes a list, not {printed(choices)!r}; as in IN ['a', 'b']")
        return In(parts[0], choices, negated=len(parts) == 4)

    def like(self, parts: list[Node]) -> Node:
        return Like(parts[0], _unquoted(str(parts[-1])), negated=len(parts) == 4)

    def contains(self, parts: list[Node]) -> Node:
        return Contains(parts[0], parts[-1], negated=len(parts) == 4)

    def between(self, parts: list[Node]) -> Node:
        low, high = parts[-3], parts[-1]
        if not isinstance(low, Literal) or not isinstance(high, Literal):
            wrong = high if isinstance(low, Literal) else low
            raise _Fault(f"BETWEEN takes two literals, not {printed(wrong)!r}; use <= instead")
        below = order(low.value, high.value)
        if below is None:
            raise _Fault("BETWEEN takes two numbers or two texts, not one of each")
        if below > 0:
            ends = f"{printed(low)} AND {printed(high)}"
            raise _Fault(f"BETWEEN {ends} holds for nothing; the lower end comes first")
        return Between(parts[0], low, high, negated=len(parts) == 6)

    def items(self, parts: list[Literal]) -> Node:
        return ListOf(tuple(part.value for part in parts))

    def arithmetic(self, parts: list[Node]) -> Node:
        return Arithmetic(str(parts[1]), _quantity(parts[0]), _quantity(parts[2]))

    def signed(self, parts: list[Node]) -> Node:
        sign, operand = str(parts[0]), _quantity(parts[1])
        if sign == "+":
            return operand
        if isinstance(operand, Literal) and is_number(operand.value):
            return Literal(-operand.value)
        return Negative(operand)

    def call(self, parts: list[Node]) -> Node:
        name, arguments = str(parts[0]), tuple(map(_quantity, parts[1:]))
        if name.lower() not in FUNCTIONS:
            known = ", ".join(sorted(FUNCTIONS))
            raise _Fault(f"{name}(...) is no function; the functions are {known}")
        least, most = FUNCTIONS[name.lower()]
        if not least <= len(arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} to {most}"
            raise _Fault(f"{name}(...) has {len(arguments)} arguments; it takes {wanted}")
        return Call(name.lower(), arguments)

    def field(self, parts: list[Token]) -> Node:
        for part in parts:
            if part.lower() in KEYWORDS:
                raise _Fault(
                    f"{str(part)!r} is a word of the language; a field of that name "
                    f"is written `{part}`"
                )
        return Field(tuple(str(part).strip("`") for part in parts))

    def number(self, parts: list[Token]) -> Node:
        return Literal(_number(str(parts[0])))

    def signed_number(self, parts: list[Token]) -> Node:
        value = _number(str(parts[1]))
        return Literal(-value if parts[0] == "-" else value)

    def string(self, parts: list[Token]) -> Node:
        return Literal(_unquoted(str(parts[0])))

    def true(self, _: list[Token]) -> Node:
        return Literal(True)

    def false(self, _: list[Token]) -> Node:
        return Literal(False)

    def null(self, _: list[Token]) -> Node:
        return Literal(None)


def _quantity(node: Node) -> Node:
    """``node``, if it can be a number."""
    if isinstance(node, Literal) and not is_number(node.value):
        raise _Fault(f"{printed(node)} is no number; arithmetic takes numbers")
    if not isinstance(node, Literal | Field | Negative | Arithmetic | Call):
        raise _Fault(f"{printed(node)!r} is true or false; arithmetic takes numbers")
    return node


def _number(text: str) -> int | float:
    if text.isdecimal():
        return int(text)
    value = float(text)
    if not math.isfinite(value):
        raise _Fault(f"{text} is beyond the largest number, about 1.8e308")
    return value


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), text[1:-1])
