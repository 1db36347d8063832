"""Canned upstream result of every query: by default 3 parts with 6 sellers each and 108 price breaks, about 14 KB.

The parts in a search have the part number of the query, because the proxy drops other parts. Fields are sorted: a
service sends them in the order of the selection set, which the proxy and the floor sort.
"""

import functools
import json
from collections.abc import Sequence
from typing import Any

SELLERS = ("459", "2401", "2402", "819", "2628", "1532")
SPECS = ("lifecyclestatus", "case_package", *(f"spec{number}" for number in range(18)))
BREAKS = (1, 10, 100, 500, 1000, 5000)


def document(queries: int = 1, parts: int = 3) -> dict[str, Any]:
    """Return the GraphQL response to one request of supMultiMatch with a number of queries, `parts` for each."""
    match = {"hits": parts + 1, "error": None, "parts": [_part(number) for number in range(parts)]}
    return {
        "data": {"supMultiMatch": [match] * queries},
        "extensions": {"requestId": "a43cf3e2-e319-4453-a1e9-59063ef113b4"},
    }


def body(queries: int = 1, parts: int = 3) -> bytes:
    """Return the same response as bytes."""
    return json.dumps(document(queries, parts), separators=(",", ":"), sort_keys=True).encode()


def sheet_body(queries: int) -> bytes:
    """Return the response to a supMultiMatch of `v3bridge sheet`: one part for each query."""
    part = _part(0) | {
        "shortDescription": "Dual D-type positive-edge-triggered flip-flop with preset and clear",
        "bestDatasheet": {"url": "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-54445.pdf"},
        "specs": [
            {"attribute": {"shortname": name}, "value": "value", "displayValue": "value (as shown)"} for name in SPECS
        ],
    }
    for seller in part["sellers"]:
        for offer in seller["offers"]:
            for price in offer["prices"]:
                price |= {"convertedPrice": price["price"], "convertedCurrency": price["currency"]}
    match = {"hits": 1, "error": None, "parts": [part]}
    data = {"data": {"supMultiMatch": [match] * queries}}
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()


def search_body(numbers: Sequence[str], names: Sequence[str], parts: int = 3) -> bytes:
    """Return the response to one supSearchMpn query for each number, under these aliases."""
    search = _search(parts)
    fields = (
        b'"%s":%s' % (name.encode(), search.replace(MPN, b'"mpn":"%s"' % number.encode()))
        for number, name in zip(numbers, names, strict=True)
    )
    return b'{"data":{%s},"extensions":{"requestId":"a43cf3e2-e319-4453-a1e9-59063ef113b4"}}' % b",".join(fields)


def _part(number: int) -> dict[str, Any]:
    return {
        "v3uid": f"{number:016x}",
        "mpn": "SN74S74N",
        "manufacturer": {"id": "370", "name": "Texas Instruments", "homepageUrl": "http://www.ti.com"},
        "octopartUrl": f"https://octopart.com/sn74s74n-texas+instruments-933695{number}",
        "sellers": [_seller(company) for company in SELLERS],
    }


def _seller(company: str) -> dict[str, Any]:
    return {
        "company": {
            "id": company,
            "name": f"Seller {company}",
            "homepageUrl": "http://www.example.com",
            "displayFlag": "US",
        },
        "isAuthorized": company != "1532",
        "offers": [_offer(company)],
    }


def _offer(company: str) -> dict[str, Any]:
    prices = [
        {"quantity": quantity, "price": round(1.31 - step / 10, 5), "currency": "USD"}
        for step, quantity in enumerate(BREAKS)
    ]
    return {
        "sku": f"{company}-1234-5-ND",
        "eligibleRegion": None,
        "inventoryLevel": 1200,
        "packaging": "Tube",
        "moq": 1,
        "prices": prices,
        "clickUrl": "https://octopart.com/opatz8j6/a1?t=h4ruYhuKTw-rkqo1uC26u6Ta4acZp1cbn4ANmGjylQ3XKG7w6MW8uX1y",
        "updated": "2026-11-01T03:04:05Z",
        "factoryLeadDays": 42,
        "onOrderQuantity": None,
        "factoryPackQuantity": None,
        "orderMultiple": 1,
        "multipackQuantity": None,
    }


MPN = b'"mpn":"SN74S74N"'


@functools.cache
def _search(parts: int) -> bytes:
    results = [{"akaMpn": None, "part": _part(number)} for number in range(parts)]
    return json.dumps({"hits": parts, "results": results}, separators=(",", ":"), sort_keys=True).encode()
