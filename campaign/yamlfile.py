"""YAML as a configuration means it: the core scalars of YAML 1.2, and no surprises.

Differences from PyYAML's own loaders, each because the other reading loses something silently:

* ``1e-3``, ``.5`` and ``1e5`` are numbers; only ``true`` and ``false`` are booleans, so ``no``,
  ``on`` and ``yes`` stay text; ``1:30`` and ``2026-01-01`` stay text.
* A number with a leading zero (``010``), ``0x1F`` and ``1_000`` stay text: what they are in one
  YAML version they are not in the other. Where a number is wanted they are refused.
* Keys are always text, as in JSON. A key given twice is refused, naming both lines.
* Aliases and ``<<`` merges work, within a bound on what they expand to. Tags other than the plain
  ``!!str``, ``!!int``, ``!!float``, ``!!bool``, ``!!null``, ``!!seq`` and ``!!map`` are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

import yaml

from campaign.problems import ConfigError, Loc, Problem, clip, dotted
from executors.base import Json

FILE_NAME = "campaign.yaml"
MAX_BYTES = 1 << 20
MAX_NODES = 100_000  # after the expansion of aliases
MAX_DEPTH = 64

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser is ten times as fast
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_MOST_DIGITS = 300
_TYPES = {"int": int, "float": float, "bool": bool, "null": type(None)}
_CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data, the line of every place in it, and what was wrong with single places.

    The places in ``unread`` hold None because their own value could not be read.
    """

    data: Json
    lines: Mapping[Loc, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    unread: frozenset[Loc] = frozenset()


def read_bytes(content: bytes) -> Document:
    """Read a file's content; raises ``ConfigError`` when there is no reading it."""
    if len(content) > MAX_BYTES:
        _refuse(f"more than {MAX_BYTES:,} bytes; a configuration is a small text file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        _refuse(f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8", line)
    return read_text(text)


def read_text(text: str) -> Document:
    """Read one YAML document; raises ``ConfigError`` when there is no reading it.

    What is wrong in one place only (a key given twice, a tag) is among the document's problems.
    """
    if (control := _CONTROL.search(text)) is not None:
        line = text.count("\n", 0, control.start()) + 1
        _refuse(f"the control character {control[0]!r}; remove it", line)
    try:
        root = _Composer(text).document()
    except yaml.MarkedYAMLError as error:
        _refuse_syntax(text, error)
    except yaml.YAMLError as error:
        _refuse(f"not YAML: {error}; quote odd values")
    if root is None:
        return Document(None)
    expander = _Expander()
    data = expander.value(root, ())
    # What an anchor holds is wrong once, however often it is used.
    once = {(found.line, found.message): found for found in reversed(expander.problems)}
    problems = tuple(reversed(once.values()))
    return Document(data, expander.lines, problems, frozenset(expander.unread))


def plain_scalar(text: str) -> Json:
    """What a value without quotes means; text unless it is surely something else."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > _MOST_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


@dataclass(frozen=True, slots=True)
class _Scalar:
    line: int
    tag: str | None
    text: str
    plain: bool


@dataclass(frozen=True, slots=True)
class _Sequence:
    line: int
    tag: str | None
    items: list[_Node]


@dataclass(frozen=True, slots=True)
class _Mapping:
    line: int
    tag: str | None
    pairs: list[tuple[_Node, _Node]]


_Node: TypeAlias = _Scalar | _Sequence | _Mapping


class _Composer:
    """Events into nodes; an alias is the anchored node itself, so nothing is expanded here."""

    def __init__(self, text: str) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, _Node] = {}
        self._count = 0

    def document(self) -> _Node | None:
        """The only document of the text, None if it is empty."""
        root = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    _refuse("a second document; a configuration is one", _line(event))
                root = self._node(next(self._events), 0)
        return root

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                _refuse(f"the alias *{event.anchor}: no &{event.anchor} ends before it", line)
            return self._anchors[event.anchor]
        self._count += 1
        if depth > MAX_DEPTH:
            _refuse(f"more than {MAX_DEPTH} levels; a configuration has a handful", line)
        if self._count > MAX_NODES:
            _refuse(f"more than {MAX_NODES:,} values; a configuration has some hundred", line)
        node = self._bare(event, line, depth)
        if anchor := getattr(event, "anchor", None):
            self._anchors[anchor] = node
        return node

    def _bare(self, event: yaml.Event, line: int, depth: int) -> _Node:
        if isinstance(event, yaml.SequenceStartEvent):
            return _Sequence(line, event.tag, list(self._until(yaml.SequenceEndEvent, depth)))
        if isinstance(event, yaml.MappingStartEvent):
            nodes = list(self._until(yaml.MappingEndEvent, depth))
            return _Mapping(line, event.tag, list(zip(nodes[::2], nodes[1::2], strict=True)))
        assert isinstance(event, yaml.ScalarEvent)
        return _Scalar(line, event.tag, event.value, event.implicit[0])

    def _until(self, end: type[yaml.Event], depth: int) -> Iterator[_Node]:
        for event in self._events:
            if isinstance(event, end):
                return
            yield self._node(event, depth + 1)


@dataclass(slots=True)
class _Expander:
    """Nodes into plain data, every alias a copy of its own."""

    lines: dict[Loc, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: set[Loc] = field(default_factory=set)
    count: int = 0

    def value(self, node: _Node, loc: Loc) -> Json:
        self._spend(node)
        self.lines.setdefault(loc, node.line)
        wrong = _wrong_tag(node) or _wrong_text(node)
        if wrong:
            self._report(loc, wrong, node.line)
            self.unread.add(loc)
            return None
        if isinstance(node, _Scalar):
            text = not node.plain and node.tag in (None, "!", _TAG + "str")
            return node.text if text else plain_scalar(node.text)
        if isinstance(node, _Sequence):
            return [self.value(item, (*loc, index)) for index, item in enumerate(node.items)]
        pairs = self._pairs(node, loc)
        self.lines |= {(*loc, name): key.line for name, (key, _) in pairs.items()}
        return {name: self.value(value, (*loc, name)) for name, (_, value) in pairs.items()}

    def _pairs(self, node: _Mapping, loc: Loc) -> dict[str, tuple[_Node, _Node]]:
        """The entries of a mapping by key; its own win over those it merges in."""
        own: dict[str, tuple[_Node, _Node]] = {}
        merged: dict[str, tuple[_Node, _Node]] = {}
        for key, value in node.pairs:
            self._spend(key)
            if isinstance(key, _Scalar) and key.plain and key.text == "<<":
                merged = self._merged(value, loc) | merged
            elif (wrong := _wrong_key(key)) or not isinstance(key, _Scalar):
                self._report(loc, wrong, key.line)
            elif (first := own.get(key.text)) is not None:
                message = f"given twice, on lines {first[0].line} and {key.line}; keep one"
                self._report((*loc, key.text), message, key.line)
            else:
                own[key.text] = (key, value)
        return merged | own

    def _merged(self, value: _Node, loc: Loc) -> dict[str, tuple[_Node, _Node]]:
        found: dict[str, tuple[_Node, _Node]] = {}
        for source in value.items if isinstance(value, _Sequence) else [value]:
            if isinstance(source, _Mapping):
                found = self._pairs(source, loc) | found
            else:
                self._report((*loc, "<<"), "merges a mapping or a list of them", value.line)
        return found

    def _spend(self, node: _Node) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            _refuse(
                f"aliases that expand to more than {MAX_NODES:,} values; write less of them",
                node.line,
            )

    def _report(self, loc: Loc, message: str, line: int) -> None:
        self.problems.append(Problem(dotted(loc), message, line))


_TAG = "tag:yaml.org,2002:"


def _wrong_tag(node: _Node) -> str:
    """What is wrong with a node's tag; ``""`` for none and for those of plain data."""
    tag = (node.tag or "!").removeprefix(_TAG)
    kind = {_Scalar: "str", _Sequence: "seq", _Mapping: "map"}[type(node)]
    if tag in ("!", kind):
        return ""
    if isinstance(node, _Scalar) and tag in _TYPES:
        value = plain_scalar(node.text)
        fits = isinstance(value, _TYPES[tag]) and isinstance(value, bool) == (tag == "bool")
        return "" if fits else f"{clip(node.text)} is no !!{tag}; write the value without a tag"
    shown = f"!!{tag}" if node.tag != tag else tag
    return f"the tag {shown}; a configuration holds plain data only, remove the tag"


def _wrong_text(node: _Node) -> str:
    if isinstance(node, _Scalar) and _SURROGATE.search(node.text):
        return f"{clip(node.text)} holds half a character; write it in full"
    return ""


def _wrong_key(key: _Node) -> str:
    if not isinstance(key, _Scalar):
        return "a key that is a list or a mapping; keys are names"
    if key.plain and not key.text:
        return "a value without a key; write a name before the ':'"
    return _wrong_tag(key) or _wrong_text(key)


def _line(event: yaml.Event) -> int:
    assert event.start_mark is not None
    return event.start_mark.line + 1


def _refuse(message: str, line: int | None = None) -> NoReturn:
    raise ConfigError([Problem("", message, line)]) from None


def _refuse_syntax(text: str, error: yaml.MarkedYAMLError) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    what = error.problem or error.context or "no YAML"
    if mark is None:
        _refuse(f"not YAML: {what}")
    lines = text.splitlines()
    here = lines[mark.line] if mark.line < len(lines) else ""
    if "\t" in here[: len(here) - len(here.lstrip())] or here[mark.column :][:1] == "\t":
        what, hint = "a tab in the indentation", "indent with spaces"
    elif "mapping values" in what:
        hint = "put a text that holds ': ' in quotes, or look at the indentation"
    else:
        hint = "look at the indentation, brackets and quotes before it"
    _refuse(f"not YAML at column {mark.column + 1}: {what}; {hint}", mark.line + 1)
