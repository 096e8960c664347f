"""The reference page and the JSON Schema say what the models do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from campaign.configfile import config_from_mapping
from campaign.reference import PAGE, SCHEMA, SECTIONS, json_schema, render_reference, schema_text
from campaign.yamlfile import read_text

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "reference"
CASES = ROOT / "tests" / "cases"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())
BASE: Any = read_text((CASES / "accepted" / "smallest.yaml").read_text()).data

# Refused by their values or types alone, so an editor shows them without running anything.
SEEN_BY_EDITORS = (
    *("unknown_top_key", "unknown_nested_key", "missing_everything", "missing_kind"),
    *("version_two", "name_with_spaces", "rounds_boolean", "rounds_quoted", "rounds_zero"),
    *("walltime_bare_number", "walltime_unknown_unit", "no_parameters", "type_unknown"),
    *("direction_misspelt", "agent_unknown", "policy_unknown", "executor_label_odd"),
    *("command_as_one_line", "output_absolute", "budgets_negative_and_zero", "seed_negative"),
)


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for inner in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from nodes(inner)


@pytest.mark.parametrize(
    ("name", "text"), [(PAGE, render_reference()), (SCHEMA, schema_text())], ids=[PAGE, SCHEMA]
)
def test_the_committed_file_is_up_to_date(name: str, text: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == text, "run: python -m campaign.reference"


def test_the_schema_is_valid_2020_12() -> None:
    schema = json_schema()
    assert schema["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_key_has_a_description_and_every_mapping_of_keys_is_closed() -> None:
    for node in nodes(json_schema()):
        if isinstance(properties := node.get("properties"), dict):
            assert node["additionalProperties"] is False
            assert all(field.get("description") for field in properties.values()), node["title"]


@pytest.mark.parametrize("path", sorted((CASES / "accepted").glob("*.yaml")), ids=lambda p: p.stem)
def test_the_schema_takes_what_loads(path: Path) -> None:
    VALIDATOR.validate(read_text(path.read_text(encoding="utf-8")).data)


@pytest.mark.parametrize("name", SEEN_BY_EDITORS)
def test_the_schema_refuses_what_an_editor_can_see(name: str) -> None:
    data = read_text((CASES / "refused" / f"{name}.yaml").read_text()).data
    assert not VALIDATOR.is_valid(data)


def test_the_schema_takes_its_own_defaults() -> None:
    config = config_from_mapping(BASE)
    VALIDATOR.validate(config.model_dump(mode="json"))
    defaults = {
        key: field["default"]
        for key, field in json_schema()["properties"].items()
        if "default" in field
    }
    VALIDATOR.validate(BASE | defaults)
    assert config_from_mapping(BASE | defaults) == config


def test_every_model_has_its_section() -> None:
    page = render_reference()
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", page, re.MULTILINE)
    }
    keys = set(re.findall(r"^\| `(?:[^`]*\.)?(\w+)` \|", page, re.MULTILINE))
    assert {key for node in nodes(json_schema()) for key in node.get("properties", ())} == keys


@pytest.mark.parametrize(
    "section", [one for one in SECTIONS if one.example], ids=lambda section: section.title
)
def test_the_example_of_a_section_loads(section: Any) -> None:
    example: Any = read_text(section.example).data
    config_from_mapping(BASE | example)


def test_no_line_of_a_table_is_broken() -> None:
    for line in render_reference().splitlines():
        if line.startswith("| `"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 5, line
