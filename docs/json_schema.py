"""JSON Schemas (2020-12) of what commands write with --json: `python -m docs.json_schema compare` or `explain`.

Prints docs/reference/compare.schema.json or explain.schema.json; tests/project holds the files to it.
"""

import json
import re
import sys
from typing import Any

import msgspec

from proxy.explain.explanation import ExplainedFile, Explanation
from proxy.tools.compare import results


def page(command: str) -> str:
    """Return the schema of a command. Objects have all of their keys; readers should tolerate additional ones."""
    return json.dumps(_SCHEMAS[command](), indent=2, ensure_ascii=False) + "\n"


def _compare() -> dict[str, Any]:
    (root,), parts = _components(results.ComparisonResult)
    parts["ComparisonResult"]["properties"]["schema"] = {
        "const": results.SCHEMA,
        "description": "The version of this format: another number is another format.",
    }
    about = "Times are seconds since 1970; shares are between 0 and 1. Texts may come from client data and hold no key."
    return _document("compare", about, root, parts)


def _explain() -> dict[str, Any]:
    roots, parts = _components(Explanation, ExplainedFile)
    return _document("explain", "One request, or a file of requests.", {"anyOf": [*roots]}, parts)


def _components(*types: Any) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    roots, parts = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for part in parts.values():
        part["required"] = list(part["properties"])
        part["description"] = re.sub(r"\bNone\b", "null", " ".join(part["description"].split()))
    return roots, parts


def _document(command: str, about: str, root: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"What v3bridge {command} --json writes",
        "description": about,
        **root,
        "$defs": parts,
    }


_SCHEMAS = {"compare": _compare, "explain": _explain}

if __name__ == "__main__":
    print(page(sys.argv[1]), end="")
