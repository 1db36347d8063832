"""Tests of secrets: no output of the proxy contains the planted API key or client secret.

Requests cover every kind of response: served, refused, wrong, malformed, too long, and a failing upstream. Responses,
metrics, the log at level debug, and written files are searched.
"""

import asyncio
import html
import io
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy, scripted_upstream
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, raw, single_application, target

from proxy import config
from proxy.kit import clock
from proxy.telemetry import log, merging
from proxy.upstream import classify
from proxy.web import app, server

APIKEY = "k3yPLANTED"
WRONG_KEY = "wr0ngPLANTED"
SECRET = "s3cretPLANTED"
CLIENT = "cl1entPLANTED"
ONE = {"mpn": "SN74S74N"}
OWN = {
    "apikeys": (config.ApiKeySettings(config.digest(APIKEY)),),
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
    *(
        f"/graphql?{name}={key}&query={quote(query)}"
        for name in ("apikey", "token")
        for key in (APIKEY, WRONG_KEY)
        for query in ("{ supSellers { name } }", '{ supParts(ids: ["1"]) { mpn } }', "{")
    ),
    f"/graphql?token={APIKEY}&token={WRONG_KEY}&query=",
    f"/graphql/{APIKEY}?token={WRONG_KEY}",
    f"/connect/token?token={WRONG_KEY}&client_secret={WRONG_KEY}",
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
    *(
        f"POST /graphql?token={key} HTTP/1.1\r\n{header}: {value}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        for key in (APIKEY, WRONG_KEY)
        for header, value in (("Authorization", f"Bearer {key}"), ("token", key), ("X-Nexar-Authorization", key))
        for body in (f'{{"query": "{{ {SECRET} }}"}}'[:9], '{"query": "{ admOrganizations { name } }"}')
    ),
    *(
        f"POST /connect/token HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        f"Content-Length: {len(form)}\r\n\r\n{form}"
        for form in (f"grant_type=client_credentials&client_id=x&client_secret={WRONG_KEY}", f"client_id={WRONG_KEY}")
    ),
    f"GET /v3/parts/match?apikey={APIKEY}#{APIKEY} HTTP/1.1\r\nCookie: a={APIKEY}\r\nReferer: {APIKEY}",
)  # fmt: skip
FAILURES: tuple[Any, ...] = (
    {"errors": [{"message": "It broke."}], "data": None},
    {"data": {"supMultiMatch": 7}},
    b"<html>no</html>",
    b"",
    *(scripted_upstream.ScriptedResponse(b"no", status) for status in (400, 401, 403, 404, 429, 500, 502, 503)),
    scripted_upstream.ScriptedResponse({"data": None}, cut_after=4),
)
LIBRARIES = ("asyncio", "aiohttp.server", "aiohttp.client", "aiohttp.access", "aiohttp.web", "redis", "urllib3")


@pytest.fixture(params=["json", "console"])
def log_format(request: pytest.FixtureRequest, log_output: io.StringIO) -> Iterator[io.StringIO]:
    """The log at its most talkative, every library's included, in both formats."""
    log.configure("debug", request.param, log_output)
    names = [None, *LIBRARIES, *logging.root.manager.loggerDict]
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield log_output
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


async def everything_said(house_port: int) -> list[RawResponse]:
    """All replies to all targets and lines, and the metrics after them."""
    replies = [await raw(house_port, f"GET {asked} HTTP/1.1".encode()) for asked in TARGETS]
    replies += [await raw(house_port, line.encode("latin-1")) for line in LINES]
    return [*replies, await raw(house_port, b"GET /metrics HTTP/1.1")]


def clean(replies: list[RawResponse], log_output: io.StringIO) -> None:
    """Neither key nor secret is anywhere."""
    said = [repr((reply.headers, reply.body)) for reply in replies]
    for planted in (APIKEY, WRONG_KEY, SECRET, CLIENT):
        assert [text[:400] for text in said if planted in text] == []
        assert [line for line in log_output.getvalue().splitlines() if planted in line] == []
        assert planted.encode().hex() not in log_output.getvalue()


