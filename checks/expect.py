"""The ``expect:`` block: read, checked as a whole, and its rules compiled.

Blocks come as plain data, from ``defaults:`` and from the agent; the two merge key by key. Rules
come by one of three routes: inline, from a suite by name, or from the agent's own file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from checks import template
from checks.declared import nearest
from checks.sources import Document, Entries, entries_of
from checks.suite import Suite, SuiteError, compile_rules
from checks.values import kind_of, shown
from checks.world import JUDGE, World

KEYS = (
    "repair",
    "structural",
    "max_iterations",
    "structural_budget",
    "on_exhausted",
    "judge_budget",
    "expectations",
    "suite",
)
REPAIRS = ("none", "retry", "auto")
STRUCTURALS = ("retry", "auto")
ENDINGS = ("fallback", "return_last", "fail", "raise")
MOST_ITERATIONS = 10
VERDICT_KEY = "expect"  # where a verdict is attached to a candidate


@dataclass(frozen=True, slots=True)
class Prompt:
    """A repair by an authored prompt; ``text`` has the placeholders of :mod:`checks.template`."""

    reference: str
    text: str


@dataclass(frozen=True, slots=True)
class Expect:
    """What an agent's answers are held to, and what is done where they fall short."""

    suite: Suite
    repair: str | Prompt = "auto"
    structural: str | Prompt = "retry"
    max_iterations: int = 2  # generations, the first counted
    structural_budget: int | None = None  # answers without candidates that cost no generation
    on_exhausted: str = "fallback"
    judge_budget: int | None = None  # calls
    entries: Entries = field(default_factory=list)  # what the suite was compiled from, in order

    @property
    def observes(self) -> bool:
        """Whether what the rules say is recorded and blocks nothing."""
        return self.repair == "none"


@dataclass(frozen=True, slots=True)
class Around:
    """What a block is read in.

    ``own`` is the file that describes the agent's answer, ``suites`` the files a block may name,
    ``prompts`` the texts a repair may name. ``cannot_repair`` says why the agent cannot answer
    twice, ``cannot_steer`` why it reads no feedback, ``""`` when it can: what it cannot do is left
    out of a policy it inherits, and refused in one written at it.
    """

    world: World = field(default_factory=World)
    own: Document | None = None
    suites: Mapping[str, Document] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    cannot_repair: str = ""
    cannot_steer: str = ""


def read_expect(block: object, around: Around, *, defaults: object = None) -> Expect | None:
    """Read an agent's block over the campaign's defaults; ``None`` when nothing is expected.

    Raises one :class:`~checks.suite.SuiteError` with every refusal.
    """
    if block is None and defaults is None:
        return None
    problems = [*shape(block, VERDICT_KEY), *shape(defaults, f"defaults.{VERDICT_KEY}")]
    if problems:
        raise SuiteError(problems)
    stated = dict(block) if isinstance(block, Mapping) else {}
    merged = {**(defaults if isinstance(defaults, Mapping) else {}), **stated}
    entries = entries_of(merged, around.own, around.suites, problems)
    if around.cannot_repair:
        if stated.get("repair", "none") != "none":
            problems.append(
                f"repair: {shown(stated['repair'])}, but {around.cannot_repair}; use repair: none"
            )
        elif not entries and not problems:
            return None
        merged = {k: v for k, v in merged.items() if k not in _LOOPING or k in stated}
        merged["repair"] = "none"
    if around.cannot_steer:
        _unsteered(merged, stated, around.cannot_steer, problems)
    problems += _policy(merged, around, bool(entries))
    if around.world.fields is not None and around.world.fields.kind(VERDICT_KEY) is not None:
        problems.append(f"field {VERDICT_KEY!r}: the verdict is attached under this key; rename it")
    rules, refused = compile_rules(entries, around.world)
    problems += refused
    judged = any(isinstance(e, Mapping) and e.get("type") == JUDGE for e, _ in entries)
    if "judge_budget" in merged and entries and not judged:
        problems.append(
            f"judge_budget: no rule is judged; add a rule of type {JUDGE} or leave it out"
        )
    if problems:
        raise SuiteError(problems)
    return _made(merged, around, Suite(rules), entries)


_LOOPING = ("repair", "structural", "max_iterations", "structural_budget", "on_exhausted")


def _unsteered(
    merged: dict[str, object], stated: Mapping[str, object], why: str, problems: list[str]
) -> None:
    """Ask again without feedback what an agent would be steered by; refuse it where it was said."""
    for key, usual in (("repair", "auto"), ("structural", "retry")):
        way = merged.get(key, usual)
        if way != "auto" and not isinstance(way, Mapping):
            continue
        if key in stated:
            problems.append(f"{key}: {shown(way)}, but {why}; use {key}: retry")
        merged[key] = "retry"


