"""Probe requests: what is sent, how often, and what becomes of the response."""

import base64
import itertools
import json
import socket
from urllib.parse import parse_qs

import aiohttp
import pytest
from tools.conform.conftest import SECRET, TOKEN, Connect, ScriptedService

from proxy.kit import clock
from proxy.tools.conform import probes
from proxy.tools.conform.assumptions import ProbeRequest

QUERY = ProbeRequest(document="{ a }", variables={"id": "{client_id}"})


async def test_a_query_is_posted_with_the_token_of_the_application(connect: Connect, service: ScriptedService) -> None:
    async with connect() as prober:
        response = await prober.send(QUERY)
    (_, _, form), (path, headers, body) = service.requests
    assert parse_qs(form) == {
        "grant_type": ["client_credentials"],
        "client_id": ["our-client"],
        "client_secret": [SECRET],
        "scope": ["supply.domain"],
    }
    assert (path, headers["Authorization"], headers["Accept"]) == ("/graphql", f"Bearer {TOKEN}", "application/json")
    assert json.loads(body) == {"query": "{ a }", "variables": {"id": "our-client"}}
    assert (response.status, response.body) == (200, {"data": {}})
    assert response.headers["content-type"].startswith("application/json")


async def test_queries_of_an_account_share_one_token(connect: Connect, service: ScriptedService) -> None:
    async with connect(no_parts=probes.Account("other-client", SECRET)) as prober:
        for needs in (None, None, "no_parts", "no_parts"):
            await prober.send(ProbeRequest(document="{ a }", needs=needs))
        assert prober.token_requests == 2
    assert service.paths == ["/token", "/graphql", "/graphql", "/token", "/graphql", "/graphql"]


async def test_headers_are_replaced_or_omitted_whatever_their_case(connect: Connect, service: ScriptedService) -> None:
    request = ProbeRequest(document="{ a }", headers={"authorization": None, "token": "{token}", "ACCEPT": "*/*"})
    async with connect() as prober:
        await prober.send(request)
    _, headers, _ = service.requests[-1]
    assert "Authorization" not in headers
    assert (headers["Token"], headers["Accept"]) == (TOKEN, "*/*")


async def test_an_http_request_has_neither_token_nor_headers_of_its_own(
    connect: Connect, service: ScriptedService
) -> None:
    request = ProbeRequest(kind="http", method="PUT", url="{graphql_url}/more?a=1", headers={"Content-Type": "text/x"})
    async with connect() as prober:
        await prober.send(request)
    ((path, headers, body),) = service.requests
    assert (path, body) == ("/graphql/more", "")
    assert headers.keys().isdisjoint({"Authorization", "Accept"})


async def test_less_than_two_token_requests_are_sent_a_second(connect: Connect, service: ScriptedService) -> None:
    form = {"grant_type": "client_credentials", "client_id": "{client_id}", "client_secret": "wrong"}
    async with connect() as prober:
        await prober.send(QUERY)
        for _ in range(3):
            await prober.send(ProbeRequest(kind="token", form=form))
        assert prober.token_requests == 4
    assert [later - earlier for earlier, later in itertools.pairwise(service.times)] == pytest.approx([0.625] * 3)
    assert parse_qs(service.requests[-1][2])["client_id"] == ["our-client"]


async def test_a_token_of_a_probe_is_secret_and_not_used_by_others(connect: Connect, service: ScriptedService) -> None:
    service.token = (200, {"access_token": "of-the-probe"})
    async with connect() as prober:
        await prober.send(ProbeRequest(kind="token", form={"grant_type": "client_credentials"}))
        service.token = (200, {"access_token": TOKEN})
        await prober.send(QUERY)
        assert "of-the-probe" in prober.secrets
    assert service.requests[-1][1]["Authorization"] == f"Bearer {TOKEN}"


async def test_credentials_are_form_encoded_in_a_basic_header(connect: Connect, service: ScriptedService) -> None:
    basic = ProbeRequest(kind="token", headers={"Authorization": "Basic {basic_credentials}"}, needs="no_parts")
    async with connect(no_parts=probes.Account("a b", "c:d")) as prober:
        await prober.send(basic)
        encoded = service.requests[-1][1]["Authorization"].removeprefix("Basic ")
        assert encoded in prober.secrets
    assert base64.b64decode(encoded) == b"a+b:c%3Ad"


async def test_a_refused_token_request_is_not_repeated(connect: Connect, service: ScriptedService) -> None:
    service.token = (400, {"error": "invalid_client"})
    async with connect() as prober:
        for _ in range(3):
            with pytest.raises(probes.ProbeError, match="the identity service responded 400 invalid_client"):
                await prober.send(QUERY)
    assert service.paths == ["/token"]


async def test_an_unreachable_service_is_a_reason_without_its_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    target = probes.Target(address, address, {None: probes.Account()})
    async with aiohttp.ClientSession() as session:
        with pytest.raises(probes.ProbeError, match=r"^no connection$"):
            await probes.Prober(target, session, clock.ManualClock()).send(QUERY)


def test_the_repr_of_an_account_has_no_secret() -> None:
    account = probes.Account("our-client", SECRET)
    assert SECRET not in repr(account) + repr(probes.Target("g", "t", {None: account}))
