"""Conversion of field names from the schema's spelling to Python's."""

import re


def snake_case(name: str) -> str:
    """Return a field name in snake case: `has3dModel` is has3d_model."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)
