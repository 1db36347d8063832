"""Tests of merged operations: their results are those of each operation alone."""

import json
from typing import Any

import msgspec
import pytest

from proxy import errors, model
from proxy.kit import shipped, slices
from proxy.mapping import loader
from proxy.planning import match, projection_cache
from proxy.planning.operations import OperationResult, PlannedOperation

MARKET = model.MappingContext("US", "USD")


def part(mpn: str) -> dict[str, Any]:
    return {"mpn": mpn, "akaMpns": [], "v3uid": "5ec397c9af088104"}


@pytest.fixture(scope="module")
def compiled() -> projection_cache.CompiledMatch:
    projection = model.Projection(show=frozenset({("mpn",), ("uid",)}))
    return projection_cache.ProjectionCache(loader.load(shipped.path("mappings"))).match(projection)


def operation(compiled: projection_cache.CompiledMatch, mpn: str, single: match.SingleQuery) -> PlannedOperation:
    request = model.PartsMatchRequest((model.PartsMatchQuery(mpn=mpn),))
    (planned,) = match.MatchPlan(request, compiled.documents, compiled.part.decode, MARKET, single).operations
    return planned


def results(planned: PlannedOperation, data: Any) -> list[OperationResult]:
    return planned.read(planned.operation.decode(json.dumps({"data": data}).encode()).data)


def search(*mpns: str) -> Any:
    return {"hits": len(mpns), "results": [{"akaMpn": None, "part": part(mpn)} for mpn in mpns]}


def match_of(*mpns: str) -> Any:
    return {"hits": len(mpns), "error": None, "parts": [part(mpn) for mpn in mpns]}


def decoded(operation: PlannedOperation, results: list[OperationResult]) -> list[OperationResult]:
    return slices.run_to_end(operation.decoded(results))


@pytest.mark.parametrize("single", ["supSearchMpn", "supMultiMatch"])
def test_results_of_a_merged_operation_are_those_of_each_alone(
    compiled: projection_cache.CompiledMatch, single: match.SingleQuery
) -> None:
    first, second = operation(compiled, "AB1", single), operation(compiled, "ÄB-2", single)
    if single == "supSearchMpn":
        alone = [{"supSearchMpn": search("AB1", "AB-1")}, {"supSearchMpn": search("ÄB-2")}]
        together = {"a0": search("AB1", "AB-1"), "a1": search("ÄB-2")}
    else:
        alone = [{"supMultiMatch": [match_of("AB1", "AB-1")]}, {"supMultiMatch": [match_of("ÄB-2")]}]
        together = {"supMultiMatch": [match_of("AB1", "AB-1"), match_of("ÄB-2")]}
    expected = [*decoded(first, results(first, alone[0])), *decoded(second, results(second, alone[1]))]
    merged = results(first.merged([second]), together)
    assert [each.parts for each in merged] == [[], []]
    of_each = [*decoded(first, merged[:1]), *decoded(second, merged[1:])]
    assert of_each == expected
    assert [msgspec.json.decode(record) for record in of_each[1].records] == [part("ÄB-2")]


def test_invalid_part_fails_its_own_operation_as_possibly_billed(compiled: projection_cache.CompiledMatch) -> None:
    first, second = operation(compiled, "A", "supSearchMpn"), operation(compiled, "B", "supSearchMpn")
    invalid = {"hits": 1, "results": [{"akaMpn": None, "part": {"mpn": 5}}]}
    merged = results(first.merged([second]), {"a0": invalid, "a1": search("B")})
    with pytest.raises(errors.UpstreamUnreadable) as found:
        decoded(first, merged[:1])
    assert found.value.may_be_billed
    assert [each.mpn for each in decoded(second, merged[1:])[0].parts] == ["B"]


def test_large_results_are_decoded_in_slices(compiled: projection_cache.CompiledMatch) -> None:
    planned = operation(compiled, "A", "supMultiMatch")
    record = json.dumps(part("A") | {"text": "x" * (slices.SLICE_BYTES // 2)}).encode()
    large = [OperationResult([], 3, records=[record] * 3) for _ in range(4)]
    assert len(list(planned.decoded(large))) == len(large) - 1
    assert [len(each.parts) for each in decoded(planned, large)] == [3] * 4
