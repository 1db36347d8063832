"""Reloads of a service over sockets: what changes, what is kept, and mistakes that change nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support import running_proxy
from together.environment import ServeFile, target

import nexar_sandbox
from nexar_sandbox import faults
from proxy import errors

KEY = running_proxy.KEY
PARTS = 3  # that SN74S74N costs
MATCH, OTHER = target({"mpn": "SN74S74N"}), target({"mpn": "NE555P"})


async def test_an_expired_key_is_refused_and_the_new_one_served(serve_file: ServeFile) -> None:
    async with serve_file() as service:
        await service.match(MATCH)
        service.demo["apikeys"] = [{"key": KEY, "name": "old", "expires": "2020-01-31"}, {"key": "new", "name": "new"}]
        await service.reload()
        for _ in range(30):  # more than wrong keys are allowed: a key that was right is no guess
            reply = await service.get(MATCH)
            assert reply.status == 403
            assert reply.json["message"] == "this API key expired on 2020-01-31; use the one that replaces it"
        assert await service.match(target({"mpn": "SN74S74N"}, key="new")) == (200, "hit")


async def test_usage_results_and_counts_are_kept_those_of_a_removed_application_not_shown(
    serve_file: ServeFile,
) -> None:
    def add(content: dict[str, Any]) -> None:
        second = content["applications"]["demo"] | {"apikeys": ["second"], "parts": 100}
        content["applications"]["second"] = second

    async with serve_file(add) as service:
        assert await service.match(MATCH) == (200, "miss")
        assert await service.match(target({"mpn": "NE555P"}, key="second")) == (200, "miss")
        gauges = {"parts_used", "parts_uncertain", "parts_reserved", "parts_remaining"}

        async def labelled(name: str) -> set[str]:
            lines = [line for line in await service.metrics() if f'"{name}"' in line or f'"{name}/' in line]
            return {line.partition("{")[0].removeprefix("v3bridge_") for line in lines} & gauges

        assert await labelled("second") == gauges
        del service.content["applications"]["second"]
        service.demo["rate"] = 500
        await service.reload()
        async with asyncio.timeout(10):  # until the replaced configuration is closed
            while await labelled("second"):
                await asyncio.sleep(0.05)
        reply = await service.get(MATCH)
        assert (reply.headers["x-cache"], reply.headers["x-parts-used"]) == ("hit", str(service.billed_parts))
        assert {
            'v3bridge_requests_total{route="/v3/parts/match",status="200"} 3.0',
            'v3bridge_token_requests_total{application="demo",outcome="ok"} 1.0',
        } <= set(await service.metrics())


@pytest.mark.parametrize("name, value, source", [("features", ["DATASHEETS"], "hit"), ("country", "DE", "miss")])
async def test_another_country_finds_no_stored_results(
    serve_file: ServeFile, name: str, value: Any, source: str
) -> None:
    async with serve_file() as service:
        await service.match(MATCH)
        service.demo[name] = value
        await service.reload()
        assert await service.match(MATCH) == (200, source)
        del service.demo[name]
        await service.reload()
        assert await service.match(MATCH) == (200, "hit")


async def test_requests_in_flight_end_with_their_configuration_and_are_shared(serve_file: ServeFile) -> None:
    async with serve_file() as service:
        await service.match(OTHER)  # so that a token is there
        billed = service.billed_parts
        service.sandbox.faults.replace([faults.LatencyFault(ms=700)])
        first = asyncio.create_task(service.match(MATCH))
        await asyncio.sleep(0.2)
        service.demo["apikeys"] = ["new"]
        await service.reload()
        second = asyncio.create_task(service.match(target({"mpn": "SN74S74N"}, key="new")))
        assert (await service.match(MATCH))[0] == 403
        assert not first.done()
        assert [await first, await second] == [(200, "miss"), (200, "shared")]
        assert service.billed_parts - billed == PARTS


async def test_a_quota_that_is_exhausted_stays_so(serve_file: ServeFile) -> None:
    async with serve_file() as service:
        service.sandbox.faults.replace(nexar_sandbox.parse_faults("quota at=0"))
        assert (await service.match(MATCH))[0] == 429
        sent = len(service.sandbox.documents)
        service.demo["rate"] = 500
        await service.reload()
        assert (await service.match(OTHER))[0] == 429
        assert len(service.sandbox.documents) == sent


async def test_upstream_moves_to_another_address(serve_file: ServeFile, catalog: nexar_sandbox.Catalog) -> None:
    chosen = nexar_sandbox.SandboxSettings()
    async with serve_file() as service, nexar_sandbox.serve(chosen, catalog=catalog) as other:
        await service.match(MATCH)
        service.content["upstream"] |= {"graphql_url": other.graphql_url, "token_url": other.token_url}
        await service.reload()
        assert await service.match(MATCH) == (200, "miss")
        assert (service.billed_parts, other.billed_parts) == (PARTS, PARTS)


async def test_own_uids_are_read_again(serve_file: ServeFile, tmp_path: Path) -> None:
    table = tmp_path / "uids.yaml"
    table.write_text('Category:\n  - {uid: "fedcba9876543210", name: "Resistors"}\n')

    async with serve_file(lambda content: content.update(uids="uids.yaml")) as service:
        paths = [f"/v3/categories/{uid}?apikey={KEY}" for uid in ("fedcba9876543210", "0123456789abcdef")]
        assert [(await service.get(path)).status for path in paths] == [200, 404]
        table.write_text('Category:\n  - {uid: "0123456789abcdef", name: "Resistors"}\n')
        await service.reload()
        assert [(await service.get(path)).status for path in paths] == [404, 200]
        table.write_text("Category: 7\n")
        with pytest.raises(errors.StartError, match=r"uids\.yaml:1"):
            await service.reload()


async def test_nothing_of_replaced_configurations_is_left(serve_file: ServeFile) -> None:
    async with serve_file() as service:
        for number in range(5):
            service.demo["rate"] = 100 + number
            await service.reload()
        async with asyncio.timeout(10):
            while any("retirement" in task.get_name() for task in asyncio.all_tasks()):
                await asyncio.sleep(0.05)
        named = [task.get_name() for task in asyncio.all_tasks()]
        assert {named.count(name) for name in ("refresh", "store", "recording")} == {1}, named
