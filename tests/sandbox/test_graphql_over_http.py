"""GraphQL over HTTP: each audit of the reference implementation's list, by its id, in our own words, over sockets.

The list has grown older and younger versions; where they differ the younger holds (a request that cannot be read is a
400, also in application/json). What the specification says beyond the list is in test_graphql_media_types.py and
test_graphql_get.py.
"""

import json
from typing import Any

from support import cases
from support.sandbox_client import SandboxClient

JSON = "application/json"


@cases.parametrize("id_, says, audit")
async def test_the_audits_of_the_reference_implementation_pass(
    caller: SandboxClient, id_: str, says: str, audit: dict[str, Any]
) -> None:
    """An audit is a request (accept, content_type, body; `url`: the parameters are in the URL, by GET), and what holds
    for its response: bounds of the status, a part of its content type, and whether it has errors and data."""
    url, body = audit.get("url"), audit.get("body")
    content_type = None if url else audit.get("content_type", JSON)
    headers = {"Accept": audit.get("accept"), "Content-Type": content_type, **_token(caller)}
    async with caller.session.request(
        "GET" if url else "POST",
        caller.sandbox.graphql_url,
        params=url,
        data=body.encode() if isinstance(body, str) else body and json.dumps(body).encode(),
        headers={name: value for name, value in headers.items() if value is not None},
        skip_auto_headers=("Accept", "Content-Type"),
    ) as response:
        least, most = audit.get("status", (200, 200))
        assert least <= response.status <= most
        answer = json.loads((await response.read()).decode("utf-8"))
        assert audit.get("kind", "") in response.headers["Content-Type"]
    assert audit.get("errors") in (None, "errors" in answer)
    assert audit.get("data") in (None, "data" in answer)


def _token(caller: SandboxClient) -> dict[str, str]:
    """A document at fault needs one (contract graphql.md §3.2)."""
    return {"Authorization": f"Bearer {caller.token}"}
