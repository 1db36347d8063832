"""Canned upstream result of every query: by default 3 parts with 6 sellers each and 108 price breaks, about 14 KB.

The parts have the part number of the query, because the proxy drops other parts. Fields are sorted: a service sends
them in the order of the selection set, which the proxy and the floor sort. `whole`: with all fields that the proxy
fetches as shipped, about 25 KB.
"""

import functools
import json
from collections.abc import Sequence
from typing import Any

SELLERS = ("459", "2401", "2402", "819", "2628", "1532")
SPECS = ("lifecyclestatus", "case_package", *(f"spec{number}" for number in range(18)))
BREAKS = (1, 10, 100, 500, 1000, 5000)
MPN = b'"mpn":"SN74S74N"'
REQUEST_ID = "a43cf3e2-e319-4453-a1e9-59063ef113b4"
DESCRIPTION = "Dual D-type positive-edge-triggered flip-flop with preset and clear"
DOCUMENT = {
    "name": "SN74S74N datasheet",
    "url": "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-54445.pdf",
    "mimeType": "application/pdf",
    "pageCount": 18,
    "creditString": "Texas Instruments",
    "createdAt": "2014-01-30T08:15:22Z",
}
ATTRIBUTE = {"id": "123", "name": "Case/Package", "shortname": "case_package"}
SPEC = {
    "attribute": ATTRIBUTE,
    "value": "14",
    "displayValue": "14",
    "siValue": "14",
    "unitsName": "",
    "unitsSymbol": "",
    "valueType": "number",
}
GATED: dict[str, Any] = {
    "specs": [SPEC | {"attribute": ATTRIBUTE | {"shortname": name}} for name in SPECS],
    "bestDatasheet": DOCUMENT,
    "documentCollections": [{"name": "Datasheets", "documents": [DOCUMENT] * 3}],
    "cad": None,
    "referenceDesigns": [],
}
"""Fields of a plan's features."""


def document(queries: int = 1, parts: int = 3) -> dict[str, Any]:
    """Return the GraphQL response to one request of supMultiMatch with a number of queries, `parts` for each."""
    return {
        "data": {"supMultiMatch": [_match(parts)] * queries},
        "extensions": {"requestId": REQUEST_ID},
    }


def body(queries: int = 1, parts: int = 3) -> bytes:
    """Return the same response as bytes."""
    return _encode(document(queries, parts))


def match_body(numbers: Sequence[str], parts: int = 3, whole: bool = False) -> bytes:
    """Return the response to one supMultiMatch with a query for each number."""
    match = _encoded_match(parts, whole)
    matches = b",".join(match.replace(MPN, b'"mpn":"%s"' % number.encode()) for number in numbers)
    return b'{"data":{"supMultiMatch":[%s]},"extensions":{"requestId":"%s"}}' % (matches, REQUEST_ID.encode())


def sheet_body(queries: int) -> bytes:
    """Return the response to a supMultiMatch of `v3bridge sheet`: one part for each query."""
    part = _part(0) | {
        "shortDescription": DESCRIPTION,
        "bestDatasheet": {"url": "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-54445.pdf"},
        "specs": [
            {"attribute": {"name": name, "shortname": name}, "value": "value", "displayValue": "value (as shown)"}
            for name in SPECS
        ],
    }
    for seller in part["sellers"]:
        for offer in seller["offers"]:
            for price in offer["prices"]:
                price |= {"convertedPrice": price["price"], "convertedCurrency": price["currency"]}
    match = {"hits": 1, "error": None, "parts": [part]}
    return _encode({"data": {"supMultiMatch": [match] * queries}})


def search_body(numbers: Sequence[str], names: Sequence[str], parts: int = 3, whole: bool = False) -> bytes:
    """Return the response to one supSearchMpn query for each number, under these aliases."""
    search = _encoded_search(parts, whole)
    fields = (
        b'"%s":%s' % (name.encode(), search.replace(MPN, b'"mpn":"%s"' % number.encode()))
        for number, name in zip(numbers, names, strict=True)
    )
    return b'{"data":{%s},"extensions":{"requestId":"%s"}}' % (b",".join(fields), REQUEST_ID.encode())


def _encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _match(parts: int, whole: bool = False) -> dict[str, Any]:
    return {"hits": parts, "error": None, "parts": [_part(number, whole) for number in range(parts)]}


def selected_part(body: bytes) -> bytes:
    """Return the first part of a result, with the fields of the plan's features that a request selects."""
    return _encoded_part(b"totalAvail" in body, frozenset(name for name in GATED if name.encode() in body))


@functools.cache
def _encoded_part(whole: bool, gated: frozenset[str]) -> bytes:
    return _encode(_part(0, whole) | {name: GATED[name] for name in gated})


@functools.cache
def _encoded_match(parts: int, whole: bool) -> bytes:
    return _encode(_match(parts, whole))


@functools.cache
def _encoded_search(parts: int, whole: bool) -> bytes:
    results = [{"akaMpn": None, "part": _part(number, whole)} for number in range(parts)]
    return _encode({"hits": parts, "results": results})


def _part(number: int, whole: bool = False) -> dict[str, Any]:
    return _part_of_v3(number) | (_rest_of_part(number) if whole else {})


def _rest_of_part(number: int) -> dict[str, Any]:
    """Return the fields that v3 shows only on demand, and those of other programs."""
    picture = "http://sigma.octopart.com/9633547/image/Texas-Instruments-SN74S74N.jpg"
    sizes = ("url55px", "url75px", "url90px", "urlLargest")
    return {
        "id": f"52774{number}",
        "slug": f"/sn74s74n-texas+instruments-933695{number}",
        "totalAvail": 134_567,
        "shortDescription": DESCRIPTION,
        "freeSampleUrl": None,
        "manufacturerUrl": "http://www.ti.com/product/SN74S74",
        "category": {
            "id": "4234",
            "name": "Flip Flops",
            "ancestors": [
                {"id": "4161", "name": "Electronic Parts"},
                {"id": "4215", "name": "Integrated Circuits (ICs)"},
                {"id": "4230", "name": "Logic ICs"},
            ],
        },
        "descriptions": [{"text": DESCRIPTION, "creditString": f"Seller {company}"} for company in SELLERS],
        "images": [
            dict.fromkeys(sizes, picture) | {"creditString": "Seller 459", "creditUrl": "http://www.example.com"}
        ],
    }


def _part_of_v3(number: int) -> dict[str, Any]:
    return {
        "v3uid": f"{number:016x}",
        "mpn": "SN74S74N",
        "akaMpns": [],
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
        "isBroker": False,
        "offers": [_offer(company)],
    }


def _offer(company: str) -> dict[str, Any]:
    prices = [
        {"quantity": quantity, "price": round(1.31 - step / 10, 5), "currency": "USD"}
        for step, quantity in enumerate(BREAKS)
    ]
    return {
        "id": f"{company}1234",
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
