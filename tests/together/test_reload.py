"""Reloads of a service over sockets: what changes, what is kept, and mistakes that change nothing."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import yaml
import yarl

import nexar_sandbox
from nexar_sandbox import faults
from proxy import app, errors, server
from proxy.config import loader
from proxy.kit import clock

KEY = "EXAMPLE_KEY"
PARTS = 3  # that SN74S74N costs


class ReloadableService:
    """A service in this process, and the file that it is reloaded from."""

    def __init__(self, folder: Path, upstream: nexar_sandbox.Sandbox) -> None:
        self.file = folder / "config.yaml"
        account = upstream.default_application
        self.upstream = upstream
        self.content: dict[str, Any] = {
            "listen": {"port": 0},
            "admin": {"port": 0},
            "upstream": {"graphql_url": upstream.graphql_url, "token_url": upstream.token_url},
            "store": f"sqlite:{folder / 'state.sqlite'}",
            "applications": {
                "demo": {
                    "apikeys": [KEY],
                    "client_id": account.client_id,
                    "client_secret": account.client_secret,
                }
            },
        }
        self.running: Any = None
        self.session: Any = None
        self.url = ""

    @property
    def demo(self) -> dict[str, Any]:
        application: dict[str, Any] = self.content["applications"]["demo"]
        return application

    @property
    def billed(self) -> int:
        return self.upstream.part_usage.used(self.upstream.default_application.application_id)

    def write(self) -> None:
        self.file.write_text(yaml.safe_dump(self.content))

    async def reload(self) -> None:
        """Write the content, and serve with it. Raises StartError for a mistake."""
        self.write()
        before = self.running.app.gateway.settings
        settings, _ = server.with_unchangeable(before, loader.load(self.file, {}))
        app.check(settings)
        await self.running.swap(settings)

    async def get(self, path: str) -> tuple[int, dict[str, str], str]:
        url = self.running.operators_url if path == "/metrics" else self.url
        async with self.session.get(yarl.URL(url + path, encoded=True)) as response:
            return response.status, dict(response.headers), await response.text()

    async def match(self, mpn: str = "SN74S74N", key: str = KEY, more: str = "") -> tuple[int, dict[str, str], Any]:
        status, headers, text = await self.get(
            f"/v3/parts/match?apikey={key}&queries={quote(json.dumps([{'mpn': mpn}]))}{more}"
        )
        return status, headers, json.loads(text)

    async def metric(self, line: str) -> float:
        """The value of a line of /metrics."""
        _, _, text = await self.get("/metrics")
        (value,) = [each.rpartition(" ")[2] for each in text.splitlines() if each.startswith(f"{line} ")]
        return float(value)


StartReloadable = Callable[..., Any]


@pytest.fixture
async def start_reloadable(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> StartReloadable:
    @asynccontextmanager
    async def start(change: Callable[[ReloadableService], None] = lambda _: None) -> AsyncIterator[ReloadableService]:
        async with AsyncExitStack() as stack:
            upstream = await stack.enter_async_context(sandbox(catalog, signing_key))
            service = ReloadableService(tmp_path, upstream)
            change(service)
            service.write()
            service.running = await stack.enter_async_context(app.serving(loader.load(service.file, {})))
            service.url = service.running.url
            service.session = await stack.enter_async_context(aiohttp.ClientSession())
            yield service

    return start


def sandbox(catalog: nexar_sandbox.Catalog, key: nexar_sandbox.SigningKey, **fields: Any) -> Any:
    return nexar_sandbox.serve(nexar_sandbox.SandboxSettings(**fields), catalog=catalog, key=key)


async def test_an_expired_key_is_refused_and_the_new_one_served(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        await service.match()
        service.demo["apikeys"] = [{"key": KEY, "name": "old", "expires": "2020-01-31"}, {"key": "new", "name": "new"}]
        await service.reload()
        for _ in range(30):  # more than wrong keys are allowed: a key that was right is no guess
            status, _, body = await service.match()
            assert (status, body) == (
                403,
                {
                    "__class__": "ClientErrorResponse",
                    "message": "this API key expired on 2020-01-31; use the one that replaces it",
                },
            )
        assert (await service.match(key="new"))[0] == 200


async def test_usage_and_cached_results_are_kept(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        await service.match()
        requested = await service.metric('v3bridge_requests_total{route="/v3/parts/match",status="200"}')
        service.demo["rate"] = 500
        await service.reload()
        status, headers, _ = await service.match()
        assert (status, headers["X-Cache"], headers["X-Parts-Used"], service.billed) == (200, "hit", str(PARTS), PARTS)
        counted = await service.metric('v3bridge_requests_total{route="/v3/parts/match",status="200"}')
        assert counted == requested + 1
        assert await service.metric('v3bridge_token_requests_total{application="demo",outcome="ok"}') == 1


@pytest.mark.parametrize("name, value, source", [("features", ["DATASHEETS"], "hit"), ("country", "DE", "miss")])
async def test_another_country_finds_no_stored_results(
    start_reloadable: StartReloadable, name: str, value: Any, source: str
) -> None:
    async with start_reloadable() as service:
        await service.match()
        service.demo[name] = value
        await service.reload()
        assert (await service.match())[1]["X-Cache"] == source
        del service.demo[name]
        await service.reload()
        assert (await service.match())[1]["X-Cache"] == "hit"


async def test_equal_requests_before_and_after_a_reload_are_one(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        service.upstream.faults.replace([faults.LatencyFault(ms=700)])
        first = asyncio.create_task(service.match())
        await asyncio.sleep(0.2)
        service.demo["rate"] = 500
        await service.reload()
        second = asyncio.create_task(service.match())
        await asyncio.sleep(0.1)
        assert not first.done()
        sources = [(await each)[1]["X-Cache"] for each in (first, second)]
        assert (sources, service.billed) == (["miss", "shared"], PARTS)


async def test_a_quota_that_is_exhausted_stays_so(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        service.upstream.faults.replace(nexar_sandbox.parse_faults("quota at=0"))
        assert (await service.match())[0] == 429
        sent = len(service.upstream.documents)
        service.demo["rate"] = 500
        await service.reload()
        assert (await service.match("NE555P"))[0] == 429
        assert len(service.upstream.documents) == sent


async def test_upstream_moves_to_another_address(
    start_reloadable: StartReloadable, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey
) -> None:
    async with start_reloadable() as service, sandbox(catalog, signing_key) as other:
        await service.match()
        service.content["upstream"] |= {"graphql_url": other.graphql_url, "token_url": other.token_url}
        await service.reload()
        status, headers, _ = await service.match()
        assert (status, headers["X-Cache"]) == (200, "miss")
        assert other.part_usage.used(other.default_application.application_id) == PARTS


async def test_own_uids_are_read_again(start_reloadable: StartReloadable, tmp_path: Path) -> None:
    table = tmp_path / "uids.yaml"
    table.write_text('Category:\n  - {uid: "fedcba9876543210", name: "Resistors"}\n')

    def with_uids(service: ReloadableService) -> None:
        service.content["uids"] = "uids.yaml"

    async with start_reloadable(with_uids) as service:
        path = "/v3/categories/{}?apikey=" + KEY
        table.write_text('Category:\n  - {uid: "0123456789abcdef", name: "Resistors"}\n')
        await service.reload()
        before, after = [(await service.get(path.format(uid)))[0] for uid in ("fedcba9876543210", "0123456789abcdef")]
        assert before == 404
        assert after in (200, 404)  # whether the catalogue has such a category
        table.write_text("Category: 7\n")
        with pytest.raises(errors.StartError, match=r"uids\.yaml:1"):
            await service.reload()


async def test_requests_in_flight_end_with_the_configuration_that_they_began_with(
    start_reloadable: StartReloadable,
) -> None:
    async with start_reloadable() as service:
        await service.match("NE555P")  # so that a token is there
        service.upstream.faults.replace([faults.LatencyFault(ms=700)])
        waiting = asyncio.create_task(service.match())
        await asyncio.sleep(0.2)
        service.demo["apikeys"] = ["new"]
        service.content["upstream"]["total_seconds"] = 29
        await service.reload()
        assert not waiting.done()
        assert (await service.match(key=KEY))[0] == 403
        status, headers, body = await waiting
        assert (status, headers["X-Parts-Cost"], body["results"][0]["hits"] > 0) == (200, str(PARTS), True)


async def test_a_check_of_readiness_that_a_reload_cuts_short_has_a_response(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        service.upstream.faults.replace([faults.LatencyFault(ms=3000)])
        _, _, port = service.running.operators_url.rpartition(":")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0.2)
        await service.reload()
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        writer.close()


async def test_connections_stay_open(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        port = int(service.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for rate in range(1, 4):
            service.demo["rate"] = rate * 1000
            await service.reload()
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        writer.close()


async def test_nothing_of_replaced_configurations_is_left(start_reloadable: StartReloadable) -> None:
    async with start_reloadable() as service:
        for number in range(5):
            service.demo["rate"] = 100 + number
            await service.reload()
        async with asyncio.timeout(10):
            while any("retirement" in task.get_name() for task in asyncio.all_tasks()):
                await asyncio.sleep(0.05)
        named = [task.get_name() for task in asyncio.all_tasks()]
        once = {"refresh", "store", "recording"}
        assert {named.count(name) for name in once} == {1}, named
