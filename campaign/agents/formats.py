"""The formats a server is asked to answer in, from the strictest on, and what asking may use."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

Format: TypeAlias = Literal["json_schema", "json_object", "none"]

FORMATS: tuple[Format, ...] = ("json_schema", "json_object", "none")
"""Where a server refuses one it is asked in the next."""

REFUSALS = (400, 422)
"""HTTP statuses of a server that does not know the format asked for."""

_PER_MESSAGE = 32  # tokens that a chat template may put around a message


def response_format(
    which: Format, name: str, schema: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """What a request holds to be answered in a format; nothing for ``none``.

    ``name`` is what the server is to call an answer of that ``schema``.
    """
    match which:
        case "json_schema":
            strictly = {"name": name, "strict": True, "schema": schema}
            return {"response_format": {"type": "json_schema", "json_schema": strictly}}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "none":
            return {}


def most_tokens(texts: Iterable[str], *beside: Mapping[str, object]) -> int:
    """Tokens that messages of these texts can come to at most.

    No tokenizer that works on bytes makes more tokens of a text than it has bytes. What else a
    request holds, ``beside`` them, may be put before the model too.
    """
    said = sum(len(text.encode(errors="surrogatepass")) + _PER_MESSAGE for text in texts)
    return said + sum(len(json.dumps(one)) for one in beside)
