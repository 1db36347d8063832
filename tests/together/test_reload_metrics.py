"""Metrics over a reload: nothing of what it removed stays."""

import asyncio

from together import test_reload
from together.test_reload import KEY, ReloadableService, StartReloadable

start_reloadable = test_reload.start_reloadable


async def test_series_of_a_removed_application_are_removed(start_reloadable: StartReloadable) -> None:
    def add(service: ReloadableService) -> None:
        service.content["applications"]["second"] = service.demo | {"apikeys": ["second-key"], "parts": 100}

    async with start_reloadable(add) as service:
        for key, number in ((KEY, "SN74S74N"), ("second-key", "NE555P")):
            assert (await service.match(number, key))[0] == 200
        # The gauges of quota accounts have the key's name, too.
        gauges = {"token_age_seconds", "parts_used", "parts_uncertain", "parts_reserved", "parts_remaining"}

        async def labelled(name: str) -> set[str]:
            _, _, text = await service.get("/metrics")
            lines = [line for line in text.splitlines() if f'"{name}"' in line or f'"{name}/' in line]
            return {line.partition("{")[0].removeprefix("v3bridge_") for line in lines} & gauges

        assert await labelled("second") == gauges
        del service.content["applications"]["second"]
        await service.reload()
        async with asyncio.timeout(10):  # until the replaced configuration is closed
            while await labelled("second"):
                await asyncio.sleep(0.05)
        assert (await service.match("1N4007"))[0] == 200
        assert "token_age_seconds" in await labelled("demo")
