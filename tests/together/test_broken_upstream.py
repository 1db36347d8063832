"""Tests of a broken upstream: nulls, gaps, wrong types, HTML, empty and truncated responses, odd statuses.

A client gets a v3 error of the right class and status, or the errors of its own queries; never a 500, never a trace.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import cases, running_proxy, scripted_upstream
from support.scripted_upstream import ScriptedResponse
from together.environment import RawResponse, raw, target

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
GOOD = {"data": {"supMultiMatch": [MATCH, {"hits": 0, "error": None, "parts": []}]}}
HTML = b"<html><body>Bad Gateway</body></html>"
BROKE = [{"message": "Unexpected Execution Error"}]
REFUSES = [{"message": "limit must be between 0 and 100"}]

TWO = target({"mpn": "SN74S74N"}, {"mpn": "none such"}, more=MORE)
ONE = target({"mpn_or_sku": "SN74S74N"}, more=MORE)
UNREADABLE, REFUSED = (502, "ServerErrorResponse"), (200, "PartsMatchResponse")


@asynccontextmanager
async def before(*answers: Any) -> AsyncIterator[int]:
    """The port of a proxy whose upstream says these things."""
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(*answers)
        chosen = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        async with running_proxy.running(chosen) as proxy:
            yield int(proxy.url.rpartition(":")[2])


async def reply_to(*answers: Any, asked: str = TWO) -> RawResponse:
    async with before(*answers) as port:
        return await raw(port, f"GET {asked} HTTP/1.1".encode())


def with_(value: Any, *path: str | int, of: Any = GOOD) -> Any:
    """A copy of `of` with another value at the end of a path."""
    whole = copy.deepcopy(of)
    place = whole
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return whole


def in_part(value: Any, *path: str | int) -> Any:
    return with_(value, "data", "supMultiMatch", 0, "parts", 0, *path)


async def test_base_response_of_the_cases_is_valid() -> None:
    reply = await reply_to(GOOD)
    assert (reply.status, [len(result["items"]) for result in reply.json["results"]]) == (200, [1, 0])


@pytest.mark.parametrize(
    "answer, expected",
    [
        (b"null", UNREADABLE),
        (b"[]", UNREADABLE),
        (b"7", UNREADABLE),
        (b"{}", UNREADABLE),
        (b"\xff\xfe", UNREADABLE),
        (b'{"data": {"supMultiMatch": [', UNREADABLE),
        (b"[" * 5_000, UNREADABLE),
        (ScriptedResponse(HTML, content_type="text/html"), UNREADABLE),
        ({"data": None}, UNREADABLE),
        ({"data": {}}, UNREADABLE),
        ({"data": {"supMultiMatch": None}}, UNREADABLE),
        ({"data": {"supMultiMatch": []}}, UNREADABLE),
        ({"data": {"supMultiMatch": [MATCH]}}, UNREADABLE),
        ({"data": {"supMultiMatch": [MATCH] * 3}}, UNREADABLE),
        ({"data": {"supSearch": {"hits": 0}}}, UNREADABLE),
        ({"errors": "It broke."}, UNREADABLE),
        ({"errors": []}, UNREADABLE),
        ({"errors": BROKE}, UNREADABLE),
        ({"errors": BROKE, "data": None}, UNREADABLE),
        (ScriptedResponse({"errors": REFUSES, "data": None}, 503), (503, "ServerErrorResponse")),
        ({"errors": REFUSES}, REFUSED),
        ({"errors": REFUSES, "data": None}, REFUSED),
        ({"errors": [{"message": "x" * 100_000}]}, REFUSED),
        ({"errors": BROKE, **GOOD}, REFUSED),
        (ScriptedResponse(HTML, 302, headers={"Location": "http://127.0.0.1:9/"}), UNREADABLE),
        (ScriptedResponse(HTML, 429), (429, "ClientErrorResponse")),
        (ScriptedResponse(HTML, 503), (503, "ServerErrorResponse")),
        (in_part(None, "sellers"), REFUSED),
        (in_part([None], "sellers"), REFUSED),
        (in_part("7", "sellers", 0, "offers", 0, "inventoryLevel"), REFUSED),
        (in_part(None, "sellers", 0, "offers", 0, "prices", 0, "currency"), REFUSED),
        (in_part("", "sellers", 0, "offers", 0, "prices", 0, "currency"), REFUSED),
        (in_part("12 pF", "specs", 0, "siValue"), REFUSED),
        (in_part(None, "category"), REFUSED),
    ],
)  # fmt: skip
async def test_upstream_response_becomes_v3_response(answer: Any, expected: tuple[int, str]) -> None:
    reply = await reply_to(answer)
    assert (reply.status, reply.json["__class__"]) == expected
    assert reply.status == 200 or set(reply.json) == {"__class__", "message"}
    assert b"Traceback" not in reply.body
    assert b"Internal" not in reply.body
    assert b"<html>" not in reply.body
    assert len(reply.body) < 20_000


@cases.parametrize(
    "value, path",
    ("9" * 30, ("sellers", 0, "company", "id")),
)
async def test_part_that_cannot_be_read_fails_alone(value: str, path: list[Any]) -> None:
    broken = in_part(value, *path)
    neighbour = PART | {"v3uid": "5ec397c9af088105"}
    broken["data"]["supMultiMatch"][0]["hits"] = 2
    broken["data"]["supMultiMatch"][0]["parts"].append(neighbour)
    reply = await reply_to(broken)
    assert reply.status == 200
    first, second = reply.json["results"]
    assert "part 5ec397c9af088104 in a form that cannot be read" in first["error"]
    assert [part["uid"] for part in first["items"]] == [neighbour["v3uid"]]
    assert second["error"] is None


async def test_refused_batch_is_the_error_of_each_of_its_queries() -> None:
    reply = await reply_to({"errors": [{"message": "one"}, {"message": "two"}, {"message": "one"}]})
    assert [(result["error"], result["hits"]) for result in reply.json["results"]] == [("one; two", 0)] * 2


async def test_error_of_one_match_belongs_to_its_query() -> None:
    reply = await reply_to(with_("no such maker", "data", "supMultiMatch", 1, "error"))
    assert [result["error"] for result in reply.json["results"]] == [None, "no such maker"]


async def test_upstream_retry_after_is_passed_on() -> None:
    for status in (429, 503):
        reply = await reply_to(ScriptedResponse(HTML, status, headers={"Retry-After": "17"}))
        assert (reply.status, reply.headers["retry-after"]) == (status, "17")


def places(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to everything inside a JSON value."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in below:
        yield (*at, step)
        yield from places(inner, (*at, step))


NOTHING = object()
wrong = st.sampled_from(
    [NOTHING, None, "", "text", "-1", 0, -1, 1.5, 10**30, True, [], {}, [None], [{}], [[]], "é\x00", "1" * 5000]
)


Changes = list[tuple[tuple[str | int, ...], Any]]
SPEC_AGG = {"attribute": {"name": "Number of Pins", "shortname": "numberofpins"}, "valueType": "number",
            "buckets": [{"displayValue": "14", "floatValue": 14.0, "count": 1}], "siMin": "14", "siMax": "14",
            "unitsName": "", "unitsSymbol": ""}  # fmt: skip
FOUND = {"hits": 1, "results": [{"description": "d", "part": PART}],
         "manufacturerAgg": [{"company": COMPANY, "count": 1}], "specAggs": [SPEC_AGG]}  # fmt: skip
PINS = "specs.pin_count.value"
COUNTS = f"facet[fields][brand.uid][include]=1&facet[fields][{PINS}][include]=1&stats[{PINS}][include]=1"
# Request, a correct upstream response, and what a client may see when it is broken.
ENDPOINTS = {
    "match": (TWO, GOOD, {UNREADABLE, REFUSED}),
    "a part": (
        f"/v3/parts/5ec397c9af088104?apikey={running_proxy.KEY}{MORE}",
        {"data": {"supParts": [PART]}},
        {UNREADABLE, (200, "Part"), (404, "ClientErrorResponse")},
    ),
    "a search": (
        f"/v3/parts/search?apikey={running_proxy.KEY}&q=x&{COUNTS}{MORE}",
        {"data": {"supSearch": FOUND}},
        {UNREADABLE, (200, "SearchResponse")},
    ),
}


def broken(good: Any, changes: Changes) -> Any:
    """The good answer with some values replaced or taken out; a path that is gone by then is passed over."""
    whole = copy.deepcopy(good)
    for path, value in changes:
        place: Any = whole
        try:
            for step in path[:-1]:
                place = place[step]
            if value is NOTHING:
                del place[path[-1]]
            else:
                place[path[-1]] = value
        except (LookupError, TypeError):
            continue
    return whole


@pytest.mark.parametrize("name", ENDPOINTS)
async def test_valid_upstream_response_is_translated(name: str) -> None:
    asked, good, outcomes = ENDPOINTS[name]
    reply = await reply_to(good, asked=asked)
    assert reply.status == 200
    assert (200, reply.json["__class__"]) in outcomes


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
            def asks(changes: Changes) -> None:
                upstream.respond_with(broken(good, changes))
                sent = raw(port, f"GET {asked} HTTP/1.1".encode())
                reply = asyncio.run_coroutine_threadsafe(sent, loop).result(30)
                assert (reply.status, reply.json["__class__"]) in outcomes, json.dumps(broken(good, changes))
                assert b"Internal" not in reply.body

            await asyncio.to_thread(asks)


async def test_negative_hits_are_not_passed_on() -> None:
    match = await reply_to(with_({**MATCH, "hits": -5, "parts": []}, "data", "supMultiMatch", 0))
    assert (match.status, match.json["results"][0]["hits"]) == (200, 0)
    search = {"data": {"supSearch": {**FOUND, "hits": -5}}}
    found = await reply_to(search, asked="/v3/parts/search?apikey=EXAMPLE_KEY&q=x")
    assert (found.status, found.json["hits"]) == (200, 0)
