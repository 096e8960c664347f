"""The problems of the surrogate benchmark: plain values and NumPy, so that every peer can run them.

A space is a tuple of ``(name, kind, ...)``: ``("x", "float", low, high, scale)``,
``("n", "int", low, high, scale)`` or ``("c", "choice", (a, b, ...))``. A simulation that fails
answers NaN. Boxes, optima and formulas: https://www.sfu.ca/~ssurjano/optimization.html, except
those marked as ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Axis = tuple[Any, ...]


@dataclass(frozen=True)
class Problem:
    space: tuple[Axis, ...]
    simulate: Callable[[Mapping[str, Any]], float]
    optimum: float
    budget: int = 60
    may_fail: bool = False


def branin(x: Array) -> float:
    a, b = x
    bend = b - 5.1 / (4 * math.pi**2) * a * a + 5 / math.pi * a - 6
    return float(bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10)


def branin_failing(x: Array) -> float:
    """Ours: fails within 3 of one of the three minima."""
    return math.nan if math.hypot(x[0] - math.pi, x[1] - 2.275) < 3 else branin(x)


_HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(x: Array) -> float:
    wells = np.exp(-(_HARTMANN_A * (x - _HARTMANN_P) ** 2).sum(1))
    return -float(np.array([1, 1.2, 3, 3.2]) @ wells)


def ackley(x: Array) -> float:
    waves = math.exp(float(np.cos(2 * math.pi * x).mean()))
    return 20 - 20 * math.exp(-0.2 * math.sqrt(float(x @ x) / len(x))) - waves + math.e


def rosenbrock(x: Array) -> float:
    return float((100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def levy(x: Array) -> float:
    w = 1 + (x - 1) / 4
    middle = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + middle.sum() + last)


def griewank(x: Array) -> float:
    waves = np.cos(x / np.sqrt(np.arange(1, len(x) + 1)))
    return float(x @ x / 4000 - np.prod(waves) + 1)


def michalewicz(x: Array) -> float:
    sharp = np.sin(np.arange(1, len(x) + 1) * x * x / math.pi) ** 20
    return -float((np.sin(x) * sharp).sum())


_SHEKEL_C = np.array([[4, 1, 8, 6, 3, 2, 5, 8, 6, 7], [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6]] * 2).T
_SHEKEL_B = np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5]) / 10


def shekel(x: Array) -> float:
    return -float((1 / (((x - _SHEKEL_C) ** 2).sum(1) + _SHEKEL_B)).sum())


def styblinski_tang(x: Array) -> float:
    return float(0.5 * (x**4 - 16 * x**2 + 5 * x).sum())


def camel(x: Array) -> float:
    a, b = x
    return float((4 - 2.1 * a * a + a**4 / 3) * a * a + a * b + (4 * b * b - 4) * b * b)


def _turned(f: Callable[[Array], float], shift: tuple[float, ...]) -> Callable[[Array], float]:
    """Ours: shifted and rotated, so that neither the centre nor an axis gives the optimum away."""
    turn = np.linalg.qr(np.random.default_rng(len(shift)).standard_normal((len(shift),) * 2))[0]
    return lambda x: f(turn @ (x - np.array(shift)))


def _corner_fails(x: Array) -> float:
    """Ours: half of the box fails, and the minimum lies 0.035 from the edge."""
    if x[0] + x[1] > 1:
        return math.nan
    return float(10 * ((x - [0.45, 0.5, 0.3, 0.7]) ** 2).sum() + math.sin(9 * x[2]) ** 2)


_T = np.linspace(0, 1, 200_001)
_CORNER = float((10 * (_T - 0.3) ** 2 + np.sin(9 * _T) ** 2).min())


def _mixed_branin(p: Mapping[str, Any]) -> float:
    """Ours: two numbers, an int and a choice that lifts and steepens."""
    lift = {"a": 0.0, "b": 1.0, "c": 0.4}[p["kind"]]
    plane = branin(np.array([p["x"], p["y"]]))
    return float(plane * (1 + lift / 2) + 8 * lift + 0.3 * (p["n"] - 7) ** 2)


def _mixed_tuning(p: Mapping[str, Any]) -> float:
    """Ours: like tuning a network; numbers, log scales, an int and a choice."""
    base = {"tanh": 0.1, "relu": 0.0, "gelu": 0.05, "sin": 0.4}[p["act"]]
    away = (p["u"] - 0.3) ** 2 + (p["v"] - 0.6) ** 2 + (p["w"] - 0.8) ** 2
    rate, width = math.log10(p["rate"]) + 2.7, math.log2(p["width"]) - 6
    return float(0.4 * rate**2 + base + 0.05 * width**2 + away * (1 + base))


def _box(
    f: Callable[[Array], float], low: float, high: float, d: int, optimum: float, **more: Any
) -> Problem:
    space = tuple((f"x{i}", "float", low, high, "linear") for i in range(d))
    return _vector(f, space, optimum, **more)


def _vector(
    f: Callable[[Array], float], space: tuple[Axis, ...], optimum: float, **more: Any
) -> Problem:
    names = [axis[0] for axis in space]
    return Problem(space, lambda p: f(np.array([p[n] for n in names], float)), optimum, **more)


_BRANIN = (("x", "float", -5.0, 10.0, "linear"), ("y", "float", 0.0, 15.0, "linear"))
_BRANIN_LEAST = 0.39788735772973816
_HALF = (7.3, -11.2, 4.1, -3.7, 9.9)

# The six of the published comparison, on which the design was chosen, ...
TUNED = {
    "branin2": _vector(branin, _BRANIN, _BRANIN_LEAST),
    "hart6": _box(hartmann, 0.0, 1.0, 6, -3.322368011391339),
    "ackley5": _box(ackley, -32.768, 32.768, 5, 0.0),
    "rosen4": _box(rosenbrock, -5.0, 10.0, 4, 0.0),
    "levy10": _box(levy, -10.0, 10.0, 10, 0.0, budget=100),
    "branin2fail": _vector(branin_failing, _BRANIN, _BRANIN_LEAST, may_fail=True),
}
# ... and others.
HELD_OUT = {
    "camel2": _vector(
        camel,
        (("x", "float", -3.0, 3.0, "linear"), ("y", "float", -2.0, 2.0, "linear")),
        -1.0316284534898774,
    ),
    "griewank4": _box(_turned(griewank, (210.0, -130.0, 55.0, -90.0)), -600.0, 600.0, 4, 0.0),
    "michalewicz5": _box(michalewicz, 0.0, math.pi, 5, -4.687658179),
    "shekel4": _box(shekel, 0.0, 10.0, 4, -10.536443153483534),
    "styblinski5": _box(styblinski_tang, -5.0, 5.0, 5, -39.16616570377142 * 5),
    "ackley5turned": _box(_turned(ackley, _HALF), -32.768, 32.768, 5, 0.0),
    "corner4fail": _box(_corner_fails, 0.0, 1.0, 4, _CORNER, may_fail=True),
    "mixed4": Problem(
        (*_BRANIN, ("n", "int", 1, 12, "linear"), ("kind", "choice", ("a", "b", "c"))),
        _mixed_branin,
        _BRANIN_LEAST,
    ),
    "mixed6": Problem(
        (
            *((name, "float", 0.0, 1.0, "linear") for name in ("u", "v", "w")),
            ("rate", "float", 1e-5, 1.0, "log"),
            ("width", "int", 4, 512, "log"),
            ("act", "choice", ("tanh", "relu", "gelu", "sin")),
        ),
        _mixed_tuning,
        0.0,
    ),
}
PROBLEMS = TUNED | HELD_OUT
