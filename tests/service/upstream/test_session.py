"""Tests of outgoing connections: trusted certificates, sent headers and proxies. Real TLS, on loopback."""

import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support import served
from support.certificates import CertificateAuthority
from support.forwarding_proxy import ForwardingProxy

from proxy import config, errors
from proxy.upstream import http_post

OpenSession = Callable[..., aiohttp.ClientSession]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server_files(authority: CertificateAuthority) -> Any:
    return authority.issue("server")


@pytest.fixture
def serve_tls(authority: CertificateAuthority, server_files: Any) -> Any:
    """`async with serve_tls() as url`: answers every POST with "ok"; `asks` for a client's certificate."""

    @asynccontextmanager
    async def serving(asks: bool = False) -> AsyncIterator[str]:
        async def ok(_: web.Request) -> web.Response:
            return web.Response(text="ok")

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.ca_file)
        context.load_cert_chain(*server_files)
        context.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE
        app = web.Application()
        app.router.add_post("/", ok)
        async with served.on_loopback(app, tls=context) as url:
            yield f"{url}/"

    return serving


def request(url: str) -> http_post.HttpRequest:
    return http_post.HttpRequest(url, "the service", b"body", {}, True)


async def ask(session: Any, url: str) -> str:
    return (await http_post.post(session, request(url))).body.decode()


async def test_certificate_of_an_unknown_authority_is_refused(serve_tls: Any, open_session: OpenSession) -> None:
    async with serve_tls() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match="shows a certificate that is not trusted") as found:
            await ask(session, url)
    assert not found.value.may_be_billed


@pytest.fixture
def trusted(authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))


async def test_ssl_cert_file_adds_a_trusted_authority(serve_tls: Any, open_session: OpenSession, trusted: None) -> None:
    async with serve_tls() as url, open_session() as session:
        assert await ask(session, url) == "ok"


async def test_certificate_for_another_name_is_refused(
    serve_tls: Any, open_session: OpenSession, trusted: None
) -> None:
    async with serve_tls() as url, open_session() as session:
        with pytest.raises(errors.UpstreamUnreachable, match="not trusted"):
            await ask(session, url.replace("127.0.0.1", "localhost"))


async def test_http_proxy_sees_only_an_encrypted_tunnel(
    serve_tls: Any, open_session: OpenSession, trusted: None
) -> None:
    proxy = ForwardingProxy()
    async with serve_tls() as url, proxy.running() as address:
        proxy_address = config.ProxyAddress(f"http://{address}")
        async with open_session(proxy=proxy_address) as session:
            assert await ask(session, url) == "ok"
    (head,) = proxy.heads
    assert head.startswith(f"CONNECT {url.removeprefix('https://').rstrip('/')} HTTP/1.1\r\n")
    assert "Proxy-Authorization" not in head


async def test_proxy_credentials_are_sent_to_the_proxy(open_session: OpenSession) -> None:
    proxy = ForwardingProxy()
    async with proxy.running() as address:
        proxy_address = config.ProxyAddress(f"http://me:the%20word@{address}")
        async with open_session(proxy=proxy_address) as session:
            assert await ask(session, "http://service.example/graphql") == "proxy"
    (head,) = proxy.heads
    assert head.startswith("POST http://service.example/graphql HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:the word').decode()}\r\n" in head


async def test_refusing_proxy_is_named_with_its_status(open_session: OpenSession) -> None:
    proxy = ForwardingProxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    async with (
        proxy.running() as address,
        open_session(proxy=config.ProxyAddress(f"http://me:hidden@{address}")) as session,
    ):
        with pytest.raises(errors.UpstreamUnreachable, match="the proxy on the way says HTTP 407") as found:
            await ask(session, "https://service.example/")
    assert not found.value.may_be_billed
    assert "hidden" not in found.value.message


async def test_unreachable_proxy_is_named(open_session: OpenSession, closed_port: int) -> None:
    proxy_address = config.ProxyAddress(f"http://127.0.0.1:{closed_port}")
    async with open_session(proxy=proxy_address) as session:
        with pytest.raises(errors.UpstreamUnreachable, match="no connection to the proxy on the way") as found:
            await ask(session, "https://service.example/")
    assert not found.value.may_be_billed


async def test_proxy_variables_of_the_environment_are_ignored(
    open_session: OpenSession, serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def ok(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async with serve(ok) as url, open_session() as session:
        assert await ask(session, url) == "ok"
