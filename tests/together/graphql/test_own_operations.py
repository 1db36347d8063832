"""What other fields of documents need is fetched as the client asks for it, metered, and kept."""

from typing import Any

import pytest

SIMILAR = '{ supSearchMpn(q: "SN74S74N", limit: 2) { hits results { part { mpn similarParts { mpn } } } } }'
OWN = {
    "similar parts": SIMILAR,
    "aggregations": """{ supSearch(q: "SN74", limit: 2) {
        hits manufacturerAgg { count company { name } } results { part { mpn } } } }""",
    "sellers of a page": """{ supSearchMpn(q: "SN74S74N", limit: 1) {
        results { part { sellers(limit: 1) { company { name } } } } } }""",
    "price breaks": """{ supSearchMpn(q: "SN74S74N", limit: 1) {
        results { part { sellers { offers(priceBreaks: [10]) { prices { quantity } } } } } } }""",
    "converted prices": """{ supSearchMpn(q: "SN74S74N", limit: 1, currency: "EUR") {
        results { part { sellers { offers { prices { convertedPrice convertedCurrency } } } } } } }""",
    "suggestions": '{ supSuggest(q: "SN74") { text } }',
    "lists": '{ supManufacturers(ids: ["370"]) { name slug } supAttributes { shortname } }',
    "matches without parts": '{ supMultiMatch(queries: [{mpn: "SN74S74N"}]) { hits } }',
    "parts without fields": '{ supParts(ids: ["1"]) { __typename } }',
    "count": '{ supSearch(q: "SN74", limit: 0) { hits } }',
}


@pytest.mark.parametrize("name", OWN)
async def test_own_operation_is_metered_and_cached(pair: Any, name: str) -> None:
    async with pair(application={"features": "all"}) as both:
        first = await both.assert_same(OWN[name])
        billed = both.billed
        assert int(first.headers["X-Parts-Cost"]) == billed
        sent = len(both.environment.sandbox.documents) + 1  # of the upstream beside it
        again = await both.assert_same(OWN[name])
        assert again.headers["X-Parts-Cost"] == "0"
        assert (both.billed, len(both.environment.sandbox.documents)) == (billed, sent)
