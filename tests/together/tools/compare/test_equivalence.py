"""Tests of a comparison of requests on all endpoints: only unrecorded uids differ.

The old service computes uids itself; with a table learned from its responses there is no difference.
"""

import pytest
from together.environment import ProxyEnvironment
from together.tools.compare.comparison import REQUESTS, CompareRequests, reported_differences

from proxy.v3 import endpoints

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file


async def test_requests_cover_every_endpoint() -> None:
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    assert {request.endpoint for request in REQUESTS} == known


async def test_without_disturbances_only_unrecorded_uids_differ(
    environment: ProxyEnvironment, compare: CompareRequests
) -> None:
    result = await compare(REQUESTS[:30], proxy=environment.proxy.url)
    assert {group["kind"] for group in result["groups"]} == {"uid not known"}
    assert {(group["cause"], group["counts"]) for group in result["groups"]} == {
        ("uid not known", False),
        ("unknown uid requested", True),
    }
    asked = {group["endpoint"] for group in result["groups"] if group["counts"]}
    assert "/parts/match" not in asked
    differing = {row["endpoint"] for row in result["rows"] if row["equivalent"] < row["requests"]}
    assert differing <= asked - {"/parts/match", "/parts/{uid}"}
    assert any("uids are not known" in note for note in result["notes"])
    assert result["failures"] == []


async def test_learned_uid_table_makes_undisturbed_services_equivalent(
    compare: CompareRequests,
) -> None:
    result = await compare(REQUESTS)
    assert reported_differences(result) == set()
    assert (result["verdict"], result["code"], result["failures"]) == ("ready", 0, [])
    assert sum(row["requests"] for row in result["rows"]) == len(REQUESTS)
    assert {row["endpoint"] for row in result["rows"]} == {request.endpoint for request in REQUESTS}
    assert all(row["equivalent"] == row["requests"] for row in result["rows"])
