"""The sandbox as a whole: start, stop, public attributes."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator

import aiohttp
import pytest
import yarl
from support.sandbox_client import SandboxClient, StartSandbox

from nexar_sandbox import app, applications, faults, settings


@pytest.mark.parametrize("host", [b"", b"[", b"a b", b"[::1", b"x:99999", b"x:y", b"\xff", b"a/b", b'"<b>'])
@pytest.mark.parametrize("path", [b"/", b"/graphql", b"/.well-known/openid-configuration"])
async def test_an_invalid_host_header_gets_400(caller: SandboxClient, host: bytes, path: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.sandbox.port)
    writer.write(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host))
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Traceback" not in answer


@pytest.mark.parametrize("path", ["/admin/faults", "/admin/journal", "/%61dmin/faults"])
async def test_admin_requests_with_a_foreign_host_are_rejected(start: StartSandbox, path: str) -> None:
    async with start(admin_hosts=("sandbox",)) as caller:
        url = yarl.URL(caller.sandbox.url + path, encoded=True)
        for host, status in (
            ("evil.example", 403),
            ("localhost.evil.example:80", 403),
            ("127.0.0.1.evil.example", 403),
            ("localhost", 200),
            ("LOCALHOST.:8081", 200),
            ("v3.localhost:8081", 200),
            ("127.0.0.1:8081", 200),
            ("[::1]:8081", 200),
            ("192.0.2.7", 200),
            ("Sandbox:8081", 200),
        ):
            async with caller.session.get(url, headers={"Host": host}) as response:
                assert response.status == status, host
                assert status == 200 or "--admin-host" in await response.text()


async def test_the_sandbox_records_documents_and_counts_requests(caller: SandboxClient) -> None:
    query = "query($ids: [String!]) { supSellers(ids: $ids) { id } }"
    await caller.ask(query, {"ids": ["459"]})
    await caller.ask("{ nonsense }")
    assert caller.sandbox.documents == ((query, {"ids": ["459"]}), ("{ nonsense }", {}))
    assert caller.sandbox.request_counts.graphql == 2


async def test_the_port_is_closed_after_the_context(start: StartSandbox) -> None:
    async with start() as caller:
        url = caller.sandbox.url
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)


@pytest.fixture
async def both() -> AsyncIterator[tuple[SandboxClient, SandboxClient]]:
    """Two sandboxes in one process, each with its own catalog, key and secret."""
    first, second = (
        settings.SandboxSettings(
            applications=(dataclasses.replace(applications.DEFAULT_APPLICATION, client_secret=own),)
        )
        for own in ("secret-1", "secret-2")
    )
    async with app.serve(first) as one, app.serve(second) as other, aiohttp.ClientSession() as session:
        callers = SandboxClient(one, session), SandboxClient(other, session)
        for caller in callers:
            await caller.log_in()
        yield callers


async def test_two_sandboxes_share_no_token_key_usage_or_fault(both: tuple[SandboxClient, SandboxClient]) -> None:
    first, second = both
    part = '{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { id } } } }'
    strange = {"headers": {"Authorization": f"Bearer {first.token}"}}
    assert (await second.ask(part, **strange)).status == 401
    assert (await second.log_in(client_secret="secret-1")).status == 400
    published = []
    for caller in both:
        async with caller.session.get(caller.sandbox.url + "/.well-known/openid-configuration/jwks") as response:
            published.append({key["kid"] for key in (await response.json())["keys"]})
    assert not published[0] & published[1]
    before = second.sandbox.journal.totals.requests.copy()
    assert (await first.ask(part)).data
    first.sandbox.faults.replace(faults.parse_faults("401"))
    assert (await first.ask(part)).status == 401
    assert [caller.sandbox.billed_parts for caller in both] == [1, 0]
    assert second.sandbox.journal.totals.requests == before
    assert (await second.ask(part)).status == 200
