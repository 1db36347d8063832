"""What responses have shown of a plan is known to other services at the same store, and after a restart: parts that
they fetch have those features from the first time."""

from pathlib import Path

import pytest
from together.environment import StartEnvironment
from together.test_shared_cache import CACHED, others, settings

ONE, OTHER = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}
SPECS = "&include[]=specs"


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_part_is_paid_once_after_a_restart(
    start: StartEnvironment, request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    store = str(request.getfixturevalue("redis_server").url) if kind == "redis" else f"sqlite:{tmp_path}/state.sqlite"
    async with start(cache=CACHED) as environment:
        async with others(environment, settings(environment, store)) as [before]:
            await before.results(ONE, more=SPECS)
        async with others(environment, settings(environment, store)) as [after]:
            await after.results(OTHER)
            billed = environment.billed_parts
            (with_specs,) = await after.results(OTHER, more=SPECS)
        assert with_specs["items"][0]["specs"]
        assert environment.billed_parts == billed
