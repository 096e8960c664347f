"""What a configuration says in more than one place, checked on plain data.

Plain data, because it is checked also when single fields are wrong, so that a file's problems
come out all at once; whatever has the wrong type here is passed over, its field reports it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from campaign.agentcrossing import asked
from campaign.fields import duration_text, seconds_of
from campaign.problems import Loc, choose_from, clip
from campaign.space import grid_size
from campaign.template import RESERVED, unknown_placeholders
from executors.base import KILL_GRACE
from executors.config import STARTING

Found: TypeAlias = tuple[Loc, str]
Plain: TypeAlias = Mapping[str, object]

_TAKEN = {
    "rationale": "what a rule calls the agent's reasons",
    "expect": "what a guard calls the verdict",
}
_STAND_IN: Loc = ("simulation", "dry_run")  # it runs here alone, on what there is


def crossing(data: Plain) -> list[Found]:
    """Every place that contradicts another one, and what would be right."""
    checks: tuple[Callable[[Plain], Iterator[Found]], ...] = (
        _parameters,
        _objective,
        asked,
        _names,
        _executors,
        _pilots,
        _functions,
        _outputs,
        _placeholders,
    )
    return [found for check in checks for found in check(data)]


def _mapping(data: Plain, key: str) -> Plain:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _tasks(data: Plain) -> Iterator[tuple[Loc, Plain]]:
    verifiers = data.get("verifiers")
    for index, task in enumerate(verifiers if isinstance(verifiers, list | tuple) else ()):
        if isinstance(task, Mapping):
            yield ("verifiers", index), task
    if simulation := _mapping(data, "simulation"):
        yield ("simulation",), simulation
        if stand_in := _mapping(simulation, "dry_run"):
            yield _STAND_IN, stand_in


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parameters(data: Plain) -> Iterator[Found]:
    parameters = _mapping(data, "parameters")
    for name in parameters:
        if name in RESERVED:
            yield (
                ("parameters", name),
                f"{name!r} is a placeholder of every task; give the parameter another name",
            )
        elif name in _TAKEN:
            yield (
                ("parameters", name),
                f"{name!r} is {_TAKEN[name]}; give the parameter another name",
            )
    size = math.prod(_size(parameter) for parameter in parameters.values())
    batch = _whole(data.get("batch_size"))
    if parameters and batch is not None and batch > size:
        yield (
            ("batch_size",),
            f"{batch} different candidates; the parameters have only {size:.0f}, ask for no more",
        )


def _size(parameter: object) -> float:
    """How many values a parameter has; infinite also for what cannot be counted."""
    match parameter:
        case {"type": "int", "min": int(low), "max": int(high)} if low <= high:
            return high - low + 1
        case {"type": "float", "min": low, "max": high, "step": float() | int() as step}:
            return grid_size(low, high, step)
        case {"type": "categorical", "choices": [_, _, *_] as choices}:
            return len(choices)
        case _:
            return math.inf


def _objective(data: Plain) -> Iterator[Found]:
    objective = _mapping(data, "objective")
    if not objective:
        return
    given = {key for key, value in objective.items() if value is not None}
    if not given & {"target", "direction"}:
        yield (
            ("objective",),
            "neither target nor direction; give a target with its tolerance, "
            "or direction: minimize or maximize",
        )
        return
    if {"target", "direction"} <= given:
        yield ("objective",), "both target and direction; keep one"
        return
    if "target" in given and "tolerance" not in given:
        yield ("objective", "tolerance"), "missing; say how far from the target is near enough"
    if "tolerance" in given and "target" not in given:
        yield ("objective", "tolerance"), "a tolerance without a target; remove it or give target"
    if "stop_at" in given and "direction" not in given:
        yield ("objective", "stop_at"), "only with direction; a target ends by its tolerance"


def _names(data: Plain) -> Iterator[Found]:
    seen: dict[object, Loc] = {}
    for loc, task in _tasks(data):
        name = task.get("name")
        if not isinstance(name, str) or loc[0] == "simulation":
            continue
        if name == "simulation":
            yield (*loc, "name"), "'simulation' is the simulation's own name; choose another one"
        elif name in seen:
            yield (
                (*loc, "name"),
                f"{clip(name)} is the name of verifiers[{seen[name][1]}] too; "
                "give each verifier its own",
            )
        else:
            seen[name] = loc


def _executors(data: Plain) -> Iterator[Found]:
    executors = _mapping(data, "executors")
    if not executors:
        if "executors" in data:
            return  # given, and wrong: its own problem
        executors = {"default": {"kind": "local", "workers": 2}}
    for loc, task in _tasks(data):
        label = task.get("executor", "default")
        if not isinstance(label, str):
            continue
        if label not in executors:
            yield (*loc, "executor"), f"no executor {clip(label)}; {choose_from(label, executors)}"
        elif loc != _STAND_IN and isinstance(executor := executors[label], Mapping):
            yield from _fits(loc, task, label, executor)


def _fits(loc: Loc, task: Plain, label: str, executor: Plain) -> Iterator[Found]:
    """What a task asks of its executor and cannot get there."""
    match executor.get("kind"):
        case "threads" | "local":
            yield from _on_this_machine(loc, task, label, executor)
        case "mpi":
            yield from _on_whole_nodes(loc, task, label, executor)
        case "slurm" | "allocation" | "parsl" as kind:
            for key in ("ranks", "nodes"):
                if (_whole(task.get(key)) or 1) > 1:
                    yield (
                        (*loc, key),
                        f"{task[key]} {key} on executor {label!r} of kind {kind}, whose tasks are "
                        "single processes; name an executor of kind mpi",
                    )
    asks, walltime = executor.get("pilot"), seconds_of(task.get("walltime"))
    if isinstance(asks, Mapping) and walltime and (longest := seconds_of(asks.get("walltime"))):
        needed = walltime + KILL_GRACE + STARTING
        if needed > longest:
            yield (
                (*loc, "walltime"),
                f"{duration_text(walltime)} does not fit into pilot jobs of "
                f"{duration_text(longest)} on executor {label!r}; give those at least "
                f"{duration_text(needed)}",
            )


def _on_this_machine(loc: Loc, task: Plain, label: str, executor: Plain) -> Iterator[Found]:
    ranks, nodes = _whole(task.get("ranks")), _whole(task.get("nodes"))
    workers = _whole(executor.get("workers", 2))
    if ranks and workers and ranks > workers and task.get("kind") != "python":
        yield (
            (*loc, "ranks"),
            f"{ranks} ranks on the {workers} workers of executor {label!r}; "
            f"ask for at most {workers} or give it more workers",
        )
    if nodes and nodes > 1:
        yield (
            (*loc, "nodes"),
            f"{nodes} nodes on executor {label!r}, which is this machine alone; give 1",
        )


def _on_whole_nodes(loc: Loc, task: Plain, label: str, executor: Plain) -> Iterator[Found]:
    ranks, nodes = _whole(task.get("ranks")) or 1, _whole(task.get("nodes")) or 1
    there = _whole(executor.get("nodes"))
    if task.get("kind") == "python":
        yield (
            (*loc, "executor"),
            f"executor {label!r} starts ranks on whole nodes, and a python function is one "
            "process; give kind: mpi, or another executor",
        )
    if ranks % nodes:
        yield (
            (*loc, "ranks"),
            f"{ranks} ranks on {nodes} nodes; give every node as many, for instance "
            f"{nodes * max(1, ranks // nodes)}",
        )
    if there and nodes > there:
        yield (
            (*loc, "nodes"),
            f"{nodes} nodes on executor {label!r}, which has {there}; ask for at most {there}",
        )


def _pilots(data: Plain) -> Iterator[Found]:
    for label, executor in _mapping(data, "executors").items():
        if not isinstance(executor, Mapping) or executor.get("kind") != "mpi":
            continue
        if executor.get("pilot") is not None and executor.get("nodes") is None:
            missing = "missing; say how many nodes the pilot job asks for"
            yield ("executors", label, "nodes"), missing
        if executor.get("pilot") is None and executor.get("address") is not None:
            idle = "only with a pilot; in the driver's own job nothing is reached from elsewhere"
            yield ("executors", label, "address"), idle


def _functions(data: Plain) -> Iterator[Found]:
    for loc, task in _tasks(data):
        ranks = _whole(task.get("ranks"))
        if task.get("kind") == "python" and ranks and ranks > 1:
            yield (
                (*loc, "ranks"),
                f"{ranks} ranks for a python function, which is one process; "
                "give 1, or kind: mpi for a function that every rank calls",
            )


def _outputs(data: Plain) -> Iterator[Found]:
    for loc, task in _tasks(data):
        output = task.get("output")
        if not isinstance(output, Mapping):
            continue
        keys = [key for key in ("json", "exit_codes", "reader") if output.get(key) is not None]
        if len(keys) != 1:
            yield (
                (*loc, "output"),
                f"{' and '.join(keys) or 'no key'} given; give exactly one of json, "
                f"{'reader' if loc[0] == 'simulation' else 'exit_codes, reader'}",
            )
        if "json" in keys and task.get("kind") in ("python", "mpi"):
            yield (
                (*loc, "output", "json"),
                "a function answers by its return value; leave output out or give a reader",
            )
        if "exit_codes" in keys:
            yield from _exit_codes(loc, task)


def _exit_codes(loc: Loc, task: Plain) -> Iterator[Found]:
    place = (*loc, "output", "exit_codes")
    if loc[0] == "simulation":
        yield place, "exit codes hold no value of a simulation; give json or reader"
    elif task.get("kind") in ("python", "mpi"):
        yield place, "a function answers by its return value; leave output out or give a reader"


def _placeholders(data: Plain) -> Iterator[Found]:
    known = (*(name for name in _mapping(data, "parameters")), *RESERVED)
    for loc, task in _tasks(data):
        for place, text in _texts(loc, task):
            for message in unknown_placeholders(text, known):
                yield place, message
        for name, source in _mapping(task, "files").items():
            if isinstance(source, str) and ("{" in source or "}" in source):
                yield (
                    (*loc, "files", name),
                    f"braces in {clip(source)}; a template is found from the campaign folder, "
                    "write its path without placeholders",
                )


def _texts(loc: Loc, task: Plain) -> Iterator[tuple[Loc, str]]:
    """Every text of a task that holds ``{placeholders}``."""
    for key in ("command", "launcher"):
        words = task.get(key)
        for index, word in enumerate(words if isinstance(words, list | tuple) else ()):
            if isinstance(word, str):
                yield (*loc, key, index), word
    for name, value in _mapping(task, "env").items():
        if isinstance(value, str):
            yield (*loc, "env", name), value
