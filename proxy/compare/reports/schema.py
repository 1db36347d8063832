"""docs/reference/compare.schema.json: the form of the JSON report, made of the result's types and docstrings."""

import inspect
import json
from typing import Any

import msgspec

from proxy.compare import result

PAGE = "docs/reference/compare.schema.json"
RENEW = f"python -c 'from proxy.compare.reports import schema; print(schema.text(), end=\"\")' > {PAGE}"


def document() -> dict[str, Any]:
    """JSON Schema 2020-12. Objects have all of their keys; readers should allow for more."""
    (root,), parts = msgspec.json.schema_components([result.Result], ref_template="#/$defs/{name}")
    for part in parts.values():
        part["required"] = list(part["properties"])
        part["description"] = inspect.cleandoc(part["description"]).replace("\n", " ")
    parts["Result"]["properties"]["schema"] = {
        "const": result.SCHEMA,
        "description": "The version of this format: another number is another format.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What v3bridge compare --json writes",
        "description": inspect.cleandoc(result.__doc__ or "").replace("\n", " "),
        **root,
        "$defs": parts,
    }


def text() -> str:
    """The file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"
