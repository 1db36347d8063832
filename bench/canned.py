"""Parts of the canned upstream: of each part number its own, with 6 sellers and 36 price breaks, and with the optional
fields that a document selects. About 4 kB, or 9 kB with all fields that the service fetches."""

import functools
import json
from collections.abc import Iterable, Iterator
from typing import Any

SELLERS = ("459", "2401", "2402", "819", "2628", "1532")
BREAKS = (1, 10, 100, 500, 1000, 5000)
DESCRIPTION = "Dual D-type positive-edge-triggered flip-flop with preset and clear"
PICTURE = "http://sigma.octopart.com/9633547/image/Texas-Instruments-SN74S74N.jpg"
IMAGE = dict.fromkeys(("url55px", "url75px", "url90px", "urlLargest", "creditUrl"), PICTURE) | {"creditString": "TI"}
DOCUMENT = {
    "name": "SN74S74N datasheet",
    "url": "http://datasheet.octopart.com/SN74S74N-Texas-Instruments-datasheet-54445.pdf",
    "mimeType": "application/pdf",
    "pageCount": 18,
    "creditString": "Texas Instruments",
    "createdAt": "2014-01-30T08:15:22Z",
}
SPECS = ("lifecyclestatus", "case_package", *(f"spec{number}" for number in range(18)))
SPEC = dict.fromkeys(("value", "displayValue", "siValue", "unitsName", "unitsSymbol"), "14") | {"valueType": "number"}
ANCESTORS = [{"id": f"423{level}", "name": f"Logic ICs of level {level}"} for level in range(3)]
OPTIONAL: dict[str, Any] = {
    "totalAvail": 134_567,
    "shortDescription": DESCRIPTION,
    "freeSampleUrl": None,
    "manufacturerUrl": "http://www.ti.com/product/SN74S74",
    "category": {"id": "4234", "name": "Flip Flops", "ancestors": ANCESTORS},
    "descriptions": [{"text": DESCRIPTION, "creditString": f"Seller {company}"} for company in SELLERS],
    "images": [IMAGE],
    "specs": [SPEC | {"attribute": {"id": "123", "name": name, "shortname": name}} for name in SPECS],
    "bestDatasheet": DOCUMENT,
    "documentCollections": [{"name": "Datasheets", "documents": [DOCUMENT] * 3}],
    "cad": None,
    "referenceDesigns": [],
}
CONVERTED = "convertedPrice"


@functools.cache
def selected(document: bytes) -> frozenset[str]:
    """Return the optional fields that a document names."""
    return frozenset(name for name in (*OPTIONAL, CONVERTED) if name.encode() in document)


def parts(number: int, places: Iterable[int], fields: frozenset[str]) -> Iterator[bytes]:
    """Yield parts that a number matches, by their places in its list."""
    for place in places:
        yield _template(fields) % {b"mpn": mpn(number).encode(), b"uid": uid(number, place).encode()}


def mpn(number: int) -> str:
    """Return a part number."""
    return f"TD{number:06}"


def uid(number: int, place: int = 0) -> str:
    """Return the v3 uid of a part that a number matches."""
    return f"{number:012x}{place:04x}"


@functools.cache
def _template(fields: frozenset[str]) -> bytes:
    part = {
        "v3uid": "%(uid)s",
        "id": "%(uid)s",
        "manufacturer": {"name": "Texas Instruments", "id": "370", "homepageUrl": "http://www.ti.com"},
        "slug": "/td-%(uid)s",
        "mpn": "%(mpn)s",
        "akaMpns": [],
        "octopartUrl": "https://octopart.com/td-texas+instruments-%(uid)s",
        "sellers": [_seller(company, CONVERTED in fields) for company in SELLERS],
        **{name: OPTIONAL[name] for name in sorted(fields - {CONVERTED})},
    }
    return json.dumps(part, separators=(",", ":")).encode()  # in the order of a selection


def _seller(company: str, converted: bool) -> dict[str, Any]:
    prices = [
        {"quantity": each, "price": round(1.31 - step / 10, 5), "currency": "USD"} for step, each in enumerate(BREAKS)
    ]
    if converted:
        prices = [price | {CONVERTED: price["price"], "convertedCurrency": "USD"} for price in prices]
    offer = {
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
    shown = {"id": company, "name": f"Seller {company}", "homepageUrl": "http://www.example.com", "displayFlag": "US"}
    return {"company": shown, "isAuthorized": company != "1532", "isBroker": False, "offers": [offer]}
