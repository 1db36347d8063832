"""A broken upstream: nulls, gaps and wrong types anywhere in a response give a v3 error of the right class and status,
or the errors of single queries; never a 500, never a trace."""

import asyncio
import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import running_proxy, scripted_upstream
from together.environment import raw, target

MORE = "&include[]=specs&include[]=datasheets&include[]=category_uids&include[]=cad_models&include[]=descriptions"
COMPANY = {"id": "370", "name": "Texas Instruments", "homepageUrl": None}
DOCUMENT = {"name": "Datasheet", "pageCount": 1, "createdAt": "2012-05-15T17:51:59Z", "url": "u", "creditString": "c",
            "mimeType": "application/pdf"}  # fmt: skip
OFFER = {"sku": "296", "eligibleRegion": "US", "inventoryLevel": 7, "packaging": None, "moq": 1, "clickUrl": "u",
         "prices": [{"quantity": 1, "price": 0.647, "currency": "USD"}], "updated": "2023-11-14T22:13:20.123Z",
         "factoryLeadDays": None, "onOrderQuantity": None, "factoryPackQuantity": None, "orderMultiple": None,
         "multipackQuantity": 1}  # fmt: skip
FORMATS = ("Altium", "Eagle", "Orcad", "Kicad")
PART = {
    "v3uid": "5ec397c9af088104", "mpn": "SN74S74N", "akaMpns": [], "manufacturer": COMPANY,
    "octopartUrl": "https://octopart.com/x",
    "sellers": [
        {"company": {**COMPANY, "displayFlag": "US"}, "isAuthorized": True, "isBroker": False, "offers": [OFFER]}
    ],
    "descriptions": [{"text": "A flip-flop", "creditString": "Newark"}],
    "documentCollections": [{"name": "Datasheets", "documents": [DOCUMENT]}], "bestDatasheet": DOCUMENT,
    "cad": {f"has{name}": True for name in FORMATS} | {f"downloadUrl{name}": "u" for name in FORMATS},
    "specs": [{"attribute": {"shortname": "numberofpins", "name": "Number of Pins"}, "value": "14", "siValue": "14",
               "valueType": "number", "unitsName": "", "unitsSymbol": "", "displayValue": "14"}],
    "category": {"id": "4215", "name": "Logic", "ancestors": [{"id": "4161", "name": "Electronic Parts"}]},
}  # fmt: skip
MATCH = {"hits": 1, "error": None, "parts": [PART]}
SPEC_AGG = {"attribute": {"name": "Number of Pins", "shortname": "numberofpins"}, "valueType": "number",
            "buckets": [{"displayValue": "14", "floatValue": 14.0, "count": 1}], "siMin": "14", "siMax": "14",
            "unitsName": "", "unitsSymbol": ""}  # fmt: skip
FOUND = {"hits": 1, "results": [{"description": "d", "part": PART}],
         "manufacturerAgg": [{"company": COMPANY, "count": 1}], "specAggs": [SPEC_AGG]}  # fmt: skip
PINS = "specs.pin_count.value"
COUNTS = f"facet[fields][brand.uid][include]=1&facet[fields][{PINS}][include]=1&stats[{PINS}][include]=1"
UNREADABLE, REFUSED = (502, "ServerErrorResponse"), (200, "PartsMatchResponse")
# Request, a correct upstream response, and what a client may see when it is broken.
ENDPOINTS = {
    "match": (
        target({"mpn": "SN74S74N"}, {"mpn": "none such"}, more=MORE),
        {"data": {"supMultiMatch": [MATCH, {"hits": 0, "error": None, "parts": []}]}},
        {REFUSED, UNREADABLE},
    ),
    "a part": (
        f"/v3/parts/5ec397c9af088104?apikey={running_proxy.KEY}{MORE}",
        {"data": {"supParts": [PART]}},
        {(200, "Part"), UNREADABLE, (404, "ClientErrorResponse")},
    ),
    "a search": (
        f"/v3/parts/search?apikey={running_proxy.KEY}&q=x&{COUNTS}{MORE}",
        {"data": {"supSearch": FOUND}},
        {(200, "SearchResponse"), UNREADABLE},
    ),
}
NOTHING = object()
wrong = st.sampled_from(
    [NOTHING, None, "", "text", "-1", 0, -1, 1.5, 10**30, True, [], {}, [None], [{}], [[]], "é\x00", "1" * 5000]
)
Path = tuple[str | int, ...]
Changes = list[tuple[Path, Any]]


