"""octopart 0.0.24, `octopart.search`: pages, orders, both kinds of filters, and unsupported parameters."""

from typing import Any

import octopart
import pytest
from octopart.exceptions import OctopartError
from octopart.models import Part

pytestmark = [
    pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning"),
    pytest.mark.usefixtures("octopart_defaults"),
]


def found(query: str, **more: Any) -> list[Part]:
    parts: list[Part] = octopart.search(query, **{"limit": 100, **more}).parts
    return parts


def specs(parts: list[Part], key: str) -> set[str]:
    assert parts
    return {part.specs[key].value for part in parts}


def test_free_text_finds_parts_by_relevance() -> None:
    result = octopart.search("SN74S74N")
    assert [part.mpn for part in result.parts] == ["SN74S74N"] * 4 + ["SN74S74NE4", "SN74S74N3"]
    assert repr(result) == "<PartsSearchResult: hits=6>"
    assert all(offer.seller and isinstance(offer.prices, dict) for part in result.parts for offer in part.offers)


def test_start_and_limit_select_a_page() -> None:
    whole = [part.uid for part in found("resistor", limit=20, show=["uid"])]
    assert [part.uid for part in found("resistor", start=5, limit=10, show=["uid"])] == whole[5:15]


def test_sortby_orders_both_ways() -> None:
    rising, falling = (
        [part.mpn for part in found("flip-flop", sortby=[("mpn", order), ("score", "desc")], show=["mpn"])]
        for order in ("asc", "desc")
    )
    assert rising == sorted(rising)
    assert falling == rising[::-1]
    assert len(rising) > 3


def test_a_filter_on_the_brand_keeps_its_parts() -> None:
    kept = found("flip-flop", filter_fields={"brand.name": "Texas Instruments"})
    assert {part.manufacturer for part in kept} == {"Texas Instruments"}
    assert {part.manufacturer for part in found("flip-flop")} > {"Texas Instruments"}


def test_a_filter_on_the_seller_keeps_its_parts() -> None:
    parts = found("flip-flop", filter_fields={"offers.seller.name": "Newark"})
    assert parts
    assert all("Newark" in {offer.seller for offer in part.offers} for part in parts)
    assert len(parts) < len(found("flip-flop", show=["uid"]))


def test_a_filter_on_the_category_takes_its_v3_uid() -> None:
    [part] = found("SN74S74NE4", limit=1, include_category_uids=True)
    uid = part.category_uids[-1]
    parts = found("", filter_fields={"category_uids": uid}, include_category_uids=True, hide=["offers"])
    assert part.uid in {each.uid for each in parts}
    assert all(uid in each.category_uids for each in parts)


def test_a_filter_on_a_spec_takes_its_value() -> None:
    parts = found("resistor", filter_fields={"specs.resistance.value": "10000"}, include_specs=True, hide=["offers"])
    assert specs(parts, "resistance") == {"10000.0"}


def test_a_filter_query_takes_a_range() -> None:
    ohms = {"specs.resistance.value": "[1000 TO 10000]"}
    parts = found("resistor", filter_queries=ohms, include_specs=True, hide=["offers"])
    values = {float(value) for value in specs(parts, "resistance")}
    assert {1000.0, 10000.0} < values
    assert all(1000 <= value <= 10000 for value in values)


def test_a_filter_query_takes_a_group_of_values() -> None:
    packages = {"specs.case_package.value": "(0402 or 0805)"}
    parts = found("resistor", filter_queries=packages, include_specs=True, hide=["offers"])
    assert specs(parts, "case_package") == {"0402", "0805"}


def test_search_can_be_limited_to_parts_in_stock() -> None:
    parts = found("flip-flop", filter_queries={"avg_avail": "[1 TO *]"})
    assert parts
    assert all(any(offer.in_stock_quantity > 0 for offer in part.offers) for part in parts)
    assert len(parts) < len(found("flip-flop", show=["uid"]))


def test_a_part_number_is_a_filter() -> None:
    parts = found("", filter_fields={"mpn": "SN74S74N"})
    assert [part.mpn for part in parts] == ["SN74S74N"] * 4


def test_include_show_and_hide_are_those_of_match() -> None:
    [part] = found("SN74S74N", limit=1, include_datasheets=True, include_specs=True, hide=["offers"])
    assert part.datasheets
    assert part.specs
    # The client gives the fields of a response by this attribute only.
    assert "offers" not in part._part
    assert found("SN74S74N", limit=1, show=["mpn"])[0]._part == {"mpn": "SN74S74N"}


@pytest.mark.usefixtures("octopart_hurries")
@pytest.mark.parametrize(
    "asked, able",
    [({"sortby": [("flavor", "asc")]}, "sort by 'flavor'; it can by"), ({"filter_fields": {"uid": "X"}}, "it can by")],
    ids=["sortby", "filter"],
)
def test_an_unsupported_parameter_gets_400_with_the_supported_ones(asked: Any, able: str) -> None:
    with pytest.raises(OctopartError, match="HTTPError 400") as refused:
        octopart.search("flip-flop", **asked)
    assert able in refused.value.__cause__.response.json()["message"]
