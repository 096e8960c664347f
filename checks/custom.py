"""Checks of the user's own: a decorated function becomes a type of rule.

::

    @check("even_cells", params=("axis",))
    def even_cells(value, params):
        return value % 2 == 0, f"{value} cells; expected an even number"

A check is a function of a value and the rule's parameters, both copies, that answers
``(passed, detail)``. One that raises, or answers anything else, could not tell: its finding is an
error, and the run goes on. Nothing is registered by importing; :func:`discover` collects.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.util
import inspect
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from checks.ruletype import Param, Params, Raised, RuleType, Test
from checks.values import shown
from checks.world import BUILT_IN, GATE

GROUP = "simgate.checks"  # entry points; each names a module or one decorated function

_MARK = "__simgate_check__"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_PLAIN = (str, int, float, bool, type(None))

_log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


class CheckError(ValueError):
    """A check that cannot be used, or a file of checks; the message names it."""


@dataclass(frozen=True, slots=True)
class _Declared:
    name: str
    params: tuple[str, ...]
    required: tuple[str, ...]
    scope: Literal["field", "record"]


def check(
    name: str,
    *,
    params: Iterable[str] = (),
    required: Iterable[str] = (),
    scope: Literal["field", "record"] = "field",
) -> Callable[[F], F]:
    """Declare a function to be the type of rule ``name``; the function itself stays as it is.

    ``params`` are the parameters a rule of this type may give, ``required`` those of them it
    must. With ``scope="record"`` the function gets the whole record, and the rule has no field.

    Raises :class:`CheckError`.
    """
    declared = _Declared(name, tuple(params), tuple(required), scope)
    _validate(declared)

    def mark(function: F) -> F:
        _callable(name, function)
        setattr(function, _MARK, declared)
        return function

    return mark


def _callable(name: str, function: Callable[..., object]) -> None:
    """Raise :class:`CheckError` for what can never answer a value and parameters."""
    if inspect.iscoroutinefunction(function):
        raise CheckError(f"check {name!r}: async; a check is a plain function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CheckError(f"check {name!r}: a generator; return (passed, detail)")
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # what is written in C may not tell
    try:
        signature.bind(None, {})
    except TypeError:
        wanted = "define it as function(value, params)"
        raise CheckError(f"check {name!r}: takes {signature}; {wanted}") from None


def _validate(declared: _Declared) -> None:
    if callable(declared.name):
        said = getattr(declared.name, "__name__", "name")
        raise CheckError(f"@check above {said}: without a name; write @check({said!r})")
    said = f"check {declared.name!r}"
    if not _NAME.match(str(declared.name)):
        raise CheckError(f"{said}: no usable name; use lower-case letters, digits and _")
    if declared.name in BUILT_IN:
        raise CheckError(f"{said}: is a built-in type; choose another name")
    if declared.scope not in ("field", "record"):
        raise CheckError(f"{said}: scope {declared.scope!r}; it is 'field' or 'record'")
    if GATE in declared.params:
        raise CheckError(f"{said}: {GATE} is for every type; leave it out of params")
    stray = [name for name in declared.required if name not in declared.params]
    if stray:
        raise CheckError(f"{said}: required {stray[0]!r} is not among params; list it there, too")


def discover(folder: Path | None = None, *, installed: bool = True) -> dict[str, RuleType]:
    """Collect the checks in a folder's Python files, and those that packages bring.

    Files whose name begins with ``_`` or ``test_`` are left alone, and so is a file without the
    decorator. A file's own folder can be imported from. Packages bring checks by entry points of
    the group ``simgate.checks``.

    Raises :class:`CheckError` for two checks of one name, naming both, and for a file that
    cannot be imported.
    """
    found: dict[str, tuple[RuleType, str]] = {}
    for function, source in _functions(folder, installed=installed):
        kind = rule_type(function)
        other = found.get(kind.name)
        if other is not None:
            raise CheckError(f"check {kind.name!r}: in {source} and in {other[1]}; rename one")
        found[kind.name] = kind, source
    return {name: kind for name, (kind, _) in found.items()}


def rule_type(function: Callable[..., object]) -> RuleType:
    """The type of rule that a decorated function is."""
    declared: _Declared = getattr(function, _MARK)

    def build(values: Params) -> Test:
        given = {name: value for name, value in values.items() if value is not None}
        return Test(lambda value: _asked(function, value, given), lambda _: "", own=True)

    return RuleType(
        declared.name,
        build,
        {name: Param(lambda v: v, required=name in declared.required) for name in declared.params},
        whole_record=declared.scope == "record",
        together=True,
        own=True,
    )


def _asked(
    function: Callable[..., object], value: object, params: Mapping[str, object]
) -> bool | str:
    try:
        answer = function(_copied(value), _copied(dict(params)))
        return _validated(answer)
    except (Exception, SystemExit) as exc:  # whatever the user's code raises
        # Where, but not what it said: that may be the value, which is the agent's.
        where = "".join(traceback.format_tb(exc.__traceback__))
        _log_once(getattr(function, _MARK).name, type(exc).__name__, where)
        raise Raised(f"check raised {type(exc).__name__}: {exc}") from None


@lru_cache(maxsize=256)
def _log_once(name: str, kind: str, where: str) -> None:
    """A check that raises does so for many candidates; one trace tells where."""
    _log.warning("check %s raised %s\n%s", name, kind, where)


def _copied(value: object) -> object:
    return value if type(value) in _PLAIN else copy.deepcopy(value)


def _validated(answer: object) -> bool | str:
    """``True``, or the detail of a failure."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise TypeError(f"answered {shown(answer)}; return (passed, detail)")
    passed, detail = answer
    if not isinstance(passed, bool):
        from numpy import bool_  # loaded already where one is answered

        if not isinstance(passed, bool_):
            raise TypeError(f"passed is {shown(passed)}; return True or False")
    if not isinstance(detail, str):
        raise TypeError(f"detail is {shown(detail)}; return a string")
    # A ledger is UTF-8, which has no half of a surrogate pair.
    detail = detail.encode(errors="backslashreplace").decode()
    return bool(passed) or detail or "failed, and did not say why"