def places(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the paths to everything in a JSON value, itself included."""
    yield at
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in below:
        yield from places(inner, (*at, step))


def broken(good: Any, changes: Changes) -> Any:
    """Return the good answer with some values replaced or taken out; a path that is gone by then is passed over."""
    whole = {"": copy.deepcopy(good)}
    for path, value in changes:
        *above, last = ("", *path)
        place: Any = whole
        try:
            for step in above:
                place = place[step]
            if value is NOTHING:
                del place[last]
            else:
                place[last] = value
        except (LookupError, TypeError):
            continue
    return whole.get("", "")


OFFERED: Path = ("sellers", 0, "offers", 0, "updated")
UNREADABLE_VALUES: list[tuple[Any, Path]] = [
    ("an id", ("manufacturer", "id")),
    ("9" * 30, ("sellers", 0, "company", "id")),
    ("yesterday", OFFERED),
    ("", OFFERED),
    ("0001-01-01T00:00:00+14:00", OFFERED),
    ("2023-02-30T00:00:00.1Z", ("documentCollections", 0, "documents", 0, "createdAt")),
    ("x", ("category", "ancestors", 0, "id")),
    (7, ("mpn",)),
]


async def test_part_that_cannot_be_read_fails_alone() -> None:
    neighbor = PART | {"v3uid": "5ec397c9af088105"}
    none: dict[str, Any] = {"hits": 0, "error": None, "parts": []}
    async with scripted_upstream.running() as upstream:
        chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        for value, path in UNREADABLE_VALUES:
            found = {**MATCH, "hits": 2, "parts": [broken(PART, [(path, value)]), neighbor]}
            upstream.respond_with({"data": {"supMultiMatch": [found, none]}})
            async with running_proxy.running(chosen) as proxy:
                first, second = (await proxy.match('[{"mpn":"SN74S74N"},{"mpn":"none such"}]', MORE))["results"]
            assert "part 5ec397c9af088104 in a form that cannot be read" in first["error"], value
            assert [part["uid"] for part in first["items"]] == [neighbor["v3uid"]]
            assert second["error"] is None


@pytest.mark.parametrize("name", ENDPOINTS)
async def test_any_value_at_any_path_gives_a_v3_response(name: str) -> None:
    asked, good, outcomes = ENDPOINTS[name]
    loop = asyncio.get_running_loop()
    async with scripted_upstream.running() as upstream:
        chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        async with running_proxy.running(chosen) as proxy:
            port = int(proxy.url.rpartition(":")[2])

            @settings(max_examples=60, database=None)
            @given(st.lists(st.tuples(st.sampled_from(list(places(good))), wrong), min_size=1, max_size=3))
            @example([])
            @example([((), None)])
            @example([(("data", "supMultiMatch", 0, "hits"), -5)])
            @example([(("data", "supSearch", "hits"), -5)])
            def asks(changes: Changes) -> None:
                upstream.respond_with(broken(good, changes))
                sent = raw(port, f"GET {asked} HTTP/1.1".encode())
                reply = asyncio.run_coroutine_threadsafe(sent, loop).result(30)
                shown = reply.status, reply.json["__class__"]
                assert shown in outcomes if changes else shown[0] == 200, json.dumps(broken(good, changes))
                assert b"Internal" not in reply.body
                assert b'"hits": -' not in reply.body

            await asyncio.to_thread(asks)
