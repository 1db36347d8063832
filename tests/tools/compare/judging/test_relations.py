"""Tests of click links: ignored where they belong to their offer, found where they belong to another one."""

from typing import Any

import pytest

from proxy.tools.compare.judging.judge import ResponsePair
from proxy.traffic.v3_response import ClickLinkOwners


def click(name: str) -> str:
    return f"https://octopart.com/opatz8j6/a1?t={name}"


def owners(**links: str) -> ClickLinkOwners:
    """Owners of links by name: company id, company name and SKU."""
    found = {}
    for link, text in links.items():
        number, name, sku = text.split()
        found[click(link)] = frozenset((seller, each) for seller in (number, name, "") for each in (sku, ""))
    return found


def offer(sku: str, link: str, **seller: str) -> dict[str, Any]:
    return {"__class__": "PartOffer", "sku": sku, "product_url": link, "seller": seller}


OWNERS = owners(a="1 Acme A-1", b="1 Acme A-2", c="2 Best A-1", d="3 Core A-1")


def found(judge: Any, request: Any, response: Any, offers: list[Any], known: ClickLinkOwners, key: str) -> set[str]:
    field = "listing_url" if key == "broker_listings" else "product_url"

    def body(of: list[Any]) -> Any:
        return response({"results": [{"items": [{"__class__": "Part", "mpn": "X1", key: of}]}]})

    old = [{**each, field: f"https://old.example/{number}"} for number, each in enumerate(offers)]
    candidate = response({"results": [{"items": [{"__class__": "Part", "mpn": "X1", key: offers}]}]}, click_links=known)
    comparison = judge("shipped_rules: true").compare(request, 0, ResponsePair(body(old), candidate))
    return {each.difference.candidate for each in comparison.findings}


@pytest.mark.parametrize(
    "offers, expected",
    [
        ([offer("A-1", click("a"), id="1"), offer("A-2", click("b"), id="1")], ""),
        ([offer("A-1", click("b"), id="1"), offer("A-2", click("a"), id="1")], "ab"),
        ([offer("A-1", click("c"), id="1"), offer("A-1", click("a"), id="2")], "ac"),
        ([offer("A-1", click("c"), name="Acme"), offer("A-1", click("a"), name="Best")], "ac"),
        ([offer("A-1", click("b")), offer("A-2", click("c"))], "bc"),  # the request hides sellers
        ([offer("", click("c"), id="1"), offer("", click("a"), id="2")], "ac"),  # the request hides SKUs
        ([offer("A-9", click("b"), id="1"), offer("A-2", click("c"), id="9")], ""),  # another SKU, another seller
        ([offer("A-1", click("new"), id="1")], ""),
    ],
)
def test_link_of_another_offer_is_found(
    judge: Any, v3_request: Any, response: Any, offers: list[Any], expected: str
) -> None:
    assert found(judge, v3_request, response, offers, OWNERS, "offers") == {click(name) for name in expected}
    assert found(judge, v3_request, response, offers, {}, "offers") == set()


@pytest.mark.parametrize("links, expected", [("cd", ""), ("dc", "cd")])
def test_link_of_another_broker_is_found(judge: Any, v3_request: Any, response: Any, links: str, expected: str) -> None:
    listings = [{"listing_url": click(links[0]), "seller": {"id": "2"}}]
    listings += [{"listing_url": click(links[1]), "seller": {"id": "3"}}]
    assert found(judge, v3_request, response, listings, OWNERS, "broker_listings") == {click(name) for name in expected}
