"""/parts/search filtered by MPN, against the sandbox: exact, complete over pages, at the cost of all of its parts."""

from typing import Any
from urllib.parse import quote

from support import running_proxy
from together.environment import ProxyEnvironment

MPN = "filter[fields][mpn][]"
NUMBER = "SN74S74N"


async def search(environment: ProxyEnvironment, **parameters: Any) -> Any:
    query = "&".join(f"{name}={quote(str(value))}" for name, value in parameters.items())
    response = await environment.proxy.get(f"/v3/parts/search?apikey={running_proxy.KEY}&{query}")
    assert response.status == 200, await response.text()
    return await response.json()


def found(reply: Any) -> list[tuple[str, str]]:
    return [(result["item"]["mpn"], result["item"]["brand"]["name"]) for result in reply["results"]]


async def by_match(environment: ProxyEnvironment, number: str) -> set[str]:
    """The uids of all parts that have this number to the letter, by the other endpoint."""
    [result] = await environment.results({"mpn": number, "limit": 20}, more="&exact_only=1")
    return {item["uid"] for item in result["items"] if item["mpn"] == number}


async def test_mpn_filter_finds_all_parts_of_the_mpn_and_no_other(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **{MPN: NUMBER, "limit": 100, "include[]": "specs"})
    assert {mpn for mpn, _ in found(reply)} == {NUMBER}
    assert {result["item"]["uid"] for result in reply["results"]} == await by_match(environment, NUMBER)
    assert reply["hits"] == len(reply["results"]) > 1
    assert reply["request"]["filter"]["fields"] == {"mpn": [NUMBER]}
    assert all(result["snippet"] for result in reply["results"])
    assert all("specs" in result["item"] for result in reply["results"])


async def test_mpn_filter_pages_are_consecutive_and_complete(environment: ProxyEnvironment) -> None:
    whole = await search(environment, **{MPN: NUMBER})
    pages = [
        await search(environment, **{MPN: NUMBER, "start": start, "limit": 1}) for start in range(whole["hits"] + 1)
    ]
    assert [page["hits"] for page in pages] == [whole["hits"]] * len(pages)
    assert [found(page) for page in pages] == [[each] for each in found(whole)] + [[]]
    assert environment.billed_parts == whole["hits"]
