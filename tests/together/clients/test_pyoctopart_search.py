"""pyoctopart 0.6.0, `parts_search`, and the parameters of earlier calls that it sends along."""

import pytest
from pyoctopart.exceptions import OctopartRangeArgumentError
from pyoctopart.octopart import Octopart
from together.clients import services

pytestmark = services.both


def test_search_returns_the_response_and_its_results(pyoctopart_client: Octopart) -> None:
    reply, results = pyoctopart_client.parts_search("SN74S74N", limit=4)
    assert reply["__class__"] == "SearchResponse"
    assert (reply["hits"], reply["results"]) == (6, results)
    assert [result["item"]["mpn"] for result in results] == ["SN74S74N"] * 4
    assert {result["__class__"] for result in results} == {"SearchResult"}
    assert all(isinstance(result["snippet"], str) for result in results)
    assert (reply["user_country"], reply["user_currency"]) == ("US", "USD")


def test_pages_follow_each_other(pyoctopart_client: Octopart) -> None:
    pages = [pyoctopart_client.parts_search("resistor", start=start, limit=10)[1] for start in (0, 10, 20)]
    uids = [result["item"]["uid"] for page in pages for result in page]
    assert len(set(uids)) == len(uids) == 30


@pytest.mark.parametrize("start, limit", [(0, 0), (0, 100), (1000, 1)])
def test_range_bounds_of_the_client_are_accepted_by_the_proxy(
    pyoctopart_client: Octopart, start: int, limit: int
) -> None:
    reply, results = pyoctopart_client.parts_search("resistor", start=start, limit=limit)
    assert (reply["request"]["start"], reply["request"]["limit"]) == (start, limit)
    assert len(results) == min(limit, max(0, reply["hits"] - start))


def test_values_beyond_the_ranges_are_not_sent(pyoctopart_client: Octopart) -> None:
    with pytest.raises(OctopartRangeArgumentError):
        pyoctopart_client.parts_search("resistor", limit=101)


def test_a_search_without_hits_has_no_results(pyoctopart_client: Octopart) -> None:
    reply, results = pyoctopart_client.parts_search("nosuchword")
    assert (reply["hits"], results) == (0, [])


def test_parameters_of_an_earlier_request_do_not_affect_a_search(pyoctopart_client: Octopart) -> None:
    alone = pyoctopart_client.parts_search("resistor", limit=2)[1]
    pyoctopart_client.bom_match(["any"])  # v2's, and full of parameters that v3 never had
    assert "optimize.return.stubs" in Octopart._get_data.__defaults__[0]
    assert pyoctopart_client.parts_search("resistor", limit=2)[1] == alone


def test_an_unknown_part_is_none_after_a_search(pyoctopart_client: Octopart) -> None:
    pyoctopart_client.parts_search("resistor", limit=2)
    assert pyoctopart_client.parts_get(1234567890123456) is None  # sends q, start and limit, gets a 404
