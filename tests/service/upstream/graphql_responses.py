"""GraphQL responses, and an operation that decodes them, for tests of upstream clients."""

import json
from typing import Any

import msgspec

from proxy import model
from proxy.upstream import classify, http_post


class Data(msgspec.Struct):
    supSearchMpn: dict[str, int]  # noqa: N815  (the service's own name)


class Envelope(model.Envelope):
    data: Data | None = None


OPERATION = model.EncodedOperation("supSearchMpn", b'{"query":"x"}', msgspec.json.Decoder(Envelope).decode, 1)
GOOD = {"supSearchMpn": {"hits": 1}}


def fault(message: str, **more: Any) -> dict[str, Any]:
    return {"message": message, **more}


def coded(code: Any) -> dict[str, Any]:
    """Return an error code as the vendor documents it, with dots."""
    extensions = {"code": code, "remote": "...", "schemaName": "..."}
    return fault("…", locations="...", path="...", extensions=extensions)


def reply(status: int = 200, body: Any = b"", retry_after: str | None = None) -> http_post.HttpResponse:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return http_post.HttpResponse(status, raw, {"Retry-After": retry_after} if retry_after else {})


def data(operation: model.EncodedOperation, response: http_post.HttpResponse, now: float) -> Any:
    """Return the data of a response, or raise its error."""
    envelope, error = classify.read(operation, response, now)
    if error is not None:
        raise error
    return envelope and envelope.data
