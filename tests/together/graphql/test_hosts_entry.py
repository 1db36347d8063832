"""Programs whose hosts are compiled in: a line in the hosts file leads them here, and the proxy on to the service."""

from pathlib import Path
from typing import Any

import yarl
from together import inspected_upstream

HOST = "api.nexar.test"  # no name server knows it


async def test_request_of_a_v3bridge_is_refused(pair: Any) -> None:
    async with pair() as inner:
        url = inner.environment.proxy.url
        loop = {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}
        async with pair(urls=loop) as outer:
            reply = await outer.environment.failure({"mpn": "SN74S74N"})
            assert reply.status == 502
            assert inner.billed == 0


async def test_doctor_finds_a_v3bridge_at_the_address_of_the_service(pair: Any, tmp_path: Path) -> None:
    async with pair() as both:
        # A name: connections to addresses are led nowhere else.
        proxy = yarl.URL(both.environment.proxy.url).with_host("localhost")
        sandbox = yarl.URL(both.environment.sandbox.url)
        upstream = {"graphql_url": f"{proxy}/graphql", "token_url": f"{proxy}/connect/token"}
        result = await inspected_upstream.inspect(tmp_path, both.environment.sandbox, upstream=upstream)
        assert result.failed == ["tls"]
        assert "upstream.connect_to" in result["tls"].advice
        elsewhere = [f"{proxy.host}:{proxy.port}:{sandbox.host}:{sandbox.port}"]
        result = await inspected_upstream.inspect(
            tmp_path, both.environment.sandbox, upstream={**upstream, "connect_to": elsewhere}
        )
        assert "tls" not in result.failed
