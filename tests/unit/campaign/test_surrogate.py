"""What ``suggest`` and ``predict`` promise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from campaign.space import CategoricalParameter, FloatParameter, IntParameter, Point, Space
from campaign.surrogate import predict, suggest
from campaign.surrogate.encode import Encoder
from campaign.trial import Goal, Room, Trial

MINIMIZE, MAXIMIZE = Goal("minimize"), Goal("maximize")


def real(low: float, high: float, scale: str = "linear") -> FloatParameter:
    return FloatParameter.model_validate({"type": "float", "min": low, "max": high, "scale": scale})


def whole(low: int, high: int, scale: str = "linear") -> IntParameter:
    return IntParameter.model_validate({"type": "int", "min": low, "max": high, "scale": scale})


def choice(*choices: float | int | str | bool) -> CategoricalParameter:
    return CategoricalParameter.model_validate({"type": "categorical", "choices": choices})


PLANE: Space = {"a": real(0.0, 1.0), "b": real(-3.0, 2.0)}
MIXED: Space = {
    "rate": real(1e-4, 1.0, "log"),
    "layers": whole(1, 9),
    "kind": choice("p", "q", "r"),
    "width": whole(8, 1024, "log"),
}


def bowl(point: Point) -> float:
    a, b = point["a"], point["b"]
    assert isinstance(a, float)
    assert isinstance(b, float)
    return (a - 0.3) ** 2 + 0.2 * (b - 1.0) ** 2


def mixed(point: Point) -> float:
    rate, layers, width = point["rate"], point["layers"], point["width"]
    assert isinstance(rate, float)
    assert isinstance(layers, int)
    assert isinstance(width, int)
    penalty = {"p": 0.5, "q": 0.0, "r": 1.0}[str(point["kind"])]
    return (
        (math.log10(rate) + 2) ** 2 + 0.1 * (layers - 6) ** 2 + abs(math.log2(width) - 6) + penalty
    )


def run(
    space: Space,
    goal: Goal,
    simulate: Callable[[Point], float | None],
    *,
    batches: int,
    count: int = 4,
    seed: int = 1,
) -> list[Trial]:
    trials: list[Trial] = []
    for _ in range(batches):
        batch = suggest(space, goal, trials, count=count, seed=seed)
        trials += [Trial(point, simulate(point)) for point in batch]
    return trials


def keys(space: Space, points: list[Point]) -> set[object]:
    encoder = Encoder(space)
    return {encoder.key(point) for point in points}


def assert_of_space(space: Space, points: tuple[Point, ...]) -> None:
    for point in points:
        assert list(point) == list(space)
        for name, parameter in space.items():
            value = point[name]
            if isinstance(parameter, CategoricalParameter):
                assert value in parameter.choices
                continue
            assert isinstance(value, (int, float))
            assert isinstance(value, int) == isinstance(parameter, IntParameter)
            assert parameter.min <= value <= parameter.max


@pytest.mark.parametrize("done", [0, 1, 3, 12])
@pytest.mark.parametrize(
    "space", [PLANE, MIXED, {"x": real(-1e-3, 1e5)}], ids=["plane", "mixed", "x"]
)
def test_proposals_lie_in_the_space_and_are_distinct(space: Space, done: int) -> None:
    first = suggest(space, MINIMIZE, [], count=12, seed=3)[:done]
    trials = [Trial(point, float(i % 5)) for i, point in enumerate(first)]
    batch = suggest(space, MINIMIZE, trials, count=7, seed=4)
    assert_of_space(space, batch)
    assert len(keys(space, [*first, *batch])) == done + 7


def test_the_order_of_trials_pending_and_excluded_does_not_matter() -> None:
    trials = run(MIXED, MINIMIZE, lambda p: None if p["kind"] == "r" else mixed(p), batches=4)
    pending = suggest(MIXED, MINIMIZE, trials, count=3, seed=8)
    exclude = suggest(MIXED, MINIMIZE, trials, count=3, seed=9)
    answers = []
    for shuffle in range(3):
        draw = random.Random(shuffle)
        answers.append(
            suggest(
                MIXED,
                MINIMIZE,
                draw.sample(trials, len(trials)),
                Room(
                    pending=draw.sample(pending, len(pending)),
                    exclude=draw.sample(exclude, len(exclude)),
                ),
                count=4,
                seed=5,
            )
        )
    assert answers[0] == answers[1] == answers[2]


def test_the_seed_decides_the_first_batch() -> None:
    assert suggest(PLANE, MINIMIZE, [], count=4, seed=1) == suggest(
        PLANE, MINIMIZE, [], count=4, seed=1
    )
    assert suggest(PLANE, MINIMIZE, [], count=4, seed=1) != suggest(
        PLANE, MINIMIZE, [], count=4, seed=2
    )


def test_trials_pending_and_excluded_points_are_never_proposed_again() -> None:
    space: Space = {"n": whole(1, 6), "kind": choice("p", "q")}
    everything = [{"n": n, "kind": kind} for n in range(1, 7) for kind in ("p", "q")]
    trials = [Trial(point, float(point["n"])) for point in everything[:5]]
    room = Room(pending=everything[5:7], exclude=everything[7:9])
    batch = suggest(space, MINIMIZE, trials, room, count=3, seed=0)
    assert sorted(map(repr, batch)) == sorted(map(repr, everything[9:]))


def test_an_exhausted_space_is_refused_with_what_is_left() -> None:
    space: Space = {"n": whole(1, 3), "on": choice(True, False)}
    trials = [Trial({"n": 1, "on": True}, 1.0), Trial({"n": 2, "on": False}, None)]
    with pytest.raises(ValueError, match="4 of its 6 candidates are left; 5 were asked for"):
        suggest(space, MINIMIZE, trials, count=5, seed=0)
    assert len(suggest(space, MINIMIZE, trials, count=4, seed=0)) == 4


def test_a_float_range_below_the_tenth_place_holds_few_candidates() -> None:
    space: Space = {"x": real(1e-10, 5e-10)}
    batch = suggest(space, MINIMIZE, [], count=5, seed=0)
    assert len({round(float(point["x"]), 10) for point in batch}) == 5
    with pytest.raises(ValueError, match="5 of its 5 candidates"):
        suggest(space, MINIMIZE, [], count=6, seed=0)


def test_a_point_that_is_not_of_the_space_is_named() -> None:
    with pytest.raises(ValueError, match=r"\['a'\]; the space has \['a', 'b'\]"):
        suggest(PLANE, MINIMIZE, [Trial({"a": 0.5}, 1.0)], count=1, seed=0)
    with pytest.raises(ValueError, match=r"kind: 'z'; choices are \['p', 'q', 'r'\]"):
        Encoder(MIXED).rows([{"rate": 0.1, "layers": 1, "kind": "z", "width": 8}])
    with pytest.raises(ValueError, match="infinite"):
        suggest(PLANE, MINIMIZE, [Trial({"a": 0.5, "b": 1.0}, math.inf)], count=1, seed=0)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_minimize_and_maximize_find_the_optimum(sign: float) -> None:
    goal = MINIMIZE if sign > 0 else MAXIMIZE
    trials = run(PLANE, goal, lambda point: sign * bowl(point), batches=6)
    assert min(bowl(trial.point) for trial in trials) < 1e-3


def test_maximize_mirrors_minimize() -> None:
    low = run(PLANE, MINIMIZE, bowl, batches=5)
    high = run(PLANE, MAXIMIZE, lambda point: -bowl(point), batches=5)
    assert [trial.point for trial in low] == [trial.point for trial in high]


def test_a_mixed_space_is_searched_well() -> None:
    trials = run(MIXED, MINIMIZE, mixed, batches=10)
    assert min(trial.value for trial in trials if trial.value is not None) < 0.2


def test_a_target_is_met_where_the_slope_is_steep() -> None:
    def pressure(point: Point) -> float:
        density = point["density"]
        assert isinstance(density, float)
        return 28.0 * (density - 0.776) ** 1.3 if density > 0.776 else 13.0 * (density - 0.776)

    space: Space = {"density": real(0.70, 0.95)}
    trials = run(space, Goal("target", 0.55355), pressure, batches=4)
    nearest = min(trials, key=lambda trial: abs(float(trial.value or 0.0) - 0.55355))
    assert abs(float(nearest.value or 0.0) - 0.55355) < 1e-3


def test_a_target_is_met_under_noise() -> None:
    draw = random.Random(5)

    def noisy(point: Point) -> float:
        x = point["x"]
        assert isinstance(x, float)
        return math.exp(3 * x) + draw.gauss(0.0, 0.05)

    trials = run({"x": real(0.0, 1.0)}, Goal("target", 5.0), noisy, batches=5)
    close = [trial for trial in trials if abs(float(trial.point["x"]) - math.log(5) / 3) < 0.01]
    assert len(close) >= 3


def test_failing_simulations_are_avoided_after_a_few() -> None:
    def simulate(point: Point) -> float | None:
        a, b = point["a"], point["b"]
        assert isinstance(a, float)
        assert isinstance(b, float)
        if math.hypot(a - 0.7, (b + 1.0) / 5.0) < 0.2:  # 13 % of the box, a minimum within
            return None
        return math.cos(9.0 * a) + 0.1 * (b + 1.0) ** 2

    trials = run(PLANE, MINIMIZE, simulate, batches=10)
    failed = [trial.value is None for trial in trials]
    assert sum(failed) <= 7
    assert sum(failed[-12:]) <= 1
    assert min(trial.value for trial in trials if trial.value is not None) < -0.99


def test_an_optimum_at_the_edge_of_the_failures_is_approached_from_the_safe_side() -> None:
    def simulate(point: Point) -> float | None:
        return None if bowl(point) < 0.1 else bowl(point)

    trials = run(PLANE, MINIMIZE, simulate, batches=12)
    assert sum(trial.value is None for trial in trials) <= 24
    assert min(trial.value for trial in trials if trial.value is not None) < 0.102


def test_only_failed_trials_still_give_a_batch() -> None:
    trials = [Trial(p, None) for p in suggest(PLANE, MINIMIZE, [], count=20, seed=1)]
    batch = suggest(PLANE, MINIMIZE, trials, count=4, seed=1)
    assert len(keys(PLANE, [*batch, *(t.point for t in trials)])) == 24


@pytest.mark.parametrize("value", [0.0, 1e-30, 7.5e300])
def test_equal_values_still_give_a_batch(value: float) -> None:
    trials = [Trial(p, value) for p in suggest(PLANE, MINIMIZE, [], count=12, seed=1)]
    assert_of_space(PLANE, suggest(PLANE, MINIMIZE, trials, count=4, seed=1))
    assert_of_space(PLANE, suggest(PLANE, Goal("target", 3.0), trials, count=4, seed=1))


def test_a_repeated_trial_with_another_value_is_noise() -> None:
    points = suggest(PLANE, MINIMIZE, [], count=8, seed=1)
    trials = [Trial(p, bowl(p) + shift) for p in points for shift in (0.0, 0.1, 0.2)]
    assert len(suggest(PLANE, MINIMIZE, trials, count=4, seed=1)) == 4


def test_pending_points_move_the_batch_elsewhere() -> None:
    trials = run(PLANE, MINIMIZE, bowl, batches=2)
    first = suggest(PLANE, MINIMIZE, trials, count=1, seed=1)
    second = suggest(PLANE, MINIMIZE, trials, Room(pending=first), count=1, seed=1)
    rows = Encoder(PLANE).rows([*first, *second])
    assert math.dist(rows[0], rows[1]) > 0.02


def test_excluded_points_teach_nothing() -> None:
    trials = run(PLANE, MINIMIZE, bowl, batches=3)
    far = [{"a": 0.987654321, "b": -2.987654321}]
    free = suggest(PLANE, MINIMIZE, trials, count=4, seed=1)
    assert suggest(PLANE, MINIMIZE, trials, Room(exclude=far), count=4, seed=1) == free


def test_a_large_batch_is_filled() -> None:
    trials = run(PLANE, MINIMIZE, bowl, batches=2)
    batch = suggest(PLANE, MINIMIZE, trials, count=140, seed=1)
    assert len(keys(PLANE, list(batch))) == 140


def test_twenty_dimensions_and_no_candidates_are_fine() -> None:
    space: Space = {f"x{i}": real(0.0, 1.0) for i in range(20)}
    trials = run(space, MINIMIZE, lambda p: sum(float(v) for v in p.values()), batches=4)
    assert suggest(space, MINIMIZE, trials, count=0, seed=1) == ()


def test_a_prediction_is_close_and_knows_where_it_is_not() -> None:
    trials = run(PLANE, MAXIMIZE, bowl, batches=6)
    seen = [trial.point for trial in trials[:5]]
    answers = predict(PLANE, MAXIMIZE, trials, seen)
    for (mean, sd), point in zip(answers, seen, strict=True):
        assert mean == pytest.approx(bowl(point), abs=0.05)
        assert 0.0 <= sd < 0.2
    with pytest.raises(ValueError, match="1 finished trials; at least 2"):
        predict(PLANE, MINIMIZE, trials[:1], seen)