def _made(merged: Mapping[str, object], around: Around, suite: Suite, entries: Entries) -> Expect:
    """The block's values, checked before; what is left out has its default."""
    usual = Expect(suite)
    iterations, budget = merged.get("max_iterations"), merged.get("judge_budget")
    structural = merged.get("structural_budget")
    return Expect(
        suite,
        repair=_resolved(merged.get("repair", usual.repair), around),
        structural=_resolved(merged.get("structural", usual.structural), around),
        max_iterations=iterations if isinstance(iterations, int) else usual.max_iterations,
        structural_budget=structural if isinstance(structural, int) else None,
        on_exhausted=str(merged.get("on_exhausted", usual.on_exhausted)),
        judge_budget=budget if isinstance(budget, int) else None,
        entries=entries,
    )


def _resolved(value: object, around: Around) -> str | Prompt:
    if not isinstance(value, Mapping):
        return str(value)
    reference = str(value["prompt"])
    return Prompt(reference, around.prompts.get(reference, reference))


def shape(block: object, name: str) -> list[str]:
    """What is wrong with a block that must be a mapping of the known keys; ``name`` is its own."""
    if block is None:
        return []
    if not isinstance(block, Mapping):
        return [f"{name}: {shown(block)}; it must be a mapping, not {kind_of(block)}"]
    return [
        f"{name}: unknown key {shown(key)}; {nearest(key, KEYS)}the keys are {', '.join(KEYS)}"
        for key in block
        if key not in KEYS
    ]


def _policy(merged: Mapping[str, object], around: Around, has_rules: bool) -> list[str]:
    repair = merged.get("repair", "auto")
    problems = [*_way("repair", repair, REPAIRS, around)]
    structural = merged.get("structural", "retry")
    problems += _way("structural", structural, STRUCTURALS, around)
    counts = dict.fromkeys(("max_iterations", "structural_budget"), MOST_ITERATIONS)
    for key, most in (counts | {"judge_budget": None}).items():
        if key in merged and (fault := _count(merged[key], most)):
            problems.append(f"{key}: {fault}")
    ending = merged.get("on_exhausted", ENDINGS[0])
    if ending not in ENDINGS:
        problems.append(
            f"on_exhausted: {shown(ending)}; {nearest(ending, ENDINGS)}it is one of "
            f"{', '.join(ENDINGS)}"
        )
    if repair != "none":
        return problems
    idle = [key for key in ("max_iterations", "structural_budget", "on_exhausted") if key in merged]
    if "structural" in merged and structural != "retry":
        idle.append("structural")
    problems += [
        f"{key}: {shown(merged[key])} under repair: none, where nothing is generated again; "
        "leave it out"
        for key in idle
    ]
    if not has_rules and "expectations" not in merged and "suite" not in merged:
        problems.append("repair: none without rules checks nothing; give expectations: or suite:")
    return problems


def _way(key: str, value: object, words: Sequence[str], around: Around) -> list[str]:
    """What is wrong with a way of repair."""
    listed = f"{', '.join(words)} or {{prompt: …}}"
    if isinstance(value, Mapping):
        if list(value) != ["prompt"]:
            return [
                f"{key}: a mapping with {', '.join(map(str, value)) or 'nothing'}; it has the "
                "one key prompt"
            ]
        reference = value["prompt"]
        if not isinstance(reference, str) or not reference.strip():
            return [f"{key}: prompt: {shown(reference)}; it must be a non-empty string"]
        text = around.prompts.get(reference)
        if text is None and _is_reference(reference):
            known = ", ".join(around.prompts) or "none"
            return [f"{key}: prompt {reference!r} is not found; there are {known}"]
        return [f"{key}: prompt: {fault}" for fault in template.faults(text or reference)]
    if isinstance(value, str) and value in words:
        return []
    off = "; in YAML no and off are false, quote the word" if value is False else ""
    return [f"{key}: {shown(value)}; {nearest(value, words)}it is {listed}{off}"]


def _is_reference(text: str) -> bool:
    """Whether a prompt names a text rather than being one."""
    return "{" not in text and not any(c.isspace() for c in text.strip())


def _count(value: object, most: int | None) -> str:
    wanted = f"a whole number from 1 to {most}" if most else "a whole number, at least 1"
    fine = isinstance(value, int) and not isinstance(value, bool)
    if fine and isinstance(value, int) and 1 <= value <= (most or value):
        return ""
    return f"{shown(value)}; it must be {wanted}"
