"""Tests of arbitrary query strings: the response is v3 JSON, a PartsMatchResponse or an error.

Hypothesis runs in a thread of its own and asks the proxy, which goes on in the test's event loop.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_from_bytes

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, single_application

ERRORS = {
    400: "ClientErrorResponse",
    403: "ClientErrorResponse",
    502: "ServerErrorResponse",
    503: "ServerErrorResponse",
}
QUERY_KEYS = ["q", "mpn", "sku", "brand", "seller", "mpn_or_sku", "start", "limit", "reference", "other"]
NAMES = [
    "queries", "exact_only", "pretty_print", "include[]", "include", "include[0]", "show[]", "hide[]", "slice[offers]",
    "slice[specs]", "suppress_status_codes", "apikey", "userkey", "[]", "[", "]", "show[][]", "limit",
]  # fmt: skip
FIELDS = ["offers", "specs", "brand.name", "offers.seller.id", "specs.*.value", "*", "datasheets", "uid", ".", "a..b"]

words = st.text(max_size=12) | st.sampled_from(["SN74S74N", "ATMEGA328P-PU", "atmega*", "67K1122", "*", "TI", "1N4007"])
numbers = (
    st.integers(-3, 25) | st.sampled_from([10**30, -(10**30), 2**63, 10**4299, 100, 101]) | st.floats(allow_nan=False)
)
scalars = st.none() | st.booleans() | numbers | words
anything = st.recursive(scalars, lambda below: st.lists(below, max_size=3) | st.dictionaries(words, below, max_size=3))
queries = st.dictionaries(st.sampled_from(QUERY_KEYS), words | scalars, max_size=5)
jsons = st.lists(queries | anything, max_size=4) | anything
spans = st.from_regex(r"\[?-?[0-9]{0,6}:-?[0-9]{0,6}\]?", fullmatch=True)
values = (
    jsons.map(lambda value: quote(json.dumps(value)))
    | words.map(lambda text: quote(text))
    | st.binary(max_size=30).map(quote_from_bytes)
    | st.sampled_from(FIELDS)
    | spans
    | st.sampled_from(["", "true", "False", "1", "%ED%A0%80", "%u1234", "%", "%zz", "+", "[:]", "EXAMPLE_KEY"])
)
pairs = st.tuples(st.sampled_from(NAMES) | words.map(quote), values).map("=".join)
good = st.sampled_from(["", "queries=[{%22mpn%22:%22SN74S74N%22}]", "queries=[{%22q%22:%22x%22},{}]&include[]=specs"])
odd = st.lists(pairs | st.sampled_from(["", "exact_only", "=", "&"]), max_size=6)
strings = st.tuples(odd.map("&".join), good).map("&".join)


def in_shape(reply: RawResponse) -> None:
    """A PartsMatchResponse with a result for each query, or a v3 error that is not of our own making."""
    body = reply.json
    if reply.status == 200 and body["__class__"] == "PartsMatchResponse":
        assert set(body) == {"__class__", "msec", "request", "results"}
        assert len(body["results"]) == len(body["request"]["queries"])
        assert {result["__class__"] for result in body["results"]} <= {"PartsMatchResult"}
        return
    assert set(body) == {"__class__", "message"}
    assert reply.status == 200 or ERRORS[reply.status] == body["__class__"]
    assert not body["message"].startswith("Internal error")


async def check(start: StartEnvironment, make: Callable[[Callable[[str], RawResponse]], Callable[[], None]]) -> None:
    """Run what `make` makes of a way to ask, beside the proxy's event loop."""
    async with start(sandbox={"applications": single_application(part_limit=10**9)}) as environment:
        loop = asyncio.get_running_loop()

        def ask(target: str) -> RawResponse:
            return asyncio.run_coroutine_threadsafe(environment.raw(f"GET {target} HTTP/1.1".encode()), loop).result(30)

        await asyncio.to_thread(make(ask))


bounded = settings(
    max_examples=80,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


async def test_any_query_string_gets_a_v3_response(start: StartEnvironment) -> None:
    def make(ask: Callable[[str], RawResponse]) -> Callable[[], None]:
        @bounded
        @given(strings)
        @example("")
        @example("queries=%ED%A0%80")
        @example("queries=[" * 40)
        @example("&queries=[{%22mpn%22:%22x%22}]&show[]=*&hide[]=*&slice[*]=:")
        def asks(text: str) -> None:
            in_shape(ask(f"/v3/parts/match?apikey=EXAMPLE_KEY&{text}"))

        return asks

    await check(start, make)


raw_bytes = st.binary(max_size=40).map(lambda sent: sent.translate(None, b" \r\n\t"))


async def test_any_bytes_in_a_target_get_a_v3_response(environment: ProxyEnvironment) -> None:
    loop = asyncio.get_running_loop()

    @bounded
    @given(raw_bytes)
    def asks(sent: bytes) -> None:
        line = b"GET /v3/parts/match?apikey=EXAMPLE_KEY&" + sent + b" HTTP/1.1"
        in_shape(asyncio.run_coroutine_threadsafe(environment.raw(line), loop).result(30))

    await asyncio.to_thread(asks)


@pytest.mark.parametrize("depth", [10, 300, 900])
@pytest.mark.parametrize("pretty", ["", "&pretty_print=1"])
async def test_reference_may_be_deeply_nested(environment: ProxyEnvironment, depth: int, pretty: str) -> None:
    deep: Any = None
    for _ in range(depth):
        deep = [deep]
    reply = await environment.raw(
        f'GET /v3/parts/match?apikey=EXAMPLE_KEY&queries=[{{"mpn":"X","reference":{"[" * depth}{"]" * depth}}}]'
        f"{pretty} HTTP/1.1".encode()
    )
    assert reply.status == 200
    assert reply.body.count(b"[") > 2 * depth
