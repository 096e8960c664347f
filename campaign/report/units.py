"""Amounts and times as a person reads them."""

from __future__ import annotations

import time


def amount(value: float | None) -> str:
    """Four digits, nothing for what is not known."""
    return "" if value is None else f"{value:,.4g}"


def moment(value: float) -> str:
    """A time in UTC, which every reader can place; nothing for 0."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(value)) + " UTC" if value else ""


def span(seconds: float) -> str:
    """A duration: ``2 h 05 min`` or ``3 min 20 s``."""
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour} h {minute:02} min" if hour else f"{minute} min {second:02} s"


def percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.3g} %" if whole else ""
