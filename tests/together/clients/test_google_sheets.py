"""The Google Sheets script of v3 (curtacircuitos/octopart-google-app): its requests, and the fields that it reads.

It is in no package registry, so it cannot be run here: these are its requests, character for character, as
`encodeURIComponent` and its own string concatenation write them. Google's servers send them, one for each cell.
"""

import json
import urllib.request
from typing import Any
from urllib.parse import quote

import pytest
from together.clients import services

pytestmark = services.both

UNESCAPED = "-_.!~*'()"  # that encodeURIComponent leaves as they are, besides letters and digits


@pytest.fixture
def match(proxy_url: str, apikey: str) -> Any:
    """Returns the only result of a request as the script sends it. Anything but status 200 is an error to it, too."""

    def send(part: object, maker: str | None = None, include: str = "", user: str = "") -> dict[str, Any]:
        query = {"mpn_or_sku": str(part)} | ({"brand": maker} if maker else {})
        url = f"{proxy_url}/api/v3/parts/match?apikey={apikey}"
        if user:
            url += f"&userkey={_encoded(user)}"
        url += f"&queries={_encoded([query])}" + (f"&{include}" if include else "")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as response:
            (result,) = json.loads(response.read())["results"]
        assert result["error"] is None
        return dict(result)

    return send


def _encoded(value: object) -> str:
    return quote(json.dumps(value, separators=(",", ":"), ensure_ascii=False), safe=UNESCAPED)


def test_first_offer_has_every_field_of_the_distributor_functions(match: Any) -> None:
    result = match("SN74S74N", "Texas Instruments")
    assert result["hits"] > 0
    offers = result["items"][0]["offers"]
    assert offers
    for offer in offers:
        assert isinstance(offer["seller"]["name"], str)
        assert isinstance(offer["product_url"], str)
        assert isinstance(offer["sku"], str)
        # The script turns null into "unknown"; anything else goes through parseInt.
        for name in ("in_stock_quantity", "moq", "factory_lead_days", "order_multiple"):
            assert offer[name] is None or int(offer[name]) >= -4, name
        assert offer["packaging"] is None or isinstance(offer["packaging"], str)


def test_prices_are_pairs_by_currency_in_ascending_quantities(match: Any) -> None:
    """The script stops at the first quantity that is too large, so their order matters."""
    priced = [offer["prices"] for offer in match("SN74S74N")["items"][0]["offers"] if offer["prices"]]
    assert any("USD" in prices for prices in priced)
    for breaks in (breaks for prices in priced for breaks in prices.values()):
        assert [quantity for quantity, _ in breaks] == sorted(quantity for quantity, _ in breaks)
        assert all(float(price) > 0 for _, price in breaks)


def test_part_has_the_fields_of_the_other_functions(match: Any) -> None:
    assert match("SN74S74N")["items"][0]["octopart_url"].startswith("http")
    (described, *_) = match("SN74S74N", include="include[]=short_description")["items"]
    assert described["short_description"]
    (documented, *_) = match("SN74S74N", "Texas Instruments", include="include[]=datasheets")["items"]
    assert documented["datasheets"][0]["url"].startswith("http")
    (shown, *_) = match("SN74S74N", "Texas Instruments", include="include[]=imagesets")["items"]
    sizes = ("small_image", "medium_image", "large_image", "swatch_image")
    assert all(image is None or image["url"] for images in shown["imagesets"] for image in map(images.get, sizes))
    assert any(images[size] is not None for images in shown["imagesets"] for size in sizes)


def test_wildcard_in_a_number_finds_parts(match: Any) -> None:
    result = match("SN74S7*")
    assert result["hits"] > 1
    assert all(part["mpn"].startswith("SN74S7") for part in result["items"])


def test_mail_address_of_the_user_is_no_error(match: Any) -> None:
    """`OCTOPART_SET_USER` adds a parameter that v3 itself did not document."""
    assert match("SN74S74N", user="buyer+1@example.com") == match("SN74S74N")


@pytest.mark.parametrize("part", ["No such part-0", 1868783.5, "Ω µ & = # % + ' \" \\ /", "XYZ'(*)~!0"])
def test_number_without_a_part_has_no_hits(match: Any, part: object) -> None:
    """The script then says "No offer found"; it must be a result, not an error response."""
    result = match(part)
    assert (result["hits"], result["items"]) == (0, [])
