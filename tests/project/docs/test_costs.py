"""docs/explanation/costs.md, measured: what the sandbox's counter and its traffic say of each row."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
from support import running_proxy

import nexar_sandbox
from proxy import config
from proxy.kit import clock

ROOT = Path(__file__).parents[3]
OTHER_KEY, OTHER_APPLICATION_KEY = "ANOTHER_KEY", "KEY_OF_ANOTHER_APPLICATION"
ONE = 'queries=[{"mpn":"SN74S74N"}]'
OPERATIONS = ("supSearchMpn", "supMultiMatch")


class Cost(NamedTuple):
    """Of one or several requests."""

    shown: int
    billed: int
    asked: int
    tokens: int


class Counted:
    """A proxy on a sandbox, asked and billed."""

    def __init__(
        self, client: running_proxy.ProxyClient, sandbox: nexar_sandbox.Sandbox, time: clock.ManualClock
    ) -> None:
        self._client = client
        self._sandbox = sandbox
        self.time = time

    async def cost(self, parameters: str, times: int = 1, key: str = running_proxy.KEY) -> Cost:
        """Ask so many times at the same moment; the parts shown are those of one reply."""
        before = self._figures()
        target = f"/v3/parts/match?apikey={key}&{quote(parameters, safe='=&')}"
        replies = await asyncio.gather(*(self._client.get(target) for _ in range(times)))
        reply: Any = await replies[0].json()
        assert {one.status for one in replies} == {200}
        shown = sum(len(result["items"]) for result in reply["results"])
        return Cost(shown, *(now - then for now, then in zip(self._figures(), before, strict=True)))

    async def visit(self, target: str, method: str = "GET") -> tuple[int, int]:
        """Parts billed and GraphQL requests of any path."""
        billed, asked, _ = self._figures()
        path = quote(target, safe="/?&=")
        await self._client.get(f"{path}{'&' if '?' in path else '?'}apikey={running_proxy.KEY}", method=method)
        return self._figures()[0] - billed, self._figures()[1] - asked

    def _figures(self) -> tuple[int, int, int]:
        used = self._sandbox.part_usage.used(self._sandbox.default_application.application_id)
        return used, self._sandbox.request_counts.graphql, self._sandbox.request_counts.tokens


Opens = Callable[..., AbstractAsyncContextManager[Counted]]


@pytest.fixture(scope="module")
def catalog() -> Any:
    opened = nexar_sandbox.open_catalog(None, None, 1)
    yield opened
    opened.close()


@pytest.fixture
def open_proxy(catalog: nexar_sandbox.Catalog) -> Opens:
    """Opens a fresh proxy on a fresh sandbox; both applications share the account, so that both are counted."""

    @asynccontextmanager
    async def opened(single_query: str = "supMultiMatch", seconds: float = 0) -> AsyncIterator[Counted]:
        account = nexar_sandbox.DEFAULT_APPLICATION
        mine = {
            "client_id": config.ClientId(account.client_id),
            "client_secret": config.Secret(account.client_secret),
            "apikeys": tuple(config.ApiKeySettings(config.digest(key)) for key in (running_proxy.KEY, OTHER_KEY)),
        }
        time = clock.ManualClock()
        async with AsyncExitStack() as stack:
            sandbox = await stack.enter_async_context(
                nexar_sandbox.serve(nexar_sandbox.SandboxSettings(), catalog=catalog, clock=time)
            )
            chosen = running_proxy.settings(
                sandbox.graphql_url,
                sandbox.token_url,
                application=mine,
                translation={"single_query": single_query},
                cache={"seconds": seconds},
            )
            other = msgspec.structs.replace(
                chosen.applications["demo"], apikeys=(config.ApiKeySettings(config.digest(OTHER_APPLICATION_KEY)),)
            )
            chosen = msgspec.structs.replace(chosen, applications={**chosen.applications, "other": other})
            yield Counted(await stack.enter_async_context(running_proxy.running(chosen, time)), sandbox, time)

    return opened


@pytest.fixture(scope="module")
def rows(pages: Any) -> Any:
    """The rows of a table of the page."""
    return pages["docs/explanation/costs.md"].table


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_single_query_costs_as_documented(rows: Any, open_proxy: Opens, operation: Any) -> None:
    measured = [row for row in rows("request") if row[1] in (operation, "either")]
    assert measured
    async with open_proxy(operation) as counted:
        for request, _, *figures in measured:
            cost = await counted.cost(request.strip("`"))
            assert (request, *map(str, cost[:3])) == (request, *figures)


async def test_many_queries_are_split_as_documented(rows: Any, open_proxy: Opens) -> None:
    lines = (ROOT / "sandbox/nexar_sandbox/catalog/data/parts.jsonl").read_text(encoding="utf-8").splitlines()
    numbers = list(dict.fromkeys(json.loads(line)["mpn"] for line in lines))[:20]
    async with open_proxy() as counted:
        for limit, most, asked in (map(int, row) for row in rows("limit of each")):
            queries = json.dumps([{"mpn": number, "limit": limit} for number in numbers])
            cost = await counted.cost(f"queries={queries}")
            assert (most, asked) == (20 * limit, cost.asked)
            assert 20 <= cost.billed == cost.shown <= most


async def test_other_endpoints_cost_as_documented(rows: Any, open_proxy: Opens) -> None:
    stated = rows("path, one after the other")
    async with open_proxy() as counted:
        for target, *figures in stated:
            assert (target, *map(str, await counted.visit(target.strip("`")))) == (target, *figures)


async def test_head_costs_as_much_as_get(open_proxy: Opens) -> None:
    async with open_proxy() as counted:
        assert (await counted.visit("/v3/parts/search?q=resistor", "HEAD"))[0] == 10


async def test_repeated_request_costs_as_documented(rows: Any, open_proxy: Opens) -> None:
    measured = {}
    async with open_proxy(seconds=84_600) as counted:
        measured["the first time"] = await counted.cost(ONE)
        measured["once more, at once"] = await counted.cost(ONE)
        measured["by another API key of the same application"] = await counted.cost(ONE, key=OTHER_KEY)
        measured["by another application"] = await counted.cost(ONE, key=OTHER_APPLICATION_KEY)
        measured["with another `include[]`"] = await counted.cost(f"{ONE}&include[]=imagesets")
        measured["with the first `include[]` of a plan's feature"] = await counted.cost(f"{ONE}&include[]=specs")
        measured["without it again"] = await counted.cost(f"{ONE}&n=2")
        counted.time.advance(23 * 3600)
        measured["after 23 hours"] = await counted.cost(ONE)
        counted.time.advance(3600)
        measured["after 24 hours"] = await counted.cost(ONE)
    async with open_proxy(seconds=0) as counted:
        await counted.cost(ONE)
        measured["once more, with the response cache off"] = await counted.cost(ONE)
        measured["ten clients at the same moment, response cache off"] = await counted.cost(ONE, times=10)
    stated = {when: (int(billed), int(asked)) for when, _, billed, asked in rows("when")}
    assert stated == {when: (cost.billed, cost.asked) for when, cost in measured.items()}


async def test_token_requests_cost_as_documented(rows: Any, open_proxy: Opens) -> None:
    measured = {}
    async with open_proxy() as counted:
        measured["the first request"] = (await counted.cost(ONE)).tokens
        measured["the next ones"] = (await counted.cost(ONE)).tokens + (await counted.cost(ONE, times=5)).tokens
    async with open_proxy() as counted:
        measured["fifty first requests at the same moment"] = (await counted.cost(ONE, times=50)).tokens
    assert {what: int(figure) for what, figure in rows("what")} == measured
