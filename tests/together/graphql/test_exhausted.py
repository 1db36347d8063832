"""Exhausted parts are loud: null and the upstream's error, under the status of the settings, never an empty list."""

from typing import Any

import pytest
from support import running_proxy

import nexar_sandbox
from proxy import config

MATCH = "query ($m: String!) { supMultiMatch(queries: [{mpn: $m}]) { hits parts { mpn } } }"
SEARCH = "query ($m: String!) { supSearchMpn(q: $m, limit: 3) { hits results { part { mpn } } } }"
PARTS = 'query { supParts(ids: ["1", "2"]) { mpn } }'
OWN = "query ($m: String!) { supSearchMpn(q: $m, limit: 3) { results { part { mpn similarParts { mpn } } } } }"
DOCUMENTS = {"match": MATCH, "search": SEARCH, "parts": PARTS, "own": OWN}
LIMIT = "You have exceeded your part limit"
FREE = '{ supSellers(ids: ["459"]) { name } }'


def key(text: str = running_proxy.KEY, **fields: Any) -> config.ApiKeySettings:
    return config.ApiKeySettings(config.digest(text), **fields)


def assert_loud(reply: Any, status: int) -> None:
    assert reply.status == status
    assert not reply.data or set(reply.data.values()) == {None}, reply.data
    assert reply.json["errors"][0]["message"].startswith(LIMIT)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("exhausted", ["here", "upstream"])
async def test_no_root_field_for_parts_is_an_empty_list(pair: Any, name: str, exhausted: str) -> None:
    changes = {"application": {"parts": 1}} if exhausted == "here" else {}
    async with pair(**changes) as both:
        if exhausted == "upstream":
            both.environment.sandbox.faults.replace(nexar_sandbox.parse_faults("quota at=0"))
        for _ in range(2):
            assert_loud(await both.ask(DOCUMENTS[name], {"m": "SN74S74N"}), 200)
        assert (await both.ask(FREE)).data == {"supSellers": [{"name": "Digi-Key"}]}


async def test_root_field_without_parts_is_served_beside_an_exhausted_one(pair: Any) -> None:
    """Only where the field may be null: null in a field that must not be is null of all data."""
    async with pair(application={"parts": 1}) as both:
        reply = await both.ask('{ supSellers(ids: ["459"]) { name } supParts(ids: ["1", "2"]) { mpn } }')
        assert_loud(reply, 200)
        assert reply.data is None


async def test_records_that_are_cached_are_served_without_parts_left(pair: Any) -> None:
    async with pair(application={"parts": 5}) as both:
        first = await both.ask(MATCH, {"m": "SN74S74N"})
        assert first.data["supMultiMatch"][0]["parts"]
        for _ in range(3):
            await both.ask(MATCH, {"m": "1N4007"})
        assert_loud(await both.ask(MATCH, {"m": "NE555P"}), 200)
        again = await both.ask(MATCH, {"m": "SN74S74N"})
        assert (again.status, again.data, again.headers["X-Parts-Cost"]) == (200, first.data, "0")


async def test_status_is_that_of_the_settings(pair: Any) -> None:
    async with pair(application={"parts": 1}, graphql={"exhausted_status": 429}) as both:
        reply = await both.ask(MATCH, {"m": "SN74S74N"})
        assert_loud(reply, 429)
        assert reply.headers["Retry-After"] == reply.headers["X-Parts-Reset"]
        assert (await both.ask(FREE)).status == 200


async def test_status_by_agent_and_by_key(pair: Any) -> None:
    """That of the key first, then that of the User-Agent, then that of the service."""
    keys = (key(), key("strict-key", exhausted_status=429), key("mild-key", exhausted_status=200))
    by_agent = {"python-requests": 429, "erp": 200}
    changes = {"application": {"parts": 1, "apikeys": keys}, "graphql": {"exhausted_by_agent": by_agent}}
    async with pair(**changes) as both:
        for given, agent, status in (
            (running_proxy.KEY, "curl/8", 200),
            (running_proxy.KEY, "python-requests/2.32", 429),
            ("strict-key", "curl/8", 429),
            ("strict-key", "erp/1", 429),
            ("mild-key", "python-requests/2.32", 200),
        ):
            headers = {"Authorization": f"Bearer {given}", "User-Agent": agent}
            assert_loud(await both.ask(MATCH, {"m": "SN74S74N"}, **headers), status)


async def test_exhausted_share_of_a_key_is_loud(pair: Any) -> None:
    keys = (key(), key("small-key", parts=1))
    async with pair(application={"apikeys": keys}) as both:
        reply = await both.ask(MATCH, {"m": "SN74S74N"}, Authorization="Bearer small-key")
        assert_loud(reply, 200)
        assert (await both.ask(MATCH, {"m": "SN74S74N"})).data["supMultiMatch"][0]["parts"]
