"""Owners of click links: the offers that they belong to by the responses of the GraphQL API.

v3's responses cannot tell, because click links are opaque.
"""

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import msgspec

from proxy.traffic.v3_response import ClickLinkOwners
from proxy.upstream.replay import RecordedGraphQLResponse


def owners(responses: Iterable[RecordedGraphQLResponse]) -> ClickLinkOwners:
    """Return the owners of all click links in the responses."""
    found: ClickLinkOwners = {}
    for response in responses:
        try:
            body = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # such a response has failed, so the candidate has no link of it
        for company, offer in _offers(body):
            link = offer.get("clickUrl")
            if type(link) is str:
                sellers = ("", *(str(company[name]) for name in ("id", "name") if company.get(name)))
                skus = ("", str(offer.get("sku") or ""))
                found[link] = found.get(link, frozenset()) | frozenset(product(sellers, skus))
    return found


def _offers(value: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield company and offer of each offer in a response."""
    left = [value]
    while left:
        node = left.pop()
        if type(node) is list:
            left += node
        elif type(node) is dict:
            left += node.values()
            company, offers = node.get("company"), node.get("offers")
            if type(company) is dict and type(offers) is list:
                yield from ((company, offer) for offer in offers if type(offer) is dict)
