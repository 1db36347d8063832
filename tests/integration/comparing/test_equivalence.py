"""2 000 generated requests on all endpoints: what nobody disturbs is equivalent, but for uids that nobody recorded. The
old service has a formula of its own for them; with a table learnt from its responses nothing differs at all.
"""

import pytest
from integration.comparing.comparison import Compares, Makes, told
from integration.house import House

from proxy import endpoints

REQUESTS, TURNS = 2_000, 8


async def test_generated_requests_cover_every_endpoint(makes: Makes) -> None:
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    assert {request.endpoint for request in await makes(REQUESTS)} == known


async def test_without_disturbances_only_unrecorded_uids_differ(house: House, makes: Makes, compares: Compares) -> None:
    requests = await makes(300)
    result = await compares(requests, proxy=house.proxy.url)
    assert {group["kind"] for group in result["groups"]} == {"uid not known"}
    assert {(group["cause"], group["counts"]) for group in result["groups"]} == {
        ("uid not known", False),
        ("unknown uid requested", True),
    }
    asked = {group["endpoint"] for group in result["groups"] if group["counts"]}
    assert "/parts/match" not in asked
    shares = {row["endpoint"]: row["share"] for row in result["rows"]}
    assert {share for endpoint, share in shares.items() if endpoint not in asked} == {1.0}
    assert shares["/parts/match"] == shares["/parts/{uid}"] == 1.0
    assert any("uids are not known" in note for note in result["notes"])
    assert result["failures"] == []


@pytest.mark.parametrize("turn", range(TURNS))
async def test_learned_uid_table_makes_undisturbed_services_equivalent(
    makes: Makes, compares: Compares, turn: int
) -> None:
    requests = (await makes(REQUESTS))[turn::TURNS]
    result = await compares(requests)
    assert told(result) == set()
    assert (result["verdict"], result["code"], result["failures"]) == ("ready", 0, [])
    assert sum(row["requests"] for row in result["rows"]) == REQUESTS // TURNS
    assert {row["endpoint"] for row in result["rows"]} == {request.endpoint for request in requests}
    assert {row["share"] for row in result["rows"]} == {1.0}
