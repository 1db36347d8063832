"""Tests of a comparison of generated requests on all endpoints: only unrecorded uids differ.

The old service computes uids itself; with a table learned from its responses there is no difference. Of 1 000 requests
those are compared that have every pair of features that the 1 000 have.
"""

import pytest
from together.environment import ProxyEnvironment
from together.tools.compare import generated_requests
from together.tools.compare.comparison import CompareRequests, GenerateRequests, reported_differences

from proxy.v3 import endpoints

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file
REQUESTS = 1_000


async def test_generated_requests_cover_every_endpoint(generate_requests: GenerateRequests) -> None:
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    chosen = generated_requests.covering_pairs(await generate_requests(REQUESTS))
    assert {request.endpoint for request in chosen} == known
    assert REQUESTS / 5 < len(chosen) < REQUESTS / 2


async def test_without_disturbances_only_unrecorded_uids_differ(
    environment: ProxyEnvironment, generate_requests: GenerateRequests, compare: CompareRequests
) -> None:
    requests = await generate_requests(60)
    result = await compare(requests, proxy=environment.proxy.url)
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


async def test_learned_uid_table_makes_undisturbed_services_equivalent(
    generate_requests: GenerateRequests, compare: CompareRequests
) -> None:
    requests = generated_requests.covering_pairs(await generate_requests(REQUESTS))
    result = await compare(requests)
    assert reported_differences(result) == set()
    assert (result["verdict"], result["code"], result["failures"]) == ("ready", 0, [])
    assert sum(row["requests"] for row in result["rows"]) == len(requests)
    assert {row["endpoint"] for row in result["rows"]} == {request.endpoint for request in requests}
    assert {row["share"] for row in result["rows"]} == {1.0}
