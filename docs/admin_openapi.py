"""The OpenAPI document of the admin interface: `python -m docs.admin_openapi`.

Prints docs/reference/admin.openapi.json; tests/project holds the file to it.
"""

import json

from proxy.web.admin import openapi


def page() -> str:
    """Return the document, indented for people and for diffs."""
    return json.dumps(openapi.document(), indent=2) + "\n"


if __name__ == "__main__":
    print(page(), end="")
