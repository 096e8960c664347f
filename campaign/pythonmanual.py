"""Generates ``docs/reference/python.md`` from the names that the packages offer."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGES = {
    "campaign": "Runs, and what they left behind. An agent of your own needs no more than "
    "`AgentError`: see [agents](../how-to/agents.md).",
    "checks": "The gate, without a campaign: it knows neither of the other two.",
    "executors": "Where tasks run, without a campaign: it knows neither of the other two.",
}
_ABOUT = """
What a program of yours may build on. Every name can be imported from its package, as in
`from checks import accept`; everything else may change from one version to the next. Importing a
package loads none of the big libraries; a name that needs one loads it when it is first used.
`help()` of a name tells its arguments, units and errors, and
[how to use the parts](../how-to/use-the-parts.md) shows them at work.
"""


def render_python(made: str) -> str:
    """The public names of each package, each with the first sentence about it."""
    return "\n".join([made, "", "# The Python packages", _ABOUT, *_packages(), ""])


def described(package: ModuleType, name: str) -> str:
    """What a public name says of itself; "" when that is nothing."""
    found = getattr(package, name)
    if inspect.isclass(found) or inspect.isroutine(found):
        return inspect.cleandoc(found.__doc__ or "")
    return _below(package, name)


def _packages() -> Iterator[str]:
    for package, about in PACKAGES.items():
        module = import_module(package)
        yield f"## `{package}`\n\n{about}\n\n| name | what it is |\n|---|---|"
        for name in module.__all__:
            yield f"| `{name}` | {_sentence(described(module, name))} |"
        yield ""


def _sentence(text: str) -> str:
    """The first sentence, on one line, in Markdown."""
    line = " ".join(text.partition("\n\n")[0].split())
    first = re.split(r"(?<=\.)\s", line, maxsplit=1)[0]
    plain = re.sub(r":\w+:`([\w.]+)`", r"`\1`", first)
    return plain.replace("``", "`").replace("|", "\\|")


def _below(package: ModuleType, name: str) -> str:
    """The text under an assignment in whichever module of the package makes it."""
    for path in sorted(Path(package.__path__[0]).glob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for made, said in itertools.pairwise(body):
            if not isinstance(made, ast.AnnAssign) or ast.unparse(made.target) != name:
                continue
            if isinstance(said, ast.Expr) and isinstance(said.value, ast.Constant):
                return str(said.value.value)
    return ""
