"""Aggregations of a search, lists of companies and categories, suggestions and spelling corrections."""

from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import store


async def test_aggregations_cover_all_hits(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSearch(q: "resistor", limit: 1) { hits inStockAgg { isInStock count } cadAgg { cadState count }'
        " manufacturerAgg(size: 1000) { company { name } count }"
        " top: manufacturerAgg(size: 1) { company { name } count } categoryAgg(size: 1000) { category { name } count }"
        " distributorAgg { company { name } count } suggestedCategories { category { id } }"
        ' specAggs(attributeNames: ["resistance"], size: 2) { attribute { shortname } buckets { displayValue floatValue'
        " count } min max siMin siMax displayMin displayMax valueType unitsSymbol } } }"
    )
    found = response.data["supSearch"]
    hits = found["hits"]
    for name in ("inStockAgg", "cadAgg", "manufacturerAgg", "categoryAgg"):
        assert sum(bucket["count"] for bucket in found[name]) == hits, name
    assert found["top"] == found["manufacturerAgg"][:1]
    assert found["distributorAgg"][0]["count"] <= hits
    assert found["suggestedCategories"]
    (spread,) = found["specAggs"]
    assert len(spread["buckets"]) == 2
    assert spread["min"] < spread["max"]
    assert float(spread["siMin"]) == spread["min"]
    assert spread["displayMax"].endswith("Ω")
    assert (spread["valueType"], spread["unitsSymbol"]) == ("number", "Ω")


async def test_spec_aggregations_can_be_widened_and_an_unknown_name_is_an_error(caller: SandboxClient) -> None:
    query = (
        'query($n: [String!]!, $s: SupSpecAggsSelection! = EXPLICIT) { supSearch(q: "LM358")'
        " { specAggs(attributeNames: $n, attributeSelection: $s) { attribute { shortname } } } }"
    )
    sizes = []
    for how in ("EXPLICIT", "WITH_SUGGESTED", "ALL"):
        found = (await caller.ask(query, {"n": ["numberofpins"], "s": how})).data["supSearch"]["specAggs"]
        names = [one["attribute"]["shortname"] for one in found]
        assert names[0] == "numberofpins"
        assert len(set(names)) == len(names)
        sizes.append(len(names))
    assert sizes[0] == 1 < sizes[1] < sizes[2]
    response = await caller.ask(query, {"n": ["no_such"]})
    assert "no_such" in response.messages[0]


async def test_applied_filters_have_display_names(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSearch(q: "", filters: {manufacturer_id: ["370"], case_package: ["DIP"]}) { appliedCategory { id }'
        " appliedFilters { shortname name values displayValues } } }"
    )
    found = response.data["supSearch"]
    assert found["appliedCategory"] is None
    assert found["appliedFilters"] == [
        {
            "shortname": "manufacturer_id",
            "name": "Manufacturer",
            "values": ["370"],
            "displayValues": ["Texas Instruments"],
        },
        {"shortname": "case_package", "name": "Case/Package", "values": ["DIP"], "displayValues": ["DIP"]},
    ]


async def test_lists_are_complete_or_filtered_by_id_slug_or_path(caller: SandboxClient, catalog: store.Catalog) -> None:
    response = await caller.ask(
        '{ all: supManufacturers { id } one: supManufacturers(ids: ["370"]) { name slug }'
        ' slug: supManufacturers(slugs: ["/manufacturers/texas-instruments"]) { id }'
        " big: supManufacturers(minNumberOfActiveParts: 20) { id } none: supManufacturers(ids: []) { id }"
        ' root: supCategories(ids: ["4161"]) { path ancestors { id } children { id parentId }'
        " relevantAttributes { id } }"
        ' path: supCategories(paths: ["/electronic-parts"]) { id } }'
    )
    data = response.data
    assert len(data["all"]) == len(catalog.reference.manufacturers)
    assert data["one"] == [{"name": "Texas Instruments", "slug": "/manufacturers/texas-instruments"}]
    assert data["slug"] == [{"id": "370"}]
    assert 0 < len(data["big"]) < len(data["all"])
    assert data["none"] == []
    (root,) = data["root"]
    assert root["ancestors"] == []
    assert {child["parentId"] for child in root["children"]} == {"4161"}
    assert root["relevantAttributes"]
    assert data["path"] == [{"id": "4161"}]


async def test_suggestions_and_spellings_come_from_the_catalog(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supSuggest(q: "SN74S7", partNumbersOnly: true) { text inCategoryId }'
        ' supSpellingCorrection(q: "resistr") { correctionString hits } }'
    )
    assert "SN74S74N" in {one["text"] for one in response.data["supSuggest"]}
    (better,) = response.data["supSpellingCorrection"]
    assert (better["correctionString"], better["hits"] > 0) == ("resistor", True)
