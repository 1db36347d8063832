"""Checks dns, tls and clock of `v3bridge doctor`: a company's certificate, proxies, names and clocks, on loopback."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.certificates import CertificateAuthority
from support.forwarding_proxy import ForwardingProxy, copy
from together.inspected_upstream import Examined

import nexar_sandbox
from proxy.kit import clock

LAST_YEAR = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """The authority of a company's network that inspects TLS."""
    return CertificateAuthority(tmp_path_factory.mktemp("company"), "ZScaler Root CA")


@pytest.fixture
async def examined(
    catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, tmp_path: Path
) -> AsyncIterator[Examined]:
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings(), catalog=catalog, key=signing_key) as started:
        yield Examined(tmp_path, started)


@asynccontextmanager
async def tls_in_front(sandbox: nexar_sandbox.Sandbox, certificate: Any) -> AsyncIterator[str]:
    """A port that speaks TLS with this certificate, and forwards to the sandbox."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    tasks = set()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", sandbox.port)
        try:
            await asyncio.gather(copy(reader, outer), copy(inner, writer))
        except OSError:
            pass
        finally:
            outer.close()
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(forward(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def test_certificate_of_a_company_is_untrusted_until_ssl_cert_file_names_it(
    examined: Examined, company: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = ForwardingProxy()
    async with tls_in_front(examined.sandbox, company.issue("intercepted")) as url, proxy.running() as address:
        result = await examined.inspect(url)
        assert result.failed == ["tls"]
        assert result["tls"].text.startswith("the certificate of 127.0.0.1 is refused: unable to get local issuer")
        assert "name its root certificate in SSL_CERT_FILE" in result["tls"].advice
        assert examined.sandbox.journal.totals.requests == {}  # nothing was sent to a stranger
        monkeypatch.setenv("SSL_CERT_FILE", str(company.ca_file))
        result = await examined.inspect(url, upstream={"proxy": f"http://me:hidden@{address}"})
    assert (result.failed, result["tls"].text.endswith(" with TLS")) == ([], True)
    assert "Proxy-Authorization: Basic" in proxy.heads[0]


async def test_expired_certificate_asks_for_the_clock(
    examined: Examined, company: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(company.ca_file))
    async with tls_in_front(examined.sandbox, company.issue("expired", end=LAST_YEAR)) as url:
        result = await examined.inspect(url)
    assert result.failed == ["tls"]
    assert "has expired" in result["tls"].text
    assert "clock" in result["tls"].advice


@pytest.mark.parametrize(
    "refusal, user",
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", ""),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "me:hidden@"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", ""),
    ],
)
async def test_refusing_proxy_is_named_and_its_password_is_not(examined: Examined, refusal: bytes, user: str) -> None:
    proxy = ForwardingProxy(refusal)
    async with proxy.running() as address:
        result = await examined.inspect("https://service.invalid", upstream={"proxy": f"http://{user}{address}"})
    assert result.failed == ["tls"]
    assert [head.split()[:2] for head in proxy.heads] == [["CONNECT", "service.invalid:443"]]  # asked once
    assert "hidden" not in repr(result)
    assert "upstream.proxy" in result["tls"].advice


@pytest.mark.parametrize("url, name", [("http://service.invalid", "dns"), ("http://127.0.0.1:{port}", "tls")])
async def test_proxy_of_the_environment_is_pointed_out(
    examined: Examined, unused_tcp_port: int, url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://me:hidden@proxy.example:3128")
    result = await examined.inspect(url.format(port=unused_tcp_port))
    assert result.failed == [name]
    assert "set upstream.proxy: HTTPS_PROXY of the environment is not read" in result[name].advice
    assert "hidden" not in repr(result)


@pytest.mark.parametrize(
    "offset, outcome, words",
    [
        (-3600, "failed", "it is 1 h behind that of 127.0.0.1"),
        (7 * 86_400, "failed", "it is 7 d ahead of"),
        (-180, "warning", "it is 3 min behind"),
        (-50, "passed", "agrees with that of 127.0.0.1"),
    ],
)
async def test_wrong_clock_of_a_machine_is_found(examined: Examined, offset: float, outcome: str, words: str) -> None:
    time = clock.ManualClock(clock.Clock().now() + offset)
    result = await examined.inspect(examined.sandbox.url, time=time)
    assert result["clock"].outcome == outcome
    assert result["clock"].text.startswith(words)
