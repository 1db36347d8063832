"""Objects of v3 on the core: each part is read on its own, and metadata say what a request has cost."""

import asyncio
import json
from typing import Any

from service.next.world import ALL, HOUR, SECONDS, Runs, Upstream, World, client, uid

from proxy.mapping.tables import Tables
from proxy.model import PartsMatchQuery, PartsMatchRequest, Projection
from proxy.next.free_operations import FreeOperations
from proxy.next.response_metadata import ResponseMetadata
from proxy.next.v3_objects import GatewayRequest, Rendered, V3Objects
from proxy.planning.listing import Listing
from proxy.telemetry.metrics import Metrics
from proxy.upstream.auth.identity import Credentials

SHOWN = Projection(show=frozenset({("uid",), ("mpn",)}), features=frozenset(ALL))


class Parts(Upstream):
    """Upstream whose parts have a number; those in `faulty` one that is none."""

    def _part(self, uid: str, scope: str) -> dict[str, Any]:
        part = super()._part(uid, scope)
        return part | {"mpn": 5 if uid in self.faulty else "N1", "akaMpns": [], "specs": None}

    def _response(self, request: Any, credentials: Credentials) -> Any:
        body, found = super()._response(request, credentials)
        return {"data": body["data"]}, found  # no errors beside


class NoLists:
    async def listing(self, name: str, credentials: Credentials, since: float) -> Listing:
        raise NotImplementedError

    async def specs(self, credentials: Credentials, since: float) -> Tables:
        raise NotImplementedError


def objects(world: World) -> V3Objects:
    return V3Objects(
        world.process(),
        FreeOperations(world.upstream.send, world.clock, SECONDS),
        world.projections,
        lists=NoLists(),
        single_query="supMultiMatch",
        seconds=SECONDS,
        metrics=Metrics(world.clock),
    )


def request(world: World, projection: Projection = SHOWN) -> GatewayRequest:
    return GatewayRequest.of(client(), projection, {}, ResponseMetadata(world.clock.monotonic()))


def matched(number: str = "N1") -> PartsMatchRequest:
    return PartsMatchRequest((PartsMatchQuery(mpn=number),))


def uids(result: Rendered) -> list[str]:
    return [json.loads(bytes(item))["uid"] for item in result.items]


def test_a_part_that_cannot_be_read_fails_alone_and_is_named(runs: Runs) -> None:
    text = f"the upstream sent part {uid(2)} in a form that cannot be read: Expected `str`, got `int` - at `$.mpn`"

    async def main(world: World) -> None:
        for cost in (3, 0):
            asked = request(world)
            [result] = await objects(world).match_parts(asked, matched())
            assert (uids(result), result.error, asked.metadata.cost) == ([uid(1), uid(3)], text, cost)
        found = await objects(world).parts(request(world), [uid(1), uid(2)])
        assert list(found) == [uid(1)]

    runs(Parts({"N1": [uid(1), uid(2), uid(3)]}, faulty=frozenset({uid(2)})), main)


def test_metadata_say_what_a_request_has_cost_and_how_old_its_oldest_result_is(runs: Runs) -> None:
    async def main(world: World) -> None:
        first = request(world)
        await objects(world).match_parts(first, matched())
        assert (first.metadata.cost, first.metadata.source, first.metadata.results) == (1, "miss", 1)
        assert first.metadata.until - first.metadata.stored == 23.5 * HOUR
        fetched = world.clock.monotonic()
        await asyncio.sleep(HOUR)
        again = request(world)
        await objects(world).match_parts(again, matched("n1 "))
        assert (again.metadata.cost, again.metadata.source) == (0, "hit")
        assert abs(again.metadata.stored - fetched) < 1

    runs(Parts({"N1": [uid(1)]}), main)
