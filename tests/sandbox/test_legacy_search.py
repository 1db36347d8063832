"""The old service's /parts/search: filters, filter queries, facets, statistics, drilldown and order (§1.1, §3.6)."""

import statistics
from typing import Any
from urllib.parse import quote

import pytest
from sandbox.legacy_client import LegacyClient

RESISTANCE = "specs.resistance.value"


async def _items(legacy: LegacyClient, more: str) -> list[dict[str, Any]]:
    body = await legacy.read(f"/parts/search?limit=100&include[]=specs&{more}")
    assert body["hits"] == len(body["results"]) or body["hits"] > 100
    return [result["item"] for result in body["results"]]


def _resistance(item: dict[str, Any]) -> float:
    return float(item["specs"]["resistance"]["value"][0])


async def test_a_search_response_has_request_facets_and_statistics(legacy: LegacyClient) -> None:
    body = await legacy.read("/parts/search?q=SN74S74N&limit=1")
    assert body["__class__"] == "SearchResponse"
    assert (body["user_country"], body["user_currency"]) == ("US", "USD")
    assert (body["facet_results"], body["stats_results"]) == ({"fields": {}, "queries": {}}, {})
    (result,) = body["results"]
    assert (result["__class__"], result["item"]["mpn"]) == ("SearchResult", "SN74S74N")
    assert "flip-flop" in result["snippet"]
    assert body["hits"] >= 4


@pytest.mark.parametrize("spelling", ["filter[fields][brand.name][]", "filter[fields][brand.name]"])
async def test_a_field_is_filtered_by_whole_values(legacy: LegacyClient, spelling: str) -> None:
    found = await _items(legacy, f"q=&{spelling}=Texas+Instruments")
    assert {item["brand"]["name"] for item in found} == {"Texas Instruments"}
    assert await _items(legacy, f"q=&{spelling}=Texas") == []
    assert {item["brand"]["name"] for item in await _items(legacy, f"q=&{spelling}=Texas*")} == {"Texas Instruments"}


async def test_values_of_a_field_are_combined_by_or_and_fields_by_and(legacy: LegacyClient) -> None:
    both = "filter[fields][manufacturer.name][]=Yageo&filter[fields][manufacturer.name][]=Vishay"
    found = await _items(legacy, f"q=resistor&{both}&filter[fields][specs.case_package.value][]=0603")
    assert {item["manufacturer"]["name"] for item in found} == {"Yageo", "Vishay"}
    assert {item["specs"]["case_package"]["value"][0] for item in found} == {"0603"}


async def test_uids_of_sellers_and_categories_filter(legacy: LegacyClient) -> None:
    resistors = await _items(legacy, "q=&filter[fields][category_uids][]=5c6a91606d4187ad&include[]=category_uids")
    assert resistors
    assert all("5c6a91606d4187ad" in item["category_uids"] for item in resistors)
    sold = await _items(legacy, "q=&filter[fields][offers.seller.uid][]=2c3be9310496fffc&filter[fields][mpn][]=1N4007")
    assert all("Digi-Key" in {offer["seller"]["name"] for offer in item["offers"]} for item in sold)
    assert {item["mpn"] for item in sold} == {"1N4007"}
    assert await _items(legacy, "q=&filter[fields][category_uids][]=ffffffffffffffff") == []


@pytest.mark.parametrize(
    "query, low, high",
    [
        (f"{RESISTANCE}:[1000 TO 10000]", 1000, 10_000),
        (f"{RESISTANCE}:[* TO 1e3]", 0, 1000),
        (f"{RESISTANCE}:[10000 TO *]", 10_000, 1e12),
        (f"{RESISTANCE}:(1000 or 10000)", 1000, 10_000),
        (f'{RESISTANCE}:[1 TO *] AND brand.name:(Vishay OR "Yageo")', 1, 1e12),
        (f"({RESISTANCE}:[1 TO 1e9]) {RESISTANCE}:[* TO 100]", 1, 100),
    ],
)
async def test_filter_queries_support_ranges_groups_and_several_fields(
    legacy: LegacyClient, query: str, low: float, high: float
) -> None:
    found = await _items(legacy, f"q=&filter[queries][]={quote(query)}")
    assert found
    assert all(low <= _resistance(item) <= high for item in found)
    if "brand" in query:
        assert {item["brand"]["name"] for item in found} <= {"Vishay", "Yageo"}


@pytest.mark.parametrize(
    "query",
    [
        "red", "flavor:red", f"{RESISTANCE}:{{1 TO 5}}", "NOT mpn:A", "mpn:A OR uid:B", "mpn:A~", "mpn:(",
        f"{RESISTANCE}:[a TO b]",
    ],
)  # fmt: skip
async def test_an_unsupported_filter_query_gets_400(legacy: LegacyClient, query: str) -> None:
    response = await legacy.get(f"/parts/search?q=&filter[queries][]={quote(query)}")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")


