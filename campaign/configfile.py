"""A campaign's configuration read from its file: overridden, checked, every problem at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pydantic import ValidationError

from campaign.config import CampaignConfig
from campaign.crossing import Found, crossing
from campaign.expectations import resolve
from campaign.overrides import override
from campaign.problems import ConfigError, Loc, Problem, dotted, observed
from campaign.yamlfile import FILE_NAME, MAX_BYTES, Document, read_bytes
from executors.base import Json

if TYPE_CHECKING:
    from checks.expect import Expect


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration and where it came from; ``path`` and ``folder`` are absolute."""

    config: CampaignConfig
    path: Path
    folder: Path
    lines: Mapping[Loc, int]
    expect: Expect | None = None  # with the rules compiled; None where nothing is expected

    def without_agent(self) -> LoadedConfig:
        """The same campaign with the surrogate in the agent's place; what gates it is unchanged."""
        from campaign.agentconfig import SurrogateAgent
        from campaign.voting import server_of

        agent = self.config.agent
        alone = SurrogateAgent(kind="surrogate", expect=agent.expect, policy=agent.policy)
        changes: dict[str, object] = {"agent": alone}
        if self.expect is not None and any(rule.judged for rule in self.expect.suite.rules):
            changes["judge"] = server_of(self.config)
        return replace(self, config=self.config.model_copy(update=changes))

    def problem(self, loc: Loc, message: str) -> Problem:
        """A problem found later, for instance by a preflight, at its line of the file."""
        return Problem(dotted(loc), message, _line(self.lines, loc))

    def overridden(self, loc: Loc) -> bool:
        """Whether an override, and not the file, says what holds at a place."""
        return self.lines.get(loc) == 0


def load_config(path: Path, overrides: Sequence[str] = ()) -> LoadedConfig:
    """Read a file, or the ``campaign.yaml`` of a folder, and apply ``a.b=value`` overrides.

    An override's value is YAML; ``verifiers.0.walltime``, ``verifiers[0].walltime`` and, for a key
    with a dot, ``simulation.files["in.lj"]`` are places. Raises ``ConfigError`` and nothing else.
    """
    path, content = _read(path)
    try:
        document = override(read_bytes(content), overrides)
        plain = document.data if isinstance(document.data, dict) else {}
        expect, refused = resolve(plain, path.parent)
        config = _validate(document, refused)
    except ConfigError as error:
        raise ConfigError(error.problems, str(path)) from None
    return LoadedConfig(config, path, path.parent, document.lines, expect)


def config_from_mapping(data: Json, source: str = "") -> CampaignConfig:
    """A configuration from plain data, such as ``model_dump(mode="json")`` gave.

    Raises ``ConfigError``; ``source`` says in its text where the data came from.
    """
    try:
        return _validate(Document(data))
    except ConfigError as error:
        raise ConfigError(error.problems, source) from None


def _read(path: Path) -> tuple[Path, bytes]:
    """The absolute path of the file and its content."""
    try:
        path = path.absolute()
        if path.is_dir():
            path = path / FILE_NAME
        with path.open("rb") as file:  # never all of it: it may be a device
            return path, file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        missing = f"no {FILE_NAME} in this folder" if path.name == FILE_NAME else "no such file"
        _refuse(path, f"{missing}; give a YAML file or a folder with a {FILE_NAME}")
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte
        _refuse(path, f"cannot be read: {error}; check the path and its permissions")


def _refuse(path: Path, message: str) -> NoReturn:
    raise ConfigError([Problem("", message)], str(path)) from None


def _validate(document: Document, refused: Sequence[Found] = ()) -> CampaignConfig:
    """Raises ``ConfigError`` with every problem, ``refused`` ones too, in the order of the file."""
    data = document.data
    if not isinstance(data, dict):
        what = "an empty file" if data is None else observed(data)
        message = f"{what}; a configuration is a mapping of keys, simgate init writes one"
        raise ConfigError([*document.problems, Problem("", message)])
    config, found = None, dict[tuple[Loc, str], None]()
    try:
        config = CampaignConfig.model_validate(data)
    except ValidationError as error:
        from campaign.wording import describe  # costs a schema; only a wrong file pays for it

        found = dict.fromkeys([*describe(error, data), *crossing(data)])
    found |= dict.fromkeys(refused)
    # A value that could not be read is one problem, not also one of the wrong type.
    told = [one for one in found if not any(one[0][:end] in document.unread for end in range(99))]
    problems = [*document.problems, *(_in_file(document, loc, message) for loc, message in told)]
    if config is None or problems:
        raise ConfigError(sorted(problems, key=lambda problem: problem.line or 0))
    return config


def _in_file(document: Document, loc: Loc, message: str) -> Problem:
    """A problem at the place as the file spells it: a short form has no keys below it."""
    here, depth = document.data, 0
    while depth < len(loc) and isinstance(here, dict | list):
        here = _child(here, loc[depth])
        depth += 1
    if depth < len(loc) and message.startswith("missing"):
        message = f"{loc[-1]}: {message}"
    return Problem(dotted(loc[:depth]), message, _line(document.lines, loc[:depth]))


def _child(here: Json, step: str | int) -> Json:
    if isinstance(here, dict):
        return here.get(str(step))
    if isinstance(here, list) and isinstance(step, int) and step < len(here):
        return here[step]
    return None


def _line(lines: Mapping[Loc, int], loc: Loc) -> int | None:
    """The line of a place, or of what it would stand in; None for the whole and for overrides."""
    for end in range(len(loc), 0, -1):
        if (line := lines.get(loc[:end])) is not None:
            return line or None
    return None
