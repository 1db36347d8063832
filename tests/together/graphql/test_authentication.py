"""API keys and access tokens of GraphQL clients: where they may be, when they end, and who is throttled."""

import asyncio
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import jwt
import pytest
from support import running_proxy
from together.environment import StartEnvironment, target
from together.graphql.conftest import GraphQLReply, Pair

from proxy import config

FREE = '{ supSellers(ids: ["459"]) { name } }'
FOUND = {"supSellers": [{"name": "Digi-Key"}]}
INVALID, EXPIRED = [(None, "AuthInvalidToken")], [(None, "AuthExpiredToken")]
KEY, WRONG = running_proxy.KEY, "wrong-key"
DAY = 86_400


def api_key(text: str = KEY, **fields: Any) -> config.ApiKeySettings:
    return config.ApiKeySettings(config.digest(text), **fields)


async def send(both: Pair, query: str = "", method: str = "POST", **headers: str) -> GraphQLReply:
    """Send the free document with whatever credentials the caller gives."""
    url, sent = f"{both.url}/graphql", {"query": FREE} if method == "POST" else None
    if method == "GET":
        query = f"{query or '?'}&query={quote(FREE)}"
    async with both.environment.proxy.session.request(method, url + query, json=sent, headers=headers) as response:
        return GraphQLReply(response.status, response.headers, await response.read())


async def token_response(both: Pair, secret: str | None = KEY, authorization: str = "", **form: str) -> tuple[int, Any]:
    sent = {"grant_type": "client_credentials", "client_id": "any", "client_secret": secret, **form}
    data = {name: value for name, value in sent.items() if value is not None}
    url = f"{both.url}/connect/token"
    headers = {"Authorization": authorization}
    async with both.environment.proxy.session.post(url, data=data, headers=headers) as response:
        return response.status, await response.json()


async def test_secret_may_be_in_a_basic_header(pair: Any) -> None:
    """As many OAuth libraries send it, encoded as in a form or not (RFC 6749 §2.3.1)."""
    keys = (api_key("100%/a+b"),)
    async with pair(application={"apikeys": keys}) as both:
        for secret, status in (("100%/a+b", 200), ("100%25%2Fa%2Bb", 200), (WRONG, 400)):
            authorization = aiohttp.encode_basic_auth("any", secret)
            status_, body = await token_response(both, None, authorization)
            assert status_ == status
            if status == 200:
                assert (await send(both, token=body["access_token"])).data == FOUND
        for header in ("Basic", "Basic !", "Basic YQ==", "Bearer x"):
            assert await token_response(both, None, header) == (400, {"error": "invalid_client"})


async def token(both: Pair, key: str = KEY) -> str:
    status, body = await token_response(both, key)
    assert status == 200, body
    return str(body["access_token"])


async def test_key_is_accepted_as_bearer_token_header_and_parameter(both: Pair) -> None:
    for headers in ({"Authorization": f"Bearer {KEY}"}, {"Authorization": f"bearer {KEY}"}, {"token": KEY}):
        for method in ("POST", "GET"):
            reply = await send(both, method=method, **headers)
            assert (reply.status, reply.data) == (200, FOUND), headers
    for query in (f"?apikey={KEY}", f"?token={KEY}"):
        for method in ("POST", "GET"):
            reply = await send(both, query, method)
            assert (reply.status, reply.data) == (200, FOUND), query


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_missing_and_wrong_key_is_the_error_of_the_upstream(both: Pair, method: str) -> None:
    given = [("", {}), (f"?token={WRONG}", {}), (f"?apikey={WRONG}", {}), ("", {"token": WRONG})]
    given += [("", {"Authorization": f"Bearer {each}"}) for each in (WRONG, "", "a.b.c", both.token)]
    for query, headers in given:
        reply = await send(both, query, method, **headers)
        assert (reply.status, reply.errors, reply.data) == (401, INVALID, None), (query, headers)
    assert (await both.ask_upstream(FREE)).status == 200


async def test_address_with_wrong_keys_is_throttled_by_every_dialect(pair: Any) -> None:
    forged = jwt.encode({"iss": "v3bridge", "sub": "x", "exp": 2_000_000_000}, "k" * 32)
    async with pair(listen={"failed_auth_per_minute": 3}) as both:
        assert [(await send(both, token=wrong)).status for wrong in (WRONG, forged)] == [401, 401]
        assert (await token_response(both, WRONG))[0] == 400
        reply = await send(both, token=KEY)
        assert reply.status == 429
        assert int(reply.headers["Retry-After"]) == 60
        assert "too many wrong API keys" in reply.json["errors"][0]["message"]
        status, body = await token_response(both)
        assert (status, body["error"]) == (429, "temporarily_unavailable")
        assert (await both.environment.failure({"mpn": "SN74S74N"})).status == 429
        both.environment.time.advance(60)
        assert (await send(both, token=KEY)).status == 200


