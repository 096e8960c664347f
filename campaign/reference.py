"""The reference page and the JSON Schema of the configuration, both made from the models.

``python -m campaign.reference`` writes the two files of ``docs/reference``; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from campaign.fields import FUNCTION, IDENTIFIER, INSIDE, LABEL, NAME, SMALL_IDENTIFIER
from campaign.schema import Schema, json_schema, schema_text, tidied
from campaign.sections import SECTIONS, Section

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


__all__ = ["PAGE", "SCHEMA", "SECTIONS", "json_schema", "render_reference", "schema_text"]

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
