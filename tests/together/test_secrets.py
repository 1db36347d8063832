"""Tests of secrets in errors that only a bug or an upstream can cause; tests/acceptance has all others."""

import html
import io
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from support import running_proxy, scripted_upstream
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, raw, single_application, target

from proxy import config, log
from proxy.upstream import classify

APIKEY = "k3yPLANTED"
SECRET = "s3cretPLANTED"
CLIENT = "cl1entPLANTED"
ONE = {"mpn": "SN74S74N"}
OWN = {
    "apikeys": (config.ApiKeySettings(config.digest(APIKEY)),),
    "client_id": config.ClientId(CLIENT),
    "client_secret": config.Secret(SECRET),
}

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


def clean(replies: list[RawResponse], log_output: io.StringIO) -> None:
    """Neither key nor secret is anywhere."""
    said = [repr((reply.headers, reply.body)) for reply in replies]
    for planted in (APIKEY, SECRET, CLIENT):
        assert [text[:400] for text in said if planted in text] == []
        assert [line for line in log_output.getvalue().splitlines() if planted in line] == []
        assert planted.encode().hex() not in log_output.getvalue()


async def test_internal_error_reveals_no_secret(
    start: StartEnvironment, log_format: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*arguments: object) -> None:
        raise RuntimeError(f"{APIKEY} {SECRET} {arguments}")

    accounts = single_application(client_id=CLIENT, client_secret=SECRET)
    async with start(sandbox={"applications": accounts}, application=OWN) as environment:
        monkeypatch.setattr("proxy.v3.parts_match.response", break_)
        reply = await environment.get(target(ONE, key=APIKEY))
    assert (reply.status, json.loads(reply.body)["__class__"]) == (500, "ServerErrorResponse")
    assert "RuntimeError" in log_format.getvalue()
    clean([reply], log_format)


OTHER_KEY = 'oth3r"é+PLANTED'  # of another client, with characters that every encoding writes in its own way


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
