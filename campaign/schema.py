"""The JSON Schema of a campaign's file, for editors; made from the models."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from campaign.config import CampaignConfig
from campaign.fields import duration_text

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Schema: TypeAlias = dict[str, Any]


def json_schema() -> Schema:
    """The JSON Schema (2020-12) of a file. It says less than loading does: what concerns several
    keys, such as ranks and workers, is not in it."""
    schema = tidied(CampaignConfig.model_json_schema())
    schema["properties"]["executors"]["default"] = CampaignConfig.model_construct().model_dump(
        mode="json", include={"executors"}
    )["executors"]
    return {"$schema": DIALECT, **schema, "title": "simgate campaign"}


def schema_text() -> str:
    """The schema as the file has it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def tidied(node: Any) -> Any:
    """A schema without what only pydantic knows, and with what it leaves out."""
    if isinstance(node, list):
        return [tidied(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: tidied(value) for key, value in node.items() if key != "discriminator"}
    if "patternProperties" in node:
        node["additionalProperties"] = False
    if node.get("type") == "string" and isinstance(node.get("default"), float):
        node["default"] = duration_text(node["default"])
    return node
