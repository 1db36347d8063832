"""Tests of parts by uid against the sandbox: redirected, missing, and several (contract v3-rest.md §1)."""

from typing import Any

from support import running_proxy
from together.environment import ProxyEnvironment

OLD, NEW = "103cdb613d20cffb", "bd4d768f82c5628a"  # the documentation's own example, and what it led to
NOBODY = "ffffffffffffffff"


async def get(environment: ProxyEnvironment, target: str, status: int = 200) -> Any:
    response = await environment.proxy.get(f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}")
    assert response.status == status, await response.text()
    return await response.json()


async def uids(environment: ProxyEnvironment, count: int) -> list[str]:
    found = await get(environment, f"/v3/parts/search?limit={count}&show[]=uid")
    return [result["item"]["uid"] for result in found["results"]]


async def test_redirected_uid_returns_the_replacement_part(environment: ProxyEnvironment) -> None:
    by_old, by_new = [await get(environment, f"/v3/parts/{uid}") for uid in (OLD, NEW)]
    assert (by_old["uid"], by_old["redirected_uids"]) == (NEW, [OLD])
    assert (by_new["uid"], by_new["redirected_uids"]) == (NEW, [])
    assert {**by_old, "redirected_uids": []} == by_new


async def test_get_multi_is_keyed_by_requested_uid_without_missing_parts(environment: ProxyEnvironment) -> None:
    found = await get(
        environment, f"/v3/parts/get_multi?uid[]={OLD}&uid[]={NOBODY}&uid[]={NEW}&uid[]=no-uid&hide[]=offers"
    )
    assert list(found) == [OLD, NEW]
    assert [part["uid"] for part in found.values()] == [NEW, NEW]
    assert [part["redirected_uids"] for part in found.values()] == [[OLD], []]


async def test_hundred_parts_are_one_upstream_request(environment: ProxyEnvironment) -> None:
    wanted = await uids(environment, 100)
    before = len(environment.sent_variables)
    found = await get(
        environment, "/v3/parts/get_multi?show[]=uid&" + "&".join(f"uid[]={uid}" for uid in reversed(wanted))
    )
    assert list(found) == wanted[::-1]
    assert all(part == {"uid": uid} for uid, part in found.items())
    assert len(environment.sent_variables) == before + 1


async def test_more_than_a_hundred_distinct_uids_are_refused(environment: ProxyEnvironment) -> None:
    many = "&".join(f"uid[]={number:016x}" for number in range(101))
    same = "&".join(f"uid[]={NEW}" for _ in range(101))
    assert "uid[]: at most 100" in (await get(environment, f"/v3/parts/get_multi?{many}", 400))["message"]
    assert list(await get(environment, f"/v3/parts/get_multi?{same}&show[]=uid")) == [NEW]


async def test_missing_part_is_a_404_and_invalid_uid_is_not_sent(environment: ProxyEnvironment) -> None:
    for uid in (NOBODY, "9336958", NEW.upper(), "%E2%82%AC", NEW + "0"):
        reply = await get(environment, f"/v3/parts/{uid}", 404)
        assert reply["__class__"] == "ClientErrorResponse"
        assert "there is no part with the uid" in reply["message"]
    assert [variables["ids"] for variables in environment.sent_variables] == [[NOBODY]]


async def test_part_is_equal_in_every_endpoint(environment: ProxyEnvironment) -> None:
    (found,) = (await get(environment, "/v3/parts/search?q=SN74S74N&limit=1&include[]=specs"))["results"]
    uid = found["item"]["uid"]
    assert await get(environment, f"/v3/parts/{uid}?include[]=specs") == found["item"]
    assert await get(environment, f"/api/v3/parts/get_multi/?uid[]={uid}&include=specs") == {uid: found["item"]}


async def test_part_has_the_offers_of_the_configured_market(start: Any) -> None:
    async with start(application={"country": "GB", "currency": "GBP"}) as environment:
        await get(environment, f"/v3/parts/{NEW}")
        assert environment.sent_variables == [{"ids": [NEW], "country": "GB", "currency": "GBP"}]