@asynccontextmanager
async def before_a_script() -> AsyncIterator[tuple[scripted_upstream.ScriptedUpstream, running_proxy.ProxyClient]]:
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=OWN)
        async with running_proxy.running(settings) as proxy:
            yield upstream, proxy


async def test_malformed_upstream_responses_reveal_no_secret(log_format: io.StringIO) -> None:
    replies = []
    for failure in FAILURES:
        async with before_a_script() as (upstream, proxy):
            upstream.respond_with(failure)
            replies.append(await raw(int(proxy.url.rpartition(":")[2]), f"GET {TARGETS[0]} HTTP/1.1".encode()))
    assert {200, 429, 502, 503} == {reply.status for reply in replies}
    clean(replies, log_format)


async def test_internal_error_reveals_no_secret(
    start: StartEnvironment, log_format: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*arguments: object) -> None:
        raise RuntimeError(f"{APIKEY} {SECRET} {arguments}")

    accounts = single_application(client_id=CLIENT, client_secret=SECRET)
    async with start(sandbox={"applications": accounts}, application=OWN) as environment:
        monkeypatch.setattr("proxy.v3.actions.match_response", break_)
        reply = await environment.get(TARGETS[0])
    assert (reply.status, json.loads(reply.body)["__class__"]) == (500, "ServerErrorResponse")
    assert "RuntimeError" in log_format.getvalue()
    clean([reply], log_format)


async def test_worker_files_hold_no_secret(log_format: io.StringIO, tmp_path: Path) -> None:
    asyncio.get_running_loop().set_debug(True)
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(*FAILURES)
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=OWN)
        builder = app.ServiceBuilder(clock.SystemClock(), merging.WorkerSlot(tmp_path, 1))
        service = (await builder.build(settings)).app
        async with server.running(service, "127.0.0.1", 0) as url:
            port = int(url.rpartition(":")[2])
            replies = [await raw(port, f"GET {TARGETS[0]} HTTP/1.1".encode()) for _ in FAILURES]
            replies += await everything_said(port)
            given = f"X-Request-Id: {APIKEY}".encode()
            replies.append(await raw(port, f"GET {TARGETS[0]} HTTP/1.1".encode(), given))
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert b"/v3/parts/match" in files["worker-1.metrics"]
    clean(replies, log_format)
    for planted in (APIKEY, WRONG_KEY, SECRET, CLIENT):
        assert not any(planted.encode() in kept for kept in files.values())


OTHER_KEY = 'oth3r"é+PLANTED'  # of another client, with characters that every encoding writes in its own way
MISPLACED = (
    "/v3/parts/match&apikey={key}",
    "/v3/parts/match;apikey={key}",
    "/v3/parts/match/apikey/{key}",
    "/v3/parts/match?q=1%26apikey={key}",
    "/v3/parts/match?q=1;apikey={key}",
    "/v3/parts/match?apikey%3D{key}",
    "/v3/parts/match?apikey%253D{key}",
    "/v3/parts/match?APIKEY:{key}",
    "/v3/parts/match?%61pikey={key}",
    "/v3/parts/search?apikey=EXAMPLE_KEY&q={key}",
    "/v3/parts/search?apikey=EXAMPLE_KEY&q=a%20{key}%20b&{key}=1",
    "/v3/parts/search?apikey=EXAMPLE_KEY&filter[queries][]={key}&include[]={key}&show[]={key}",
    "/v3/parts/search?apikey=EXAMPLE_KEY&q=a&filter[{key}]=1",
    "/v3/{key}/match?apikey=EXAMPLE_KEY",
    "/v3/parts/{key}?apikey=EXAMPLE_KEY",
    "/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{{%22mpn%22:%22{json}%22,%22reference%22:%22{json}%22}}]",
    "/v3/parts/match?apikey=EXAMPLE_KEY&queries=[{{%22mpn%22:%22{key}%22}}]",  # a quote in the key spoils the JSON
    "/v3/parts/match?apikey={key}&queries=[]",
    "/graphql?token={key}&query=%7B__typename%7D",
    "/graphql?token=EXAMPLE_KEY&query=%7B{key}%7D&operationName={key}",
    "/graphql?token=EXAMPLE_KEY&query=%7B__typename%7D&variables=%7B%22a%22:%22{json}%22%7D",
)


