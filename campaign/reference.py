"""The reference page and the JSON Schema of the configuration, both made from the models.

``python -m campaign.reference`` writes the two files of ``docs/reference``; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from campaign.config import (
    Budgets,
    CampaignConfig,
    Cap,
    CommandTask,
    MpiTask,
    Objective,
    Output,
    PythonTask,
    ReplayAgent,
    SurrogateAgent,
)
from campaign.fields import (
    FUNCTION,
    IDENTIFIER,
    INSIDE,
    LABEL,
    NAME,
    SMALL_IDENTIFIER,
)
from campaign.gateconfig import Defaults, Expect, Policy, Prompt, RuleEntry
from campaign.jobconfig import ChainConfig, JobConfig
from campaign.schema import Schema, json_schema, schema_text, tidied
from campaign.space import CategoricalParameter, FloatParameter, IntParameter
from campaign.taskconfig import Guard, SimulationFields, TaskFields, VerifierFields
from executors.config import (
    AllocationConfig,
    LocalConfig,
    MpiConfig,
    ParslConfig,
    Pilot,
    SlurmConfig,
    ThreadsConfig,
)

PAGE, SCHEMA = "config.md", "campaign.schema.json"

_INTRO = """\
# Configuration

<!-- Written by `python -m campaign.reference` from the models; edit those. -->

A campaign is one YAML file, by custom `campaign.yaml` in a folder of its own; the Python modules,
templates and data it names lie beside it. Every problem of a file is reported at once, with its
line, its path, what was found and what would be right. `simgate inspect CONFIG` shows them before
anything is run, and `--set a.b=value` overrides a key for one run: `--set rounds=2`,
`--set verifiers[0].walltime=20s`, `--set 'simulation.files["in.lj"]=other.lj'`.

`simgate schema` prints the JSON Schema. An editor with a YAML language server checks and completes
a file whose first line is `# yaml-language-server: $schema=campaign.schema.json`, with the path of
the schema from the file.

## What is read how

