"""The end of docs/explanation/faults.md: what every status with every body of the GraphQL service becomes.

`python tests/together/upstream_responses.py` writes it, made by the code that classifies responses.
"""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from proxy import errors, model
from proxy.upstream import classify, http_post, policies

PAGE = Path(__file__).parents[2] / "docs/explanation/faults.md"
STATUSES = (200, 301, 400, 401, 403, 404, 429, 500, 502, 503, 504)
DATA: dict[str, Any] = {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}] * 2}


def _error(message: str, code: str | None = None) -> dict[str, Any]:
    return {"message": message, **({"extensions": {"code": code}} if code else {})}


BODIES: dict[str, bytes] = {
    "data": json.dumps({"data": DATA}).encode(),
    "data and errors": json.dumps({"data": DATA, "errors": [_error("a field failed")]}).encode(),
    "errors: a refused query": json.dumps({"data": None, "errors": [_error("no such seller")]}).encode(),
    "errors: Unexpected Execution Error": json.dumps(
        {"data": None, "errors": [_error("Unexpected Execution Error")]}
    ).encode(),
    "errors: part limit": json.dumps({"errors": [_error("You have exceeded your part limit of 10.")]}).encode(),
    "errors: AuthInvalidToken": json.dumps({"errors": [_error("no", "AuthInvalidToken")]}).encode(),
    "HTML": b"<html><body>a page</body></html>",
    "empty": b"",
    "JSON that is cut": b'{"data": {"supMulti',
}
TITLE = "## Responses of the GraphQL service\n"
HEAD = f"""{TITLE}
How each body with each HTTP status is handled; a test sends all of them through the proxy.

- *client*: the status of the v3 response. A refused query of /parts/match is a 200 with that query's own `error`.
- *then*: whether the request may be [retried](#retry-policy), whether its parts are uncertain usage, because they may
  have been billed, and whether it is a failure for the circuit breaker.

| body | status | client | then |
|---|---|---|---|
"""


class ResponseRow(NamedTuple):
    """Classification of one status with one body."""

    status: int
    body: str
    client: int
    sent_again: bool
    uncertain: bool
    failure: bool


class _Answer(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None
    errors: list[model.GraphQLError] | None = None


@dataclass(frozen=True)
class _Operation:
    name: str = "match"
    payload: bytes = b""
    decode: Any = msgspec.json.Decoder(_Answer).decode


def row(status: int, body: str) -> ResponseRow:
    """Classify one response."""
    reply = http_post.HttpResponse(status, BODIES[body])
    envelope = classify.decode(_Operation(), reply)
    if classify.token_refusal(reply, envelope) is not None:
        return ResponseRow(status, body, 502, True, False, False)  # once, with a fresh token
    try:
        classify.data(reply, envelope, 0.0)
    except errors.BridgeError as error:
        client = 200 if isinstance(error, errors.QueryRefused) else error.status
        uncertain = isinstance(error, errors.ServerError) and error.may_be_billed
        failure = classify.is_failure(reply, error)
        return ResponseRow(status, body, client, policies.is_retryable(error), uncertain, failure)
    return ResponseRow(status, body, 200, False, False, False)


def rows() -> list[ResponseRow]:
    """All statuses with all bodies."""
    return [row(status, body) for status, body in product(STATUSES, BODIES)]


def page() -> str:
    """The whole page, which ends with the table."""
    statuses: dict[ResponseRow, list[str]] = {}
    for each in (row(status, body) for body in BODIES for status in STATUSES):
        statuses.setdefault(each._replace(status=0), []).append(str(each.status))
    bodies: dict[tuple[ResponseRow, str], list[str]] = {}
    for each, listed in statuses.items():
        bodies.setdefault((each._replace(body=""), ", ".join(listed)), []).append(each.body)
    lines = (
        f"| {'; '.join(listed)} | {codes} | {each.client} | {_consequences(each)} |\n"
        for (each, codes), listed in bodies.items()
    )
    return PAGE.read_text(encoding="utf-8").partition(TITLE)[0] + HEAD + "".join(lines)


def _consequences(row: ResponseRow) -> str:
    words = {"retried": row.sent_again, "uncertain": row.uncertain, "failure": row.failure}
    return ", ".join(word for word, applies in words.items() if applies)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
