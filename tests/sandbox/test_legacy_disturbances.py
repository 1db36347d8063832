"""Disturbances of the old service: each one's effect, and no other effects."""

from typing import Any

import pytest
from sandbox.legacy_client import LegacyClient, StartLegacy
from support import cases

from nexar_sandbox.legacy_v3 import disturbances

PART = "/parts/5ec397c9af088104"
SEARCH = "/parts/search?q=resistor&limit=100"


def _without(parts: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """The parts, their offers without these fields."""
    return [
        {**part, "offers": [{k: v for k, v in offer.items() if k not in names} for offer in part["offers"]]}
        for part in parts
    ]


async def _parts(legacy: LegacyClient) -> list[dict[str, Any]]:
    return [result["item"] for result in (await legacy.read(SEARCH))["results"]]


def _offers(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [offer for part in parts for offer in part["offers"]]


@pytest.mark.parametrize(
    "field, empty", [("offers.packaging", None), ("offers.prices", {}), ("manufacturer", {}), ("mpn", None)]
)
async def test_a_field_flaps_between_requests(legacy: LegacyClient, field: str, empty: object) -> None:
    *way, name = field.split(".")

    def values(parts: list[dict[str, Any]]) -> list[Any]:
        return [each[name] for each in (_offers(parts) if way else parts)]

    def others(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return _without(parts, name) if way else [{k: v for k, v in part.items() if k != name} for part in parts]

    undisturbed = await _parts(legacy)
    before = values(undisturbed)
    legacy.sandbox.legacy.disturbances.replace([disturbances.Flapping(share=0.5, field=field)])
    flapping = await _parts(legacy), await _parts(legacy)
    assert others(flapping[0]) == others(flapping[1]) == others(undisturbed)
    first, second = values(flapping[0]), values(flapping[1])
    for found in (first, second):
        assert all(value in (empty, was) for value, was in zip(found, before, strict=True))
    assert [empty] * len(first) != first != before
    assert first != second


async def test_missing_parts_are_missing_in_every_endpoint(legacy: LegacyClient) -> None:
    before = await legacy.read(SEARCH)
    legacy.sandbox.legacy.disturbances.replace([disturbances.FewerParts(share=0.3)])
    after = await legacy.read(SEARCH)
    gone = {each["item"]["uid"] for each in before["results"]} - {each["item"]["uid"] for each in after["results"]}
    assert gone
    assert after["hits"] == before["hits"] - len(gone)
    some = gone.pop()
    assert (await legacy.get(f"/parts/{some}")).status == 404
    assert await legacy.read(f"/parts/get_multi?uid[]={some}") == {}
    mpn = next(each["item"]["mpn"] for each in before["results"] if each["item"]["uid"] == some)
    assert some not in {item["uid"] for item in await legacy.items({"mpn": mpn, "limit": 20})}
    assert [each for each in before["results"] if each in after["results"]] == after["results"]


@pytest.mark.parametrize("body, kind", [("html", "text/html; charset=utf-8"), ("json", "application/json")])
async def test_the_declared_share_of_requests_fails(start_legacy: StartLegacy, body: Any, kind: str) -> None:
    async with start_legacy(disturbances=(disturbances.Errors(share=0.4, status=502, body=body),)) as old:
        replies = [await old.get(PART) for _ in range(30)]
        failed = [response for response in replies if response.status != 200]
        assert {(response.status, response.headers["Content-Type"]) for response in failed} == {(502, kind)}
        assert 0 < len(failed) < 30
        others = [response.json for response in replies if response.status == 200]
        assert others == [others[0]] * len(others)
        assert old.sandbox.journal.totals.faults == {"errors": len(failed)}
        if body == "json":
            assert failed[0].json["__class__"] == "ServerErrorResponse"


@cases.parametrize("text, complaint")
def test_an_invalid_disturbance_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the text is what is tested)
        disturbances.PARSER.parse(text)
    assert complaint in str(caught.value)


async def test_disturbances_are_declared_listed_and_removed_over_http(legacy: LegacyClient) -> None:
    url = f"{legacy.sandbox.url}/admin/legacy"
    drift = {"kind": "price-drift", "share": 0.5, "percent": 5.0, "seconds": 60}
    async with legacy.session.put(url, json=["price-drift share=0.5", {"kind": "fewer-parts"}]) as response:
        assert (await response.json())["disturbances"] == [drift, {"kind": "fewer-parts", "share": 0.1}]
    for body, complaint in (
        (b"[", "the body is not JSON: "),
        (b'["flapping field=flavor"]', "parts have no field flavor"),
        (b'["slowness", "slowness"]', "only one is allowed"),
        (b'{"kind": "slowness"}', "disturbances must be a list, not "),
    ):
        async with legacy.session.put(url, data=body) as response:
            assert response.status == 400
            assert complaint in (await response.json())["error"]
    async with legacy.session.get(url) as response:
        assert len((await response.json())["disturbances"]) == 2
    async with legacy.session.delete(url) as response:
        assert (await response.json())["disturbances"] == []
    assert legacy.sandbox.legacy.disturbances.declared == ()
