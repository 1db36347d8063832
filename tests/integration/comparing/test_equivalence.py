"""2 000 generated calls on all endpoints: what nobody disturbs is equivalent."""

import pytest
from integration.comparing.comparison import Compares, Makes, told

from proxy import endpoints

CALLS, TURNS = 2_000, 8


async def test_the_generated_calls_are_of_every_endpoint(makes: Makes) -> None:
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    assert {call.endpoint for call in await makes(CALLS)} == known


@pytest.mark.parametrize("turn", range(TURNS))
async def test_what_nobody_disturbs_is_equivalent(makes: Makes, compares: Compares, turn: int) -> None:
    calls = (await makes(CALLS))[turn::TURNS]
    result = await compares(calls)
    assert told(result) == set()
    assert (result["verdict"], result["code"], result["troubles"]) == ("ready", 0, [])
    assert sum(row["calls"] for row in result["rows"]) == CALLS // TURNS
    assert {row["endpoint"] for row in result["rows"]} == {call.endpoint for call in calls}
    assert {row["share"] for row in result["rows"]} == {1.0}