async def test_facets_count_all_hits_and_missing_values(legacy: LegacyClient) -> None:
    body = await legacy.read(
        "/parts/search?q=resistor&limit=100&include[]=specs"
        f"&facet[fields][brand.name][include]=1&facet[fields][{RESISTANCE}][include]=1"
        f"&facet[fields][{RESISTANCE}][limit]=100&facet[queries][]={RESISTANCE}:[1+TO+100]"
    )
    parts = [result["item"] for result in body["results"]]
    assert len(parts) == body["hits"]
    brands, values = (body["facet_results"]["fields"][name] for name in ("brand.name", RESISTANCE))
    names = [part["brand"]["name"] for part in parts]
    assert {each["value"]: each["count"] for each in brands["facets"]} == {
        name: names.count(name) for name in sorted(set(names), key=names.count, reverse=True)[:10]
    }
    with_one = [part["specs"]["resistance"]["value"][0] for part in parts if "resistance" in part["specs"]]
    assert {each["value"]: each["count"] for each in values["facets"]} == {one: with_one.count(one) for one in with_one}
    assert (brands["missing"], values["missing"]) == (0, len(parts) - len(with_one))
    few = [value for value in with_one if 1 <= float(value) <= 100]
    assert body["facet_results"]["queries"] == {f"{RESISTANCE}:[1 TO 100]": {"count": len(few)}}
    assert body["spec_metadata"]["resistance"]["unit"]["symbol"] == "Ω"


async def test_a_facet_has_pages_and_can_exclude_its_own_filter(legacy: LegacyClient) -> None:
    asked = "/parts/search?q=&limit=0&filter[fields][brand.name]=Yageo&facet[fields][brand.name][include]=true"
    narrow = (await legacy.read(asked))["facet_results"]["fields"]["brand.name"]["facets"]
    wide = (await legacy.read(f"{asked}&facet[fields][brand.name][exclude_filter]=1"))["facet_results"]["fields"]
    page = await legacy.read(
        f"{asked}&facet[fields][brand.name][exclude_filter]=1"
        "&facet[fields][brand.name][start]=2&facet[fields][brand.name][limit]=3"
    )
    assert [each["value"] for each in narrow] == ["Yageo"]
    assert len(wide["brand.name"]["facets"]) == 10
    assert page["facet_results"]["fields"]["brand.name"]["facets"] == wide["brand.name"]["facets"][2:5]


async def test_a_facet_counts_parts_without_a_seller_as_missing(legacy: LegacyClient) -> None:
    body = await legacy.read("/parts/search?q=&limit=0&facet[fields][offers.seller.name][include]=1")
    listed = await legacy.read("/parts/search?q=&limit=0&filter[fields][offers.seller.name]=*")
    assert body["facet_results"]["fields"]["offers.seller.name"]["missing"] == body["hits"] - listed["hits"] > 0


async def test_statistics_agree_with_the_values_of_the_hits(legacy: LegacyClient) -> None:
    body = await legacy.read(f"/parts/search?q=resistor&limit=100&include[]=specs&stats[{RESISTANCE}][include]=1")
    numbers = [_resistance(each["item"]) for each in body["results"] if "resistance" in each["item"]["specs"]]
    stats = body["stats_results"][RESISTANCE]
    assert (stats["count"], stats["min"], stats["max"]) == (len(numbers), min(numbers), max(numbers))
    assert stats["mean"] == pytest.approx(statistics.fmean(numbers))
    assert stats["stddev"] == pytest.approx(statistics.stdev(numbers))
    assert stats["missing"] == body["hits"] - len(numbers)


async def test_a_drilldown_ranks_specs_by_frequency(legacy: LegacyClient) -> None:
    body = await legacy.read(
        "/parts/search?q=resistor&spec_drilldown[include]=1&spec_drilldown[limit]=3&facet[fields][brand.name][include]=1"
    )
    facets = body["facet_results"]["fields"]
    ranks = {name: facet["spec_drilldown_rank"] for name, facet in facets.items()}
    assert ranks.pop("brand.name") is None
    assert sorted(ranks.values()) == [1, 2, 3]
    counted = {rank: body["hits"] - facets[name]["missing"] for name, rank in ranks.items()}  # a range counts both ends
    assert counted[1] >= counted[2] > 0
    assert set(body["spec_metadata"]) == {name.split(".")[1] for name in ranks}
    assert body["request"]["spec_drilldown"] == {"include": True, "exclude_filter": False, "limit": 3}