async def test_rate_limit_of_a_key_is_that_of_both_dialects(pair: Any) -> None:
    async with pair(application={"rate": 2}) as both:
        assert (await send(both, token=KEY)).status == 200
        replies = [await send(both, token=KEY) for _ in range(4)]
        assert replies[-1].status == 429
        assert replies[-1].data is None
        assert "Retry-After" in replies[-1].headers
        assert (await both.environment.get(target({"mpn": "SN74S74N"}))).status == 429


async def test_expired_key_is_refused_also_through_its_token(pair: Any) -> None:
    """2023-11-14T22:13:20Z: the key ends with that day."""
    async with pair(application={"apikeys": (api_key(expires=date(2023, 11, 14)),)}) as both:
        issued = await token(both)
        assert (await send(both, token=issued)).data == FOUND
        both.environment.time.advance(7_000)
        for given in (KEY, issued):
            reply = await send(both, Authorization=f"Bearer {given}")
            assert (reply.status, reply.errors) == (401, EXPIRED)
        assert (await token_response(both)) == (400, {"error": "invalid_client"})


async def test_sunset_of_v3_is_not_that_of_graphql(pair: Any) -> None:
    sunset = config.SunsetSettings(date(2023, 11, 14))
    async with pair(application={"sunset": sunset}) as both:
        for _ in range(2):
            reply = await send(both, token=KEY)
            assert (reply.status, reply.data) == (200, FOUND)
            assert not {"Sunset", "Deprecation", "Link"} & set(reply.headers)
            both.environment.time.advance(7_000)
        assert (await both.environment.get(target({"mpn": "SN74S74N"}))).status == 410


async def test_token_is_signed_for_24_hours(both: Pair) -> None:
    status, body = await token_response(both, scope="supply.domain")
    issued = body.pop("access_token")
    assert (status, body) == (200, {"expires_in": DAY, "token_type": "Bearer", "scope": "supply.domain"})
    claims = jwt.decode(issued, options={"verify_signature": False})
    assert claims["exp"] - claims["iat"] == DAY
    assert KEY not in str(claims)
    both.environment.time.advance(DAY - 1)
    for headers in ({"Authorization": f"Bearer {issued}"}, {"token": issued}):
        assert (await send(both, **headers)).data == FOUND
    assert (await send(both, f"?token={issued}", "GET")).data == FOUND
    both.environment.time.advance(1)
    reply = await send(both, token=issued)
    assert (reply.status, reply.data) == (401, None)


async def test_token_request_is_checked_as_that_of_the_upstream(both: Pair) -> None:
    for secret, grant, wrong in (
        (WRONG, "client_credentials", "invalid_client"),
        (None, "client_credentials", "invalid_client"),
        (KEY, "password", "unsupported_grant_type"),
        (KEY, "", "unsupported_grant_type"),
    ):
        assert await token_response(both, secret, grant_type=grant) == (400, {"error": wrong})


async def test_no_other_token_is_accepted(both: Pair) -> None:
    """Not one that is changed, unsigned, of another issuer's key, or of the upstream."""
    issued = await token(both)
    head, claims, signature = issued.split(".")
    known = jwt.decode(issued, options={"verify_signature": False})
    others = [
        f"{head}.{claims}.{signature[:-2]}AA",
        f"{head}.{claims}.",
        jwt.encode(known, "", "none"),
        jwt.encode(known, "x" * 32),
        both.token,
    ]
    assert [(await send(both, token=each)).status for each in others] == [401] * len(others)
    assert (await send(both, token=issued)).status == 200


async def test_token_is_accepted_by_all_processes_for_a_day(pair: Any, start: StartEnvironment, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/state.sqlite"
    async with pair(store=store) as both, start(store=store) as other:
        second = Pair(other, both.token)
        for _ in range(2):
            one, two = await asyncio.gather(token(both), token(second))
            assert (await send(second, token=one)).data == (await send(both, token=two)).data == FOUND
            both.environment.time.advance(DAY - 60)
            assert (await send(second, token=one)).data == FOUND
            both.environment.time.advance(60)
            assert (await send(second, token=one)).status == 401


async def test_token_ends_with_its_key(pair: Any, start: StartEnvironment, tmp_path: Path) -> None:
    """The service is restarted without the key that a token was issued for."""
    store = f"sqlite:{tmp_path}/state.sqlite"
    keys = (api_key("first-key"), api_key("second-key"))
    async with pair(store=store, application={"apikeys": keys}) as both:
        first, second = await token(both, "first-key"), await token(both, "second-key")
        assert [(await send(both, token=each)).status for each in (first, second)] == [200, 200]
        subjects = [jwt.decode(each, options={"verify_signature": False})["sub"] for each in (first, second)]
        assert subjects[0] != subjects[1]
    async with start(store=store, application={"apikeys": keys[1:]}) as environment:
        after = Pair(environment, "")
        assert [(await send(after, token=each)).status for each in (first, second)] == [401, 200]
