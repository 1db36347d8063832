"""Tests of the session: trusted certificates, sent headers, proxies and fixed hosts; real TLS, on loopback. And of what
its module uses of aiohttp that is private: a release that drops or renames it fails here first, by name."""

import ast
import base64
import importlib.metadata
import ssl
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import client_proto, web
from packaging.requirements import Requirement
from support.certificates import CertificateAuthority
from support.forwarding_proxy import ForwardingProxy
from support.served import serve

from proxy import config, errors
from proxy.upstream import http_post

ROOT = Path(__file__).parents[3]
OpenSession = Callable[..., aiohttp.ClientSession]


async def test_installed_aiohttp_has_the_private_names_that_are_used() -> None:
    tree = ast.parse((ROOT / "proxy" / "upstream" / "http_post.py").read_text(encoding="utf-8"))
    private = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    own = {node.attr for node in private if isinstance(node.ctx, ast.Store)}
    used = {node.attr for node in private if not node.attr.startswith("__")} - own
    assert used == {"_conns", "_create_connection", "_wait_for_available_connection"}
    async with aiohttp.TCPConnector() as connector:
        assert [name for name in sorted(used) if not hasattr(connector, name)] == []
    assert hasattr(client_proto.ResponseHandler, "close")


def test_project_bounds_the_version_of_aiohttp() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = (need for need in map(Requirement, project["dependencies"]) if need.name == "aiohttp")
    assert any(each.operator == "<" for each in bound.specifier)
    assert bound.specifier.contains(importlib.metadata.version("aiohttp"))


async def ok(_: web.Request) -> web.Response:
    response = web.Response(text="ok")
    response.set_cookie("session", "1")
    return response


async def post(session: Any, url: str) -> str:
    service = http_post.Service("the service", url, 1_000, bills=True)
    return (await http_post.post(session, service, b"body", {})).body.decode()


async def test_authorities_are_the_system_s_and_those_of_ssl_cert_file(
    open_session: OpenSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = CertificateAuthority(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*authority.issue("server"))
    async with serve(ok, tls=tls) as url:
        async with open_session() as session:
            with pytest.raises(errors.UpstreamUnreachable, match="shows a certificate that is not trusted") as found:
                await post(session, url)
        assert not found.value.may_be_billed
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        async with open_session() as session:
            assert await post(session, url) == "ok"
            with pytest.raises(errors.UpstreamUnreachable, match="not trusted"):
                await post(session, url.replace("127.0.0.1", "localhost"))


async def test_proxy_credentials_are_sent_to_the_proxy(open_session: OpenSession) -> None:
    proxy = ForwardingProxy()
    async with (
        proxy.running() as address,
        open_session(proxy=config.secret.ProxyAddress(f"http://me:the%20word@{address}")) as session,
    ):
        assert await post(session, "http://service.example/graphql") == "proxy"
    (head,) = proxy.heads
    assert head.startswith("POST http://service.example/graphql HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:the word').decode()}\r\n" in head


async def test_proxy_that_refuses_or_is_away_is_named(open_session: OpenSession, unused_tcp_port: int) -> None:
    proxy = ForwardingProxy(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    async with proxy.running() as refusing:
        for address, message in (
            (refusing, "cannot be reached: the proxy on the way says HTTP 407"),
            (f"127.0.0.1:{unused_tcp_port}", "cannot be reached: there is no connection to the proxy on the way"),
        ):
            async with open_session(proxy=config.secret.ProxyAddress(f"http://me:hidden@{address}")) as session:
                with pytest.raises(errors.UpstreamUnreachable) as found:
                    await post(session, "https://service.example/")
            assert found.value.message == f"the service {message}"
            assert not found.value.may_be_billed


async def test_fixed_host_is_connected_to_and_neither_cookies_nor_the_environment_used(
    open_session: OpenSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    heads = []

    async def noting(got: web.Request) -> web.Response:
        heads.append((got.host, dict(got.cookies)))
        return await ok(got)

    async with serve(noting) as url:
        address = url.removeprefix("http://").partition("/")[0]
        async with open_session(connect_to=(f"service.example:80:{address}",)) as session:
            for _ in range(2):
                assert await post(session, "http://service.example/graphql") == "ok"
    assert heads == [("service.example", {})] * 2