async def test_parts_are_ordered_by_prices_specs_and_several_fields(legacy: LegacyClient) -> None:
    up = [
        _resistance(item)
        for item in await _items(legacy, f"q=&sortby={RESISTANCE}+asc&filter[queries][]={RESISTANCE}:[*+TO+*]")
    ]
    assert up == sorted(up)
    by_two = await _items(legacy, "q=resistor&sortby=brand.name+desc,mpn+asc")
    keys = [(item["brand"]["name"], item["mpn"]) for item in by_two]
    assert [name for name, _ in keys] == sorted((name for name, _ in keys), key=str.casefold, reverse=True)
    for name in {name for name, _ in keys}:
        mpns = [mpn for brand, mpn in keys if brand == name]
        assert mpns == sorted(mpns, key=str.casefold)
    plain = await _items(legacy, "q=resistor&sortby=score+desc")
    assert plain == await _items(legacy, "q=resistor")
    assert await _items(legacy, "q=resistor&sortby=score+asc") == plain[::-1]


@pytest.mark.parametrize(
    "mistake", ["sortby=flavor+asc", "sortby=category_uids+asc", "stats[mpn][include]=1", "filter[fields][flavor]=x"]
)
async def test_an_unknown_filter_field_gets_400(legacy: LegacyClient, mistake: str) -> None:
    assert (await legacy.get(f"/parts/search?q=resistor&{mistake}")).status == 400


async def test_a_multi_valued_text_counts_for_each_value(legacy: LegacyClient) -> None:
    """`I2C, SPI` counts twice; missing values count parts."""
    field = "specs.interface.value"
    body = await legacy.read(
        f"/parts/search?q=&limit=1&facet[fields][{field}][include]=true&facet[fields][{field}][limit]=99"
    )
    facets = body["facet_results"]["fields"][field]
    counts = {one["value"]: one["count"] for one in facets["facets"]}
    assert counts["SPI"] > 0
    assert not any("," in value for value in counts)
    with_one = body["hits"] - facets["missing"]
    assert max(counts.values()) <= with_one < sum(counts.values())


@pytest.mark.parametrize("field", ["brand.name", "manufacturer.name", "manufacturer.displayname"])
async def test_all_fields_of_brand_and_manufacturer_can_be_filtered(legacy: LegacyClient, field: str) -> None:
    found = await _items(
        legacy, f"q=&filter[fields][{field}][]=KEMET&filter[fields][{field}][]=Yageo&sortby={field}+desc"
    )
    names = [item["manufacturer"]["name"] for item in found]
    assert set(names) == {"KEMET", "Yageo"}
    assert names == sorted(names, reverse=True)
    body = await legacy.read(f"/parts/search?q=resistor&limit=0&facet[fields][{field}][include]=1")
    assert "Vishay" in {each["value"] for each in body["facet_results"]["fields"][field]["facets"]}


async def test_part_number_filters_can_be_combined(legacy: LegacyClient) -> None:
    mpn = "filter[fields][mpn][]=CRCW060310K0FKEA"
    (alone,) = await _items(legacy, mpn)
    more = (
        "filter[fields][offers.seller.name][]=Digi-Key&filter[fields][specs.resistance.value][]=10000"
        "&filter[fields][specs.rohs_status.value][]=Compliant&filter[fields][brand.name][]=Vishay"
    )
    assert await _items(legacy, f"{mpn}&{more}") == [alone]
    assert await _items(legacy, f"{mpn}&filter[fields][brand.name][]=Yageo") == []
    assert {item["mpn"] for item in await _items(legacy, f"{mpn}&filter[fields][mpn][]=1N4007")} >= {
        alone["mpn"],
        "1N4007",
    }


async def test_descriptions_can_be_counted(legacy: LegacyClient) -> None:
    """A public client requests this facet, and those of specs that few parts have."""
    body = await legacy.read(
        "/parts/search?q=SN74S74N&limit=100&include[]=descriptions&facet[fields][descriptions.value][include]=true"
        "&spec_drilldown[include]=true&spec_drilldown[limit]=100&facet[fields][specs.wire_gauge.value][include]=true"
    )
    texts = [each["value"] for result in body["results"] for each in result["item"]["descriptions"]]
    fields = body["facet_results"]["fields"]
    assert {each["value"]: each["count"] for each in fields["descriptions.value"]["facets"]} == {
        text: texts.count(text) for text in texts
    }
    assert fields["specs.wire_gauge.value"] == {
        "__class__": "SearchFacetResult",
        "facets": [],
        "missing": body["hits"],
        "spec_drilldown_rank": None,
    }


async def test_numbers_are_sorted_by_size_beside_another_field(legacy: LegacyClient) -> None:
    found = await _items(legacy, f"q=&sortby={RESISTANCE}+asc,mpn+asc&filter[queries][]={RESISTANCE}:[*+TO+*]")
    keys = [(_resistance(item), item["mpn"].casefold()) for item in found]
    assert keys == sorted(keys)
    assert len({number for number, _ in keys}) > 5


async def test_a_limit_above_100_is_rejected(legacy: LegacyClient) -> None:
    """The GraphQL service, its successor, refuses too (contract graphql.md §2.2); whether v3 did is not on record."""
    response = await legacy.get("/parts/search?q=resistor&start=1&limit=999")
    assert (response.status, response.json["__class__"]) == (400, "ClientErrorResponse")
    assert "100" in response.json["message"].replace("999", "")
