"""Objects of v3 on the core: each part is read on its own, and metadata say what a request has cost."""

import asyncio
import dataclasses
import json
from typing import Any

import pytest
from msgspec.structs import replace
from service.gateway.world import ALL, HOUR, SECONDS, Upstream, World, client, uid

from proxy import errors
from proxy.gateway.free_operations import FreeOperations
from proxy.gateway.v3_objects import GatewayRequest, Rendered, V3Objects
from proxy.metrics import Metrics
from proxy.model import EncodedOperation, FacetField, PartsMatchQuery, PartsMatchRequest, Projection, SearchRequest
from proxy.upstream.tokens import Credentials

SHOWN = Projection(show=frozenset({("uid",), ("mpn",)}), features=frozenset(ALL))


class Parts(Upstream):
    """Upstream whose parts have a number; those in `faulty` one that is none."""

    def _part(self, uid: str, scope: str) -> dict[str, Any]:
        part = super()._part(uid, scope)
        return part | {
            "mpn": 5 if uid in self.faulty else "N1",
            "akaMpns": [],
            "shortDescription": "a part",
            "descriptions": [{"text": "a part", "creditString": "Acme"}],
            "specs": None,
        }

    def _response(self, request: Any, credentials: Credentials) -> Any:
        body, found = super()._response(request, credentials)
        if "supSearch" in body["data"]:
            body["data"]["supSearch"]["manufacturerAgg"] = [{"company": {"id": "7", "name": "AMD"}, "count": 3}]
        body["errors"] = [each for each in body.get("errors", ()) if each["path"][-1] != "sellers"]
        return body, found


@pytest.fixture
def upstream() -> Parts:
    return Parts({f"N{size}": [uid(n + 1) for n in range(size)] for size in (1, 2, 3)})


def objects(world: World) -> V3Objects:
    return V3Objects(
        world.process(),
        FreeOperations(world.upstream.send, world.clock, SECONDS, {}, {}),
        world.projections,
        single_query="supMultiMatch",
        metrics=Metrics(world.clock),
    )


def request(world: World, projection: Projection = SHOWN) -> GatewayRequest:
    return GatewayRequest(caller := client(), projection, caller.application.context, world.metadata())


def matched(number: str = "N1") -> PartsMatchRequest:
    return PartsMatchRequest((PartsMatchQuery(mpn=number),))


def uids(result: Rendered) -> list[str]:
    return [json.loads(bytes(item))["uid"] for item in result.items]


async def test_a_part_that_cannot_be_read_fails_alone_and_is_named(world: World) -> None:
    world.upstream.lists["N1"], world.upstream.faulty = [uid(1), uid(2), uid(3)], frozenset({uid(2)})
    text = f"the upstream sent part {uid(2)} in a form that cannot be read: Expected `str`, got `int` - at `$.mpn`"
    for cost in (3, 0):
        asked = request(world)
        [result] = await objects(world).match_parts(asked, matched())
        assert (uids(result), result.error, asked.metadata.cost) == ([uid(1), uid(3)], text, cost)
    found = await objects(world).parts(request(world), [uid(1), uid(2)])
    assert list(found) == [uid(1)]


async def test_metadata_say_what_a_request_has_cost_and_how_old_its_oldest_result_is(world: World) -> None:
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


async def test_a_search_is_paid_for_once_whatever_is_counted_beside_it(world: World) -> None:
    served = objects(world)
    facet = FacetField("brand.name", include=True)
    for parameters, cost, operations in (
        (SearchRequest(q="N3", limit=2), 2, 1),
        (SearchRequest(q="N3", limit=2, facets=(facet,)), 0, 2),
        (SearchRequest(q="N3", limit=1, facets=(facet,)), 0, 2),  # what is counted is kept, too
    ):
        asked = request(world)
        result = await served.search_parts(asked, parameters)
        assert (uids(result), result.hits) == ([uid(1), uid(2)][: parameters.limit], 3)
        assert result.details.snippets == ["a part"] * parameters.limit
        assert (asked.metadata.cost, len(world.upstream.operations)) == (cost, operations)
    counted = result.details.facet_results["fields"]["brand.name"]["facets"]
    assert counted == [{"value": "AMD", "count": 3}]
    assert world.upstream.operations[1]["variables"]["limit"] == 0


async def test_a_part_that_a_search_cannot_read_takes_its_snippet_with_it(world: World) -> None:
    world.upstream.faulty = frozenset({uid(2)})
    result = await objects(world).search_parts(request(world), SearchRequest(q="N2"))
    assert (uids(result), result.hits, result.details.snippets) == ([uid(1)], 2, ["a part"])
    with pytest.raises(errors.UpstreamUnreadable, match=f"part {uid(2)} in a form that cannot be read"):
        await objects(world).search_parts(request(world), SearchRequest(q="N2", start=1))


async def test_a_search_by_number_shares_its_parts_with_a_match(world: World) -> None:
    served = objects(world)
    by_number = SearchRequest(filters=(("mpn", ("N1",)),))
    in_stock = SearchRequest(filters=(("mpn", ("N1",)),), filter_queries=("avg_avail:[1 TO *]",))
    for parameters, cost in ((by_number, 1), (in_stock, 1), (by_number, 0), (in_stock, 0)):
        asked = request(world)
        assert uids(await served.search_parts(asked, parameters)) == [uid(1)]
        assert asked.metadata.cost == cost
    matched_ = request(world)
    await served.match_parts(matched_, matched())
    assert matched_.metadata.cost == 0
    assert [each["variables"].get("options") for each in world.upstream.operations] == [
        None,
        {"requireStockAvailable": True},
    ]


async def test_a_feature_that_turns_out_to_be_lacking_is_named(world: World) -> None:
    specs = Projection(frozenset({"specs"}), frozenset({("uid",), ("specs",)}), features=frozenset(ALL))
    world.upstream.lacking = frozenset({"TECH_SPECS"})
    asked = request(world, specs)
    [result] = await objects(world).match_parts(asked, matched())
    assert json.loads(bytes(result.items[0])) == {"uid": uid(1), "specs": {}}
    assert asked.metadata.lacking == {"TECH_SPECS"}


@pytest.mark.parametrize("hangs", [True, False])
async def test_a_response_with_sources_does_not_wait_for_sellers_that_do_not_come(world: World, hangs: bool) -> None:
    async def send(operation: EncodedOperation, credentials: Credentials, seconds: float) -> Any:
        assert operation.name == "supSellers"
        await asyncio.sleep(seconds if hangs else 0)
        raise errors.UpstreamUnreachable("did not answer in time", may_be_billed=False)

    free = FreeOperations(send, world.clock, SECONDS, world.projections.list_definitions(), {})
    served = dataclasses.replace(objects(world), free=free)
    shown = replace(SHOWN, include=frozenset({"descriptions"}), show=frozenset({("uid",), ("descriptions",)}))
    for _ in range(2):
        since = world.clock.monotonic()
        [result] = await served.match_parts(request(world, shown), matched())
        assert world.clock.monotonic() - since < 3
        [description] = json.loads(bytes(result.items[0]))["descriptions"]
        assert description["attribution"]["sources"][0]["name"] == "Acme"
