"""The apikey and the client secret are planted, then searched for in everything that the proxy says or writes.

Sent on every way that a reply can take: answered, refused, wrong, malformed, too long, and an upstream that fails.
"""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from integration.house import House, RawReply, Starts, account, raw, target
from support import running_proxy, scripted_upstream

from proxy import config
from proxy.telemetry import log

APIKEY = "k3yPLANTED"
WRONG_KEY = "wr0ngPLANTED"
SECRET = "s3cretPLANTED"
CLIENT = "cl1entPLANTED"
ONE = {"mpn": "SN74S74N"}
OWN = {
    "apikeys": (config.Apikey(config.digest(APIKEY)),),
    "client_id": config.ClientId(CLIENT),
    "client_secret": config.Secret(SECRET),
}

TARGETS = (
    target(ONE, key=APIKEY),
    target(ONE, {}, key=APIKEY, more="&pretty_print=1&include[]=specs&include[]=datasheets"),
    target(ONE, key=APIKEY, more="&callback=cb"),
    target(ONE, key=WRONG_KEY),
    target(ONE, key=APIKEY, more=f"&apikey={WRONG_KEY}"),
    target(*[ONE] * 21, key=APIKEY),
    target(ONE, key=APIKEY, more="&callback=no+function"),
    target(ONE, key=APIKEY, more="&slice[offers]=x"),
    f"/v3/parts/match?apikey={APIKEY}&queries=[",
    f"/v3/parts/match?apikey={APIKEY}",
    f"/v3/parts/match/?key={APIKEY}",
    f"/v3/{APIKEY}/nothing?apikey={APIKEY}",
    f"/healthz?apikey={APIKEY}",
    f"/readyz?apikey={APIKEY}",
    f"/metrics?apikey={APIKEY}",
)  # fmt: skip
LINES = (
    f"GET /v3/parts/match?apikey={APIKEY}&q={'x' * 140_000} HTTP/1.1",
    f"GET /v3/parts/match?apikey={APIKEY} and blanks HTTP/1.1",
    f"GET /v3/parts/match?apikey={APIKEY} HTTP/9.9",
    f"{APIKEY}",
    f"GET http://{APIKEY}@octopart.com:99999/v3/parts/match?apikey={APIKEY} HTTP/1.1",
    f"POST /v3/parts/match?apikey={APIKEY} HTTP/1.1\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\n\r\n{APIKEY}",
    f"PUT /v3/parts/match?apikey={APIKEY} HTTP/1.1",
    f"GET /v3/parts/match HTTP/1.1\r\nX-Key {APIKEY}",
    f"GET /v3/parts/match HTTP/1.1\r\nX-Key: {APIKEY}\x00",
    f"GET /v3/parts/match HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{APIKEY}",
    f"GET /v3/parts/match?apikey={APIKEY}#{APIKEY} HTTP/1.1\r\nCookie: a={APIKEY}\r\nReferer: {APIKEY}",
)  # fmt: skip
FAILURES: tuple[Any, ...] = (
    {"errors": [{"message": "It broke."}], "data": None},
    {"data": {"supSearchMpn": 7}},
    b"<html>no</html>",
    b"",
    *(scripted_upstream.Answer(b"no", status) for status in (400, 401, 403, 404, 429, 500, 502, 503)),
    scripted_upstream.Answer({"data": None}, cut_after=4),
)


@pytest.fixture(params=["json", "console"])
def written_as(request: pytest.FixtureRequest, written: io.StringIO) -> io.StringIO:
    """The log at its most talkative, in both formats."""
    log.configure("debug", request.param, written)
    return written


async def everything_said(house_port: int, proxy: running_proxy.Client) -> list[RawReply]:
    """All replies to all targets and lines, and the metrics after them."""
    replies = [await raw(house_port, f"GET {asked} HTTP/1.1".encode()) for asked in TARGETS]
    replies += [await raw(house_port, line.encode("latin-1")) for line in LINES]
    return [*replies, await raw(house_port, b"GET /metrics HTTP/1.1")]


def clean(replies: list[RawReply], written: io.StringIO) -> None:
    """Neither key nor secret is anywhere."""
    said = [repr((reply.headers, reply.body)) for reply in replies]
    for planted in (APIKEY, WRONG_KEY, SECRET, CLIENT):
        assert [text[:400] for text in said if planted in text] == []
        assert [line for line in written.getvalue().splitlines() if planted in line] == []
        assert planted.encode().hex() not in written.getvalue()


async def test_neither_key_nor_secret_is_in_replies_metrics_or_log(start: Starts, written_as: io.StringIO) -> None:
    accounts = account(client_id=CLIENT, client_secret=SECRET)
    async with start(sandbox={"accounts": accounts}, application=OWN) as house:
        replies = await everything_said(house.port, house.proxy)
    assert {200, 400, 403, 404, 405} <= {reply.status for reply in replies}
    assert "request" in written_as.getvalue()
    clean(replies, written_as)


async def test_nor_when_the_credentials_are_refused(start: Starts, written_as: io.StringIO) -> None:
    accounts = account(client_id=CLIENT, client_secret="another")
    async with start(sandbox={"accounts": accounts}, application=OWN) as house:
        replies = await everything_said(house.port, house.proxy)
    assert 502 in {reply.status for reply in replies}
    assert "refuses application demo" in written_as.getvalue()
    clean(replies, written_as)


async def test_nor_when_the_services_are_down(start: Starts, nobody: str, written_as: io.StringIO) -> None:
    replies = []
    for urls in ({"graphql_url": f"{nobody}/graphql"}, {"token_url": f"{nobody}/connect/token"}):
        async with start(urls=urls, application=OWN) as house:
            replies += await everything_said(house.port, house.proxy)
    assert 503 in {reply.status for reply in replies}
    clean(replies, written_as)


@asynccontextmanager
async def before_a_script() -> AsyncIterator[tuple[scripted_upstream.ScriptedUpstream, running_proxy.Client]]:
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=OWN)
        async with running_proxy.running(settings) as proxy:
            yield upstream, proxy


async def test_nor_when_the_service_talks_nonsense(written_as: io.StringIO) -> None:
    replies = []
    for failure in FAILURES:
        async with before_a_script() as (upstream, proxy):
            upstream.says(failure)
            replies.append(await raw(int(proxy.url.rpartition(":")[2]), f"GET {TARGETS[0]} HTTP/1.1".encode()))
    assert {200, 429, 502, 503} == {reply.status for reply in replies}
    clean(replies, written_as)


async def test_nor_when_the_program_itself_breaks(
    start: Starts, written_as: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*arguments: object) -> None:
        raise RuntimeError(f"{APIKEY} {SECRET} {arguments}")

    accounts = account(client_id=CLIENT, client_secret=SECRET)
    async with start(sandbox={"accounts": accounts}, application=OWN) as house:
        monkeypatch.setattr("proxy.web.v3.match.reply", break_)
        reply = await house.get(TARGETS[0])
    assert (reply.status, json.loads(reply.body)["__class__"]) == (500, "ServerErrorResponse")
    assert "RuntimeError" in written_as.getvalue()
    clean([reply], written_as)


async def test_the_search_would_find_a_planted_key(house: House, written_as: io.StringIO) -> None:
    reply = await house.failure({**ONE, "reference": APIKEY})
    with pytest.raises(AssertionError):
        clean([reply], written_as)
    written_as.write(f"\n{SECRET}\n")
    with pytest.raises(AssertionError):
        clean([], written_as)
