"""Tests of spec keys with the sandbox: v3 keys and others give equal results (contract graphql.md §10.5)."""

from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment

SAME = [
    ("size_length", "length"),
    ("size_width", "width"),
    ("size_height", "height"),
    ("size_diameter", "diameter"),
    ("pin_pitch", "pitch"),
    ("propagation_delay_max", "propagation_delay"),
    ("termination_style", "termination"),
    ("case_package_si", "case_code_metric"),
    ("mounting_style", "mount"),
]
QUANTITIES = ["resistance", "capacitance", "inductance"]
TEMPERATURE = "specs.operating_temperature.value"


def field(key: str) -> str:
    return f"specs.{key}.value"


async def search(environment: ProxyEnvironment, status: int = 200, /, **parameters: Any) -> Any:
    """A /parts/search without a word; a list is a repeated parameter."""
    pairs = [
        (name, each)
        for name, value in {"q": "", "limit": 0, **parameters}.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    query = "&".join(f"{name}={quote(str(value))}" for name, value in pairs)
    response = await environment.proxy.get(f"/v3/parts/search?apikey={running_proxy.KEY}&{query}")
    assert response.status == status, await response.text()
    return await response.json()


async def specs(
    environment: ProxyEnvironment, *filters: str, show: str = "specs", limit: int = 100, **more: Any
) -> list[dict[str, Any]]:
    """The specs of the first parts that pass."""
    shown: dict[str, Any] = {"include[]": "specs", "show[]": show, "limit": limit}
    reply = await search(environment, **shown, **{"filter[queries][]": list(filters)}, **more)
    return [result["item"]["specs"] for result in reply["results"]]


def counts(reply: Any, name: str) -> dict[str, int]:
    return {each["value"]: each["count"] for each in reply["facet_results"]["fields"][name]["facets"]}


def counted(name: str) -> dict[str, Any]:
    return {f"facet[fields][{name}][include]": 1, f"facet[fields][{name}][limit]": 100, f"stats[{name}][include]": 1}


@pytest.mark.parametrize("key, other", SAME)
async def test_v3_and_nexar_spec_keys_are_equivalent(environment: ProxyEnvironment, key: str, other: str) -> None:
    replies = [await search(environment, **counted(field(each))) for each in (key, other)]
    values, others = (counts(reply, field(each)) for reply, each in zip(replies, (key, other), strict=True))
    assert values == others
    assert values
    value = next(iter(values))
    filtered = [await search(environment, **{f"filter[fields][{field(each)}][]": value}) for each in (key, other)]
    assert filtered[0]["hits"] == filtered[1]["hits"] == values[value]
    assert [reply["spec_metadata"][each]["key"] for reply, each in zip(filtered, (key, other), strict=True)] == [
        key
    ] * 2
    ordered = [
        await search(environment, limit=20, sortby=f"{field(each)} desc", **{"show[]": "uid"}) for each in (key, other)
    ]
    assert ordered[0]["results"] == ordered[1]["results"]


@pytest.mark.parametrize("key, other", SAME)
async def test_part_has_the_v3_spec_key_for_either_key(environment: ProxyEnvironment, key: str, other: str) -> None:
    value = next(iter(counts(await search(environment, **counted(field(key))), field(key))))
    only = {f"filter[fields][{field(other)}][]": value}
    whole, picked, picked_by_other = [
        await specs(environment, show=show, limit=5, **only) for show in ("specs", f"specs.{key}", f"specs.{other}")
    ]
    assert all(key in each and other not in each for each in whole)
    assert picked == picked_by_other == [{key: each[key]} for each in whole]


@pytest.mark.parametrize("quantity", QUANTITIES)
async def test_tolerance_belongs_to_the_quantity_of_the_part(environment: ProxyEnvironment, quantity: str) -> None:
    key = f"{quantity}_tolerance"
    found = await specs(environment, f"{field(quantity)}:[0 TO *]")
    have = [each for each in found if key in each]
    assert len(have) > 10
    assert not [
        each for each in found if "tolerance" in each or {f"{q}_tolerance" for q in QUANTITIES} & set(each) - {key}
    ]
    reply = await search(environment, **counted(field(key)))
    for value, count in counts(reply, field(key)).items():
        filtered = await search(environment, **{f"filter[fields][{field(key)}][]": value})
        assert filtered["hits"] == count
    assert set(counts(reply, field(key))) >= {each[key]["value"][0] for each in have}
    stats = reply["stats_results"][field(key)]
    assert stats["min"] == min(float(each[key]["value"][0].strip("±%")) for each in have)
    for each in have:
        assert each[key]["value"] == [each[key]["display_value"]]
        assert (each[key]["metadata"]["datatype"], each[key]["metadata"]["unit"]) == ("string", None)


@pytest.mark.parametrize("key", ["tolerance", "resistance_tolerance"])
async def test_tolerance_filter_accepts_every_spelling(environment: ProxyEnvironment, key: str) -> None:
    for spelling in ("±5%", "5%", "5", "5.0", "±5.0%"):
        chosen: dict[str, Any] = {f"filter[fields][{field(key)}][]": spelling}
        found = await specs(environment, **chosen)
        shown = {each[name]["value"][0] for each in found for name in each if name.endswith("tolerance")}
        assert shown == {"±5%"}, spelling


async def test_range_has_minimum_and_maximum_fields(environment: ProxyEnvironment) -> None:
    low, high = (f"specs.operating_temperature.{end}" for end in ("min_value", "max_value"))
    found = [
        each["operating_temperature"] for each in await specs(environment, f"{low}:[* TO -55]", f"{high}:[150 TO *]")
    ]
    assert found
    assert all(float(each["min_value"]) <= -55 and float(each["max_value"]) >= 150 for each in found)
    reply, alone = [
        await search(environment, **counted(name), sortby=f"{name} asc", limit=20)
        for name in (low, field("min_operating_temperature"))
    ]
    assert counts(reply, low) == counts(alone, field("min_operating_temperature"))
    assert reply["stats_results"][low] == alone["stats_results"][field("min_operating_temperature")]
    assert reply["results"] == alone["results"]
    assert reply["spec_metadata"]["operating_temperature"] == alone["spec_metadata"]["min_operating_temperature"]


async def test_minimum_of_a_non_range_spec_has_no_source(environment: ProxyEnvironment) -> None:
    end = "specs.resistance.max_value"
    response = await environment.proxy.get(
        f"/v3/parts/search?apikey={running_proxy.KEY}&facet[fields][{end}][include]=1&sortby={end}+asc"
    )
    assert response.status == 200
    assert response.headers["X-V3-Unsupported"] == f"facet[fields][{end}], sortby={end}"
    await search(environment, 400, **{"filter[queries][]": f"{end}:[1 TO 5]"})


async def test_tolerance_facet_counts_only_its_quantity(environment: ProxyEnvironment) -> None:
    whole = sum(counts(await search(environment, **counted(field("tolerance"))), field("tolerance")).values())
    each = [
        sum(counts(await search(environment, **counted(field(f"{q}_tolerance"))), field(f"{q}_tolerance")).values())
        for q in QUANTITIES
    ]
    assert 0 < sum(each) < whole  # some parts have a tolerance of something else


async def test_operating_temperature_is_one_range_spec(environment: ProxyEnvironment) -> None:
    found = [each["operating_temperature"] for each in await specs(environment, f"{TEMPERATURE}:[-40 TO 85]")]
    assert len(found) == 100
    for each in found:
        assert each["value"] == []
        assert float(each["min_value"]) <= 85
        assert float(each["max_value"]) >= -40
        assert each["display_value"].count("°C") == 2


@pytest.mark.parametrize("low, high", [("105", "*"), ("*", "-55"), ("125", "150"), ("-100", "-60")])
async def test_range_filter_matches_overlapping_ranges(environment: ProxyEnvironment, low: str, high: str) -> None:
    text = f"{TEMPERATURE}:[{low} TO {high}]"
    hits = (await search(environment, **{"filter[queries][]": text}))["hits"]
    ends = [f"specs.max_operating_temperature.value:[{low} TO *]"] if low != "*" else []
    ends += [f"specs.min_operating_temperature.value:[* TO {high}]"] if high != "*" else []
    assert hits == (await search(environment, **{"filter[queries][]": ends}))["hits"]
    assert hits < (await search(environment))["hits"]


async def test_range_sort_uses_the_bound_of_its_direction(environment: ProxyEnvironment) -> None:
    for direction, end in (("asc", "min_value"), ("desc", "max_value")):
        found = await specs(environment, sortby=f"{TEMPERATURE} {direction}")
        numbers = [float(each["operating_temperature"][end]) for each in found]
        assert numbers == sorted(numbers, reverse=direction == "desc")
        assert len(set(numbers)) > 1


async def test_range_stats_span_lowest_to_highest_bound(environment: ProxyEnvironment) -> None:
    reply = await search(environment, **counted(TEMPERATURE))
    alone = await search(
        environment, **counted(field("min_operating_temperature")), **counted(field("max_operating_temperature"))
    )
    low, high = (alone["stats_results"][field(f"{end}_operating_temperature")] for end in ("min", "max"))
    stats = reply["stats_results"][TEMPERATURE]
    assert (stats["min"], stats["max"]) == (low["min"], high["max"])
    both = (
        counts(alone, field("min_operating_temperature")).items(),
        counts(alone, field("max_operating_temperature")).items(),
    )
    assert sum(counts(reply, TEMPERATURE).values()) == sum(count for each in both for _, count in each)
    assert reply["spec_metadata"]["operating_temperature"]["name"] == "Operating Temperature"


async def test_filtered_spec_has_metadata_even_without_hits(environment: ProxyEnvironment) -> None:
    only = {
        f"filter[fields][{field('size_length')}][]": "123456",
        f"filter[fields][{field('rohs_status')}][]": "Compliant",
    }
    reply = await search(environment, **only)
    assert reply["hits"] == 0
    assert {key: each["__class__"] for key, each in reply["spec_metadata"].items()} == dict.fromkeys(
        ("size_length", "rohs_status"), "SpecMetadata"
    )
    assert reply["spec_metadata"]["size_length"]["unit"] == {
        "__class__": "UnitOfMeasurement",
        "name": "metres",
        "symbol": "m",
    }


async def test_drilldown_has_stats_of_numeric_specs(environment: ProxyEnvironment) -> None:
    reply = await search(environment, q="resistor", **{"spec_drilldown[include]": "true", "spec_drilldown[limit]": 100})
    fields, stats, metadata = reply["facet_results"]["fields"], reply["stats_results"], reply["spec_metadata"]
    numbers = {name for name in fields if metadata[name.split(".")[1]]["datatype"] != "string"}
    assert set(stats) == numbers
    assert field("resistance") in numbers
    assert all(each["min"] <= each["max"] for each in stats.values())
    assert {name: each["spec_drilldown_rank"] for name, each in stats.items()} == {
        name: fields[name]["spec_drilldown_rank"] for name in numbers
    }