def _functions(
    folder: Path | None, *, installed: bool
) -> Iterator[tuple[Callable[..., object], str]]:
    for path in sorted(folder.rglob("*.py")) if folder is not None else ():
        if not path.name.startswith(("_", "test_")) and _declares(path):
            yield from ((function, str(path)) for function in _marked(_imported(path)))
    for point in sorted(entry_points(group=GROUP)) if installed else ():
        source = f"the entry point {point.name} = {point.value}"
        try:
            loaded = point.load()
        except (Exception, SystemExit) as exc:  # whatever the package's module raises
            raise CheckError(f"{source}: {type(exc).__name__}: {exc}") from exc
        functions = _marked(loaded) if isinstance(loaded, ModuleType) else [loaded]
        for function in functions:
            if not hasattr(function, _MARK):
                raise CheckError(f"{source}: no @check; name a module or a decorated function")
            yield function, source


def _declares(path: Path) -> bool:
    """Whether a file has a function decorated by something called ``check``."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as exc:
        raise CheckError(f"{path}: cannot be read: {exc.strerror}") from None
    except (SyntaxError, ValueError) as exc:
        raise CheckError(f"{path}: {exc}") from None
    decorators = (d for node in ast.walk(tree) for d in getattr(node, "decorator_list", ()))
    names = (d.func if isinstance(d, ast.Call) else d for d in decorators)
    return any(getattr(c, "id", getattr(c, "attr", "")) == "check" for c in names)


def _marked(module: ModuleType) -> list[Callable[..., object]]:
    """The checks a module defines; one it imports from elsewhere belongs there."""
    return [
        function
        for function in vars(module).values()
        if hasattr(function, _MARK) and getattr(function, "__module__", "") == module.__name__
    ]


def _imported(path: Path) -> ModuleType:
    """Import a file under a name that no other file has."""
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    spec = importlib.util.spec_from_file_location(f"_simgate_check_{digest}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _importable(path.parent), redirect_stdout(sys.stderr):  # stdout may be JSON for a program
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as exc:  # whatever the user's file raises
            raise CheckError(f"{path}: {type(exc).__name__}: {exc}") from exc
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
