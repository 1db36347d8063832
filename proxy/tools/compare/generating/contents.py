"""Objects that requests are generated for: parts, brands, sellers and categories, as the baseline shows them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proxy import errors, model
from proxy.traffic import v3_response
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ComparedSide
from proxy.v3 import endpoints

CatalogContents = Mapping[str, Sequence[dict[str, Any]]]  # by the name of the object

INCLUDED = (("include[]", "specs"), ("include[]", "category_uids"))  # by which parts are searched
PAGE = model.SEARCH_LIMIT_MAX
NAMES = tuple(dict.fromkeys(endpoint.object for endpoint in endpoints.ENDPOINTS))


async def read(side: ComparedSide, client: str, requests: Sequence[V3Request]) -> CatalogContents:
    """Read all objects in the responses of a side to `requests`, and in its lists; without requests, parts are listed,
    too. Raises SourceError if there is no part."""
    found: dict[str, dict[str, Any]] = {name: {} for name in NAMES}
    reason = "its responses have none"
    for request in requests:
        query = (*request.query, *INCLUDED) if request.path.startswith("/parts/") else request.query
        sent = msgspec.structs.replace(request, query=query, client=client)
        reason = await _take(side, sent, found) or reason
    for endpoint in endpoints.ENDPOINTS:
        if endpoint.action != "search" or (requests and endpoint.object == "Part"):
            continue
        for start in range(0, model.SEARCH_START_MAX, PAGE):
            query = (("q", ""), ("limit", f"{PAGE}"), ("start", f"{start}"))
            known = len(found[endpoint.object])
            sent = V3Request(endpoint.path, (*query, *(INCLUDED if endpoint.object == "Part" else ())), client)
            reason = await _take(side, sent, found) or reason
            if len(found[endpoint.object]) == known:
                break
    if not found["Part"]:
        raise errors.SourceError(f"there is no part to generate requests for: the baseline {reason}")
    return {name: list(objects.values()) for name, objects in found.items()}


async def _take(side: ComparedSide, request: V3Request, found: dict[str, dict[str, Any]]) -> str | None:
    """Add the objects of a response. Return why there is none, None for a response that could be read."""
    response = await side.fetch(request, "")
    if failure := response.failure or v3_response.refusal(response, request.client):
        return failure
    for name, shown in _objects(v3_response.read_body(request, response).document.value):
        # The whole object of a list prevails over the few fields of it that a part has.
        if len(shown) >= len(found[name].get(shown["uid"], ())):
            found[name][shown["uid"]] = shown
    return None


def _objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects in a response that have endpoints of their own, with their names."""
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        yield from _objects(each)
    if isinstance(value, dict) and value.get("__class__") in NAMES and value.get("uid"):
        yield value["__class__"], value