def spellings(key: str) -> set[str]:
    """A key as clients and outputs write it: plain, encoded once and twice, and escaped in JSON."""
    once = quote(key, safe="")
    return {
        key,
        html.escape(key),
        once,
        quote(once, safe=""),
        json.dumps(key)[1:-1],
        json.dumps(key, ensure_ascii=False)[1:-1],
    }


async def test_api_keys_in_any_place_and_spelling_are_in_no_output(
    start: StartEnvironment, log_format: io.StringIO, tmp_path: Path
) -> None:
    keys = tuple(config.ApiKeySettings(config.digest(key)) for key in (running_proxy.KEY, APIKEY, OTHER_KEY))
    store = tmp_path / "state.sqlite"
    async with start(
        admin=True, application={"apikeys": keys}, store=f"sqlite:{store}", cache={"seconds": 300}
    ) as environment:
        for key in (APIKEY, OTHER_KEY):
            for once in (quote(key, safe=""), quote(quote(key, safe=""), safe="")):
                for place in MISPLACED:
                    line = f"GET {place.format(key=once, json=once.replace('%22', '%5C%22'))} HTTP/1.1".encode()
                    agent = f"User-Agent: erp/1 key={key}".encode()
                    await environment.raw(line, agent, f"X-Request-Id: {APIKEY}".encode())
        shown = await environment.admin.status()
    outputs = {"status": json.dumps(shown), "log": log_format.getvalue()}
    outputs |= {file.name: file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()}
    outputs |= {f"{file.name} as text": file.read_bytes().decode(errors="replace") for file in tmp_path.iterdir()}
    assert shown["failures"]
    assert "erp/1 key=…" in outputs["state.sqlite as text"]
    assert "parameters ignored" in outputs["log"]
    planted = spellings(APIKEY) | spellings(OTHER_KEY)
    assert [(name, key) for name, output in outputs.items() for key in planted if key in output] == []


async def test_api_keys_in_upstream_messages_are_not_logged(log_format: io.StringIO) -> None:
    """Also not the beginning of one in a message that is cut."""
    planted = [each for each in sorted(spellings(APIKEY) | spellings(OTHER_KEY)) if "&quot;" not in each]
    messages = [*(f"Unknown: '{key}'." for key in planted), f"Unknown: {'x ' * 93}{APIKEY}"]
    empty = {"supMultiMatch": [{"hits": 0, "parts": []}]}
    keys = tuple(config.ApiKeySettings(config.digest(key)) for key in (APIKEY, OTHER_KEY))
    async with scripted_upstream.running() as upstream:
        own = {**OWN, "apikeys": keys}
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=own)
        async with running_proxy.running(settings) as proxy:
            port = int(proxy.url.rpartition(":")[2])
            for number, message in enumerate([*messages, f"{classify.FAILURE_MESSAGE}: {' '.join(planted)}"]):
                data = empty if number < len(messages) else None
                upstream.respond_with({"errors": [{"message": message}], "data": data})
                await raw(port, f"GET {target({'mpn': f'A{number}'}, key=APIKEY)} HTTP/1.1".encode())
    assert log_format.getvalue().count("partial data received") == len(messages)
    assert f"UpstreamFault: the GraphQL service failed: {classify.FAILURE_MESSAGE}: …" in log_format.getvalue()
    assert [text for text in (*planted, "k3yP", "oth3r") if text in log_format.getvalue()] == []


async def test_secret_search_finds_a_planted_key(environment: ProxyEnvironment, log_format: io.StringIO) -> None:
    reply = await environment.failure({**ONE, "reference": APIKEY})
    with pytest.raises(AssertionError):
        clean([reply], log_format)
    log_format.write(f"\n{SECRET}\n")
    with pytest.raises(AssertionError):
        clean([], log_format)