| what | how |
|---|---|
| number | `1`, `0.5`, `.5`, `1e-3`, `1e5`. A whole number has no point: `3`, never `3.0` |
| duration | text with its unit: `30s`, `5m`, `2h`, `1d`, `1h30m`, `00:05:00`, `1-00:00:00` \
(days first). A number alone is refused |
| boolean | `true` and `false` only; `no`, `on` and `yes` are text |
| text | everything else, so `1:30`, `2026-01-01`, `010` and `0x1F` are text; a number that is \
meant as text is put in quotes. Nothing is converted: `"6"` is no number and `6` no text |
| keys | always text; a key given twice is refused |
| anchors | `&name`, `*name` and `<<: *name` work, up to 100,000 values in all and 64 levels deep |
| the file | UTF-8, one document, at most 1 MiB; tags such as `!!python/name` are refused |
"""

_EXAMPLE = """\
```yaml
{text}
```
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: the keys of one model, at one place of the file."""

    title: str
    prefix: str
    model: type[BaseModel]
    example: str = ""  # YAML that stands at the top level of a file
    base: type[BaseModel] | None = None  # whose keys have a section of their own


__all__ = ["PAGE", "SCHEMA", "SECTIONS", "json_schema", "render_reference", "schema_text"]

SECTIONS = (
    Section("The file", "", CampaignConfig),
    Section(
        "Parameters: float",
        "parameters.NAME.",
        FloatParameter,
        "parameters:\n  density: {type: float, min: 0.70, max: 0.95, unit: kg/m3}\n"
        "  rate: {type: float, min: 1e-6, max: 1e-2, scale: log}",
    ),
    Section(
        "Parameters: int",
        "parameters.NAME.",
        IntParameter,
        "parameters:\n  fins: {type: int, min: 2, max: 40, description: number of fins}",
    ),
    Section(
        "Parameters: categorical",
        "parameters.NAME.",
        CategoricalParameter,
        "parameters:\n  solver: {type: categorical, choices: [cg, gmres]}",
    ),
    Section(
        "Objective",
        "objective.",
        Objective,
        "objective: {name: pressure, target: 0.55355, tolerance: 0.03}",
    ),
    Section("Agent: surrogate", "agent.", SurrogateAgent, "agent: {kind: surrogate}"),
    Section("Agent: replay", "agent.", ReplayAgent, "agent: {kind: replay, file: answers.yaml}"),
    Section(
        "Expect",
        "expect.",
        Expect,
        "expect:\n  max_iterations: 3\n  expectations:\n    - id: stable_step\n"
        "      type: expression\n      params: {condition: 'rate * 0.5 < 0.01'}\n"
        "      hint: lower the rate",
    ),
    Section("Rules", "expect.expectations[].", RuleEntry),
    Section("Prompts of your own", "expect.repair.", Prompt),
    Section("Defaults", "defaults.", Defaults, "defaults: {expect: {max_iterations: 3}}"),
    Section("Tasks: keys of every kind", "simulation.", TaskFields),
    Section(
        "Tasks: python",
        "simulation.",
        PythonTask,
        'simulation:\n  kind: python\n  function: "model:simulate"\n'
        "  arguments: {cells: 200}\n  walltime: 2m",
        TaskFields,
    ),
    Section(
        "Tasks: mpi",
        "simulation.",
        MpiTask,
        'simulation:\n  kind: mpi\n  function: "model:simulate"\n  ranks: 2\n  walltime: 10m',
        TaskFields,
    ),
    Section(
        "Tasks: command",
        "simulation.",
        CommandTask,
        'simulation:\n  kind: command\n  command: [lmp, -in, in.lj, -var, seed, "{seed}"]\n'
        "  files: {in.lj: templates/in.lj}\n  ranks: 2\n  walltime: 5m\n"
        "  retries: 1\n  output: {json: result.json}",
        TaskFields,
    ),
    Section("Output", "simulation.output.", Output),
    Section(
        "Simulation: keys beside those of a task",
        "simulation.",
        SimulationFields,
        'simulation:\n  kind: python\n  function: "model:simulate"\n  walltime: 2h\n'
        '  dry_run: {kind: python, function: "model:estimate", walltime: 1m}',
    ),
    Section(
        "Guard",
        "simulation.guard.",
        Guard,
        'simulation:\n  kind: python\n  function: "model:simulate"\n  walltime: 2m\n'
        "  guard: {condition: 'expect.overall_pass == true', on_false: filter}",
    ),
    Section(
        "Verifiers: keys beside those of a task",
        "verifiers[].",
        VerifierFields,
        'verifiers:\n  - name: short_run\n    kind: command\n    command: ["./check", "{seed}"]\n'
        "    walltime: 30s\n    output: {exit_codes: {0: pass, 3: reject}}",
    ),
    Section(
        "Budgets",
        "budgets.",
        Budgets,
        "budgets: {node_hours: 0.5, generations: {limit: 20, per: job}}",
    ),
    Section("Caps", "budgets.NAME.", Cap),
    Section(
        "Executors: threads",
        "executors.LABEL.",
        ThreadsConfig,
        "executors: {default: {kind: threads, workers: 2}}",
    ),
    Section(
        "Executors: local",
        "executors.LABEL.",
        LocalConfig,
        "executors: {default: {kind: local, workers: 2, start_timeout: 2m}}",
    ),
    Section(
        "Executors: slurm",
        "executors.LABEL.",
        SlurmConfig,
        "executors:\n  default:\n    kind: slurm\n    nodes: 2\n    workers_per_node: 16\n"
        "    max_pilots: 4\n    pilot: {walltime: 1h, partition: batch, account: abc123}",
    ),
    Section(
        "Executors: allocation",
        "executors.LABEL.",
        AllocationConfig,
        "executors:\n  default: {kind: allocation, workers_per_node: 16}",
    ),
    Section(
        "Executors: mpi",
        "executors.LABEL.",
        MpiConfig,
        "executors:\n  default: {kind: allocation, nodes: 1, workers_per_node: 16}\n"
        "  simulate: {kind: mpi, nodes: 4}",
    ),
    Section(
        "Executors: parsl",
        "executors.LABEL.",
        ParslConfig,
        'executors:\n  default: {kind: parsl, function: "site:config", workers: 8}',
    ),
    Section("Pilot jobs", "executors.LABEL.pilot.", Pilot),
    Section(
        "Job",
        "job.",
        JobConfig,
        "job:\n  walltime: 4h\n  partition: batch\n  account: abc123\n"
        "  setup: [module load gcc || exit]\n  margin: 2m\n  chain: {jobs: 10}",
    ),
    Section("Chain", "job.chain.", ChainConfig, "job: {walltime: 4h, chain: {jobs: 10}}"),
    Section("Policy", "policy.", Policy, "policy: {verifier_failure: reject}"),
)

_SECTION_OF = {section.model.__name__: section.title for section in SECTIONS}
_PATTERNS = {
    NAME: "text (a file name)",
    IDENTIFIER: "text (an identifier)",
    SMALL_IDENTIFIER: "text (a small identifier)",
    LABEL: "text (a label)",
    FUNCTION: "text `module:function`",
    INSIDE: "text (a relative path)",
}
_NAMES = {"integer": "whole number", "number": "number", "string": "text", "boolean": "boolean"}


def render_reference() -> str:
    """The page: every key with its type, default and meaning, and an example of each part."""
    return "\n".join([_INTRO, *(_section(section) for section in SECTIONS)])


def _section(section: Section) -> str:
    lines = [f"## {section.title}", "", _sentence(section.model.__doc__ or ""), ""]
    lines += ["| key | type | default | meaning |", "|---|---|---|---|", *_rows(section), ""]
    if section.example:
        lines.append(_EXAMPLE.format(text=section.example))
    return "\n".join(lines)


def _rows(section: Section) -> Iterator[str]:
    schema = tidied(section.model.model_json_schema())
    required = schema.get("required", ())
    inherited = tidied(section.base.model_json_schema())["properties"] if section.base else {}
    for key, field in schema["properties"].items():
        if inherited.get(key) == field:
            continue
        default = "required" if key in required else f"`{_default(field)}`"
        meaning = _sentence(field["description"])
        cells = (f"`{section.prefix}{key}`", _type(field), default, meaning)
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(field: Schema) -> str:
    default = field.get("default")
    if isinstance(default, dict) and default and "$ref" in field:
        return "{}"  # a model of defaults: its own section has them
    if default == {"default": {"kind": "local", "workers": 2, "start_timeout": 120.0}}:
        return "{default: {kind: local}}"
    if isinstance(default, list):
        return f"[{', '.join(map(str, default))}]"
    return default if isinstance(default, str) and default else json.dumps(default)


def _type(field: Schema) -> str:
    """A schema in words; models are links to their sections."""
    if "$ref" in field:
        return _linked(field["$ref"].rsplit("/", 1)[1])
    if branches := field.get("oneOf", field.get("anyOf")):
        words = dict.fromkeys(_type(one) for one in branches if one != {"type": "null"})
        return " or ".join(words)
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{one}`" for one in field["enum"])
    if "examples" in field:
        return "duration"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}{_bounds(field, 'Items')}"
    if field.get("type") == "object":
        return _mapping_type(field)
    text = _PATTERNS.get(field.get("pattern", ""), _NAMES.get(field.get("type", ""), "any data"))
    return text + _range(field)


def _mapping_type(field: Schema) -> str:
    patterns = field.get("patternProperties", {})
    key = "label" if LABEL in patterns else "name"
    inner = next(iter(patterns.values()), field.get("additionalProperties"))
    values = _type(inner) if isinstance(inner, dict) else "any data"
    return f"mapping of {key} to {values}{_bounds(field, 'Properties')}"


def _bounds(field: Mapping[str, Any], noun: str) -> str:
    low, high = field.get(f"min{noun}"), field.get(f"max{noun}")
    words = [f"at least {low}"] if low else []
    words += [f"at most {high}"] if high else []
    return f" ({', '.join(words)})" if words else ""


def _range(field: Schema) -> str:
    limits = (("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"))
    # A bound that only keeps a number within its bits is no news to a reader.
    words = [
        f"{sign} {field[key]:,}" for key, sign in limits if key in field and abs(field[key]) < 2**53
    ]
    return f", {' and '.join(words)}" if words else ""


def _linked(name: str) -> str:
    if name == "JsonValue":
        return "any data"
    name = {"CountCap": "Cap"}.get(name, re.sub("Verifier|Simulation", "Task", name))
    title = _SECTION_OF[name]
    anchor = "".join(one for one in title.lower() if one.isalnum() or one in " -").replace(" ", "-")
    return f"[{title.split(': ')[-1].lower()}](#{anchor})"


def _sentence(text: str) -> str:
    text = " ".join(text.replace("``", "`").split())
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def main() -> None:
    """Write both files into the checkout this module lies in."""
    folder = Path(__file__).parents[1] / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PAGE).write_text(render_reference(), encoding="utf-8")
    (folder / SCHEMA).write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
