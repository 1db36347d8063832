"""Credentials for prices of the caller's own: they reach the upstream, and nothing of them or of their results is kept
or shown."""

import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy, scripted_upstream

from proxy import log

SECRETS = {"clientId": "cl1entPLANTED", "clientSecret": "s3cretPLANTED", "username": "us3rPLANTED",
           "password": "p4ss\"é+PLANTED", "apiKey": "k3yPLANTED"}  # fmt: skip
CREDENTIALS = [{"apiName": "digikey", **SECRETS}]
WITH = """query ($c: [SupApiCredentials!]) { supSearchMpn(q: "SN74S74N", limit: 1, customPricingCredentials: $c) {
  results { part { mpn } } } }"""
INLINE = WITH.replace("($c: [SupApiCredentials!])", "").replace(
    "$c", '[{apiName: "digikey", ' + ", ".join(f"{name}: {json.dumps(each)}" for name, each in SECRETS.items()) + "}]"
)


@pytest.fixture
def log_format(log_output: io.StringIO) -> io.StringIO:
    log.configure("debug", "json", log_output)
    return log_output


def planted(text: str) -> list[str]:
    """Return the secrets in a text, in any of their spellings."""
    spellings = {form for each in SECRETS.values() for form in (each, quote(each, safe=""), json.dumps(each)[1:-1])}
    return [each for each in spellings if each in text]


@pytest.mark.parametrize("document, variables", [(WITH, {"c": CREDENTIALS}), (INLINE, {})])
async def test_results_are_fetched_each_time_and_never_cached(
    pair: Any, tmp_path: Path, log_format: io.StringIO, document: str, variables: Any
) -> None:
    async with pair(store=f"sqlite:{tmp_path}/state.sqlite", admin=True) as both:
        for number in range(1, 4):
            reply = await both.ask(document, variables)
            assert reply.data["supSearchMpn"]["results"][0]["part"]["mpn"] == "SN74S74N"
            assert (both.billed, reply.headers["X-Parts-Cost"]) == (number, "1")
        assert both.environment.sent_variables[-1] == variables
        plain = await both.ask(WITH)
        assert (plain.headers["X-Parts-Cost"], both.billed) == ("1", 4)
        await both.environment.get(
            f"/graphql?token={running_proxy.KEY}&query={quote(document)}&variables={quote(json.dumps(variables))}"
        )
        assert both.billed == 5
        shown = json.dumps(await both.environment.admin.status())
    kept = {file.name: file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()}
    assert {name: found for name, text in kept.items() if (found := planted(text))} == {}
    assert planted(shown) == []
    assert planted(log_format.getvalue()) == []


async def test_errors_show_credentials_in_the_response_only(tmp_path: Path, log_format: io.StringIO) -> None:
    """Neither the upstream's, nor those of variables that are wrong, are in the log or the store."""
    messages = [f"Unknown: {each}" for each in SECRETS.values()]
    echoed = [
        {"message": each, "path": ["supSearchMpn"], "extensions": {"remote": {"message": each}}} for each in messages
    ]
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(
            upstream.graphql_url, upstream.token_url, store=f"sqlite:{tmp_path}/state.sqlite"
        )
        async with running_proxy.running(settings) as proxy:
            for document, variables, response in (
                (WITH, {"c": CREDENTIALS}, {"data": None, "errors": echoed}),
                (WITH, {"c": CREDENTIALS}, {"data": {"supSearchMpn": {"results": None}}, "errors": echoed}),
                (INLINE, {}, {"data": None, "errors": echoed}),
                (WITH, {"c": [{**CREDENTIALS[0], "wrong": "p4ssPLANTED"}]}, {}),
                (WITH, {"c": [SECRETS]}, {}),
                (WITH, {"c": "s3cretPLANTED"}, {}),
                (WITH, {"c": [{"apiName": 1, **SECRETS}]}, {}),
                (INLINE.replace("apiName", "wrong"), {}, {}),
            ):
                upstream.respond_with(response)
                sent = {"query": document, "variables": variables}
                async with proxy.session.post(
                    f"{proxy.url}/graphql", json=sent, headers={"token": running_proxy.KEY}
                ) as got:
                    assert (await got.json())["errors"]
    kept = "".join(file.read_bytes().decode("latin-1") for file in tmp_path.iterdir())
    assert planted(kept) == []
    assert planted(log_format.getvalue()) == []


@pytest.mark.parametrize("is_whole", [True, False])
async def test_data_errors_and_cost_reach_the_caller(is_whole: bool) -> None:
    """An error hides nothing that was paid for."""
    error = {"message": f"cannot sign in with {SECRETS['clientSecret']}", "path": ["supSearchMpn", "results", 0]}
    results = [{"part": {"mpn": "SN74S74N"}}, *([] if is_whole else [None])]
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
        async with running_proxy.running(settings) as proxy:
            upstream.respond_with({"data": {"supSearchMpn": {"results": results}}, "errors": [error]})
            for document, variables in ((WITH, {"c": CREDENTIALS}), (INLINE, {})):
                sent, headers = {"query": document, "variables": variables}, {"token": running_proxy.KEY}
                async with proxy.session.post(f"{proxy.url}/graphql", json=sent, headers=headers) as got:
                    reply = await got.json()
                assert (got.status, reply["data"]) == (200, {"supSearchMpn": {"results": results}})
                assert [each["message"] for each in reply["errors"]] == [error["message"]]
                assert got.headers["X-Parts-Cost"] == "1"
