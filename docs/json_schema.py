"""JSON Schema (2020-12) of what `v3bridge compare --json` writes.

`python -m docs` writes docs/compare.schema.json; tests/project holds the file to it.
"""

import json
import re

import msgspec

from proxy.tools.compare.judging import result


def page() -> str:
    """Return the schema. Objects have all of their keys; readers should tolerate additional ones."""
    (root,), parts = msgspec.json.schema_components((result.ComparisonResult,), ref_template="#/$defs/{name}")
    for part in parts.values():
        part["required"] = list(part["properties"])
        part["description"] = re.sub(r"\bNone\b", "null", " ".join(part["description"].split()))
    parts["ComparisonResult"]["properties"]["schema"] = {
        "const": result.SCHEMA,
        "description": "The version of this format: another number is another format.",
    }
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What v3bridge compare --json writes",
        "description": "Times are seconds since 1970; shares are between 0 and 1. Texts may come from client data and "
        "hold no key.",
        **root,
        "$defs": parts,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
