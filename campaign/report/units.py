"""Amounts and times as a person reads them."""

from __future__ import annotations

import math
import time

from campaign.lines import number

_DECIMALS = 8  # beyond which a number is better read with a power of ten


def amount(value: float | None) -> str:
    """Four digits, nothing for what is not known."""
    return "" if value is None else f"{value:,.4g}"


def moment(value: float) -> str:
    """A time in UTC, which every reader can place; nothing for 0."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(value)) + " UTC" if value else ""


def span(seconds: float) -> str:
    """A duration: ``2 h 05 min``, ``3 min 20 s``, ``41 s`` or ``0.27 s``."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    if not minutes:
        return f"{second} s"
    return f"{hour} h {minute:02} min" if hour else f"{minute} min {second:02} s"


def believed(mean: float, low: float, high: float) -> tuple[str, str, str]:
    """A mean and its interval, in as many decimals as give half the interval two digits."""
    half = (high - low) / 2
    decimals = 1 - math.floor(math.log10(half)) if half > 0 else -1
    if not 0 <= decimals <= _DECIMALS:
        return number(mean), number(low), number(high)
    return f"{mean:,.{decimals}f}", f"{low:,.{decimals}f}", f"{high:,.{decimals}f}"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3g} %" if whole else ""
