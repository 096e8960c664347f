"""What the campaign runs: a ball thrown through the air, and a check of its path.

Every task is a function of the candidate, a plain dict of the parameters in campaign.yaml. It runs
in a directory of its own, may write files there, and answers a mapping.
"""

import math

GRAVITY = 9.81  # m/s^2
DRAG = 0.01  # 1/m: deceleration by the air is DRAG * speed^2


def simulate(candidate: dict[str, float], time_step: float = 1e-3) -> dict[str, float]:
    """The simulation: where the ball lands, in metres from the thrower."""
    return {"distance": _throw(candidate, time_step)[0]}


def check_height(candidate: dict[str, float], ceiling: float) -> dict[str, object]:
    """The verifier: a cheap, coarse throw that must stay under the ceiling of the hall.

    The reason of a rejection is what an agent learns from, so it says what would be right.
    """
    _, height = _throw(candidate, time_step=1e-2)
    if height > ceiling:
        reason = f"the ball rises to {height:.1f} m, the hall is {ceiling} m high: throw it flatter"
        return {"verdict": "reject", "reason": reason, "metrics": {"height": height}}
    return {"verdict": "pass", "metrics": {"height": height}}


def _throw(candidate: dict[str, float], time_step: float) -> tuple[float, float]:
    """Distance and greatest height (m) of a throw, by midpoint steps until the ball lands."""
    angle = math.radians(candidate["angle"])
    x, y = 0.0, 0.0
    vx, vy = candidate["speed"] * math.cos(angle), candidate["speed"] * math.sin(angle)
    height = 0.0
    while True:
        ax, ay = _acceleration(vx, vy)
        half_vx, half_vy = vx + ax * time_step / 2, vy + ay * time_step / 2
        ax, ay = _acceleration(half_vx, half_vy)
        next_x, next_y = x + half_vx * time_step, y + half_vy * time_step
        vx, vy = vx + ax * time_step, vy + ay * time_step
        if next_y < 0.0:
            part = y / (y - next_y)  # of the last step, down to the ground
            return x + part * (next_x - x), height
        x, y, height = next_x, next_y, max(height, next_y)


def _acceleration(vx: float, vy: float) -> tuple[float, float]:
    speed = math.hypot(vx, vy)
    return -DRAG * speed * vx, -GRAVITY - DRAG * speed * vy
