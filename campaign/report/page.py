"""A report as one page of HTML that holds everything: no network, no file beside it."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from msgspec.structs import asdict

from campaign.lines import number, plain
from campaign.observations import distance
from campaign.report.figures import Figures, as_data
from campaign.report.gate import HOW
from campaign.report.histories import BEST, History
from campaign.report.plots import plots
from campaign.report.units import amount, believed, moment, percent, span
from campaign.space import CategoricalParameter, Parameter
from campaign.summary import MEANING

FOLDER = Path(__file__).parent
_NONE = dict.fromkeys(("convergence", "funnel", "budgets", "nodes"), "")
TOP = 8  # observations in the table of the best
_LINE = 90  # characters of a reason in the one line of a candidate
_NAMES = 100  # parameters of a candidate; a campaign has fewer, an agent may write anything


def page(found: Figures) -> str:
    """The whole document. Text of the run is escaped wherever it stands."""
    folder = jinja2.FileSystemLoader(FOLDER)
    environment = jinja2.Environment(
        loader=folder,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "hours": amount, "number": number, "plain": plain, "point": _point, "moment": moment,
        "percent": percent, "span": span, "off": _off,
        "believed": lambda one: believed(one["mean"], one["low"], one["high"]),
    }  # fmt: skip
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html.j2").render(
        found=found,
        data=(data := as_data(found)),
        island=_island(data),
        top=_top(found),
        parameters=_parameters(found),
        plots={name: Markup(svg) for name, svg in (_NONE | plots(found)).items()},
        how=HOW,
        meaning=MEANING,
        lines=[_line(one) for one in found.histories],
        cut=found.candidates - len(found.histories),
        best=BEST,
        style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        digest=digest,
    )


def _top(found: Figures) -> list[dict[str, Any]]:
    """The best observations, each candidate once."""
    objective, points = found.config.objective, found.state.points
    best = sorted(found.steps, key=lambda one: distance(objective, one.value))[:TOP]
    return [asdict(one) | {"parameters": points.get(one.candidate, {})} for one in best]


def _parameters(found: Figures) -> list[dict[str, str]]:
    """Every parameter, with its value at the best observation and at the surrogate's optimum."""
    best, optimum = found.result.best, found.result.optimum
    observed = best.slot.parameters if best else {}
    believed_in = optimum.point if optimum else {}
    return [
        {
            "name": name,
            "unit": one.unit,
            "range": _range(one),
            "best": number(observed.get(name, "")),
            "optimum": number(believed_in.get(name, "")),
        }
        for name, one in found.config.parameters.items()
    ]


def _range(one: Parameter) -> str:
    if isinstance(one, CategoricalParameter):
        return ", ".join(map(number, one.choices))
    return f"{number(one.min)} … {number(one.max)}"


def _off(found: Figures) -> str:
    """How far the best observation is from the target, to two digits."""
    best = found.result.best
    if best is None or best.value is None:
        return ""
    return f"{distance(found.config.objective, best.value):.2g}"


def _point(parameters: object) -> str:
    """A candidate in one line, also what is none; names an agent made up are text as any."""
    if not isinstance(parameters, dict):
        return plain(repr(parameters))
    named = [f"{plain(str(name))}={number(one)}" for name, one in parameters.items()]
    more = f" and {len(named) - _NAMES} more" if len(named) > _NAMES else ""
    return " ".join(named[:_NAMES]) + more


def _line(one: History) -> dict[str, Any]:
    """What the one line of a candidate shows."""
    seen = one.seen
    word = seen.fate.replace("_", " ")
    reason = ""
    if seen.stopped is not None:
        reason = plain(seen.stopped.reason)
        reason = reason if len(reason) <= _LINE else f"{reason[: _LINE - 1]}…"
        word = f"{word} by {plain(seen.stopped.by)}"
    place = f"draw {seen.draw}" if seen.draw else f"g{seen.generation}"
    return {"word": word, "fate": seen.fate, "place": place, "reason": reason, "history": one}


def _island(data: dict[str, Any]) -> Markup:
    """The figures for programs; nothing in them can close the element they stand in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)
