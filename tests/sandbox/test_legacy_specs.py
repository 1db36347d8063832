"""The old service's specs: v3's keys and names in parts, and both spellings of a key in requests (§3.5).

Keys are those that public v3 programs and recordings of 2013 to 2021 use; names and datatypes those of the Parts that
tempoautomation/octopart (2018-10) and melbardis/elixir-octopart-api (2017-03) recorded.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from sandbox.legacy_client import LegacyClient

from nexar_sandbox import app, settings
from nexar_sandbox.catalog import store
from nexar_sandbox.legacy_v3 import settings as legacy_settings
from nexar_sandbox.legacy_v3 import spec_names

RECORDED_NAMES = {
    "case_package_si": "Case/Package (SI)",
    "lead_free_status": "Lead-Free Status",
    "mounting_style": "Mounting Style",
    "packaging": "Packaging",
    "polarity": "Polarity",
    "reach_svhc_compliance": "REACH SVHC Compliance",
    "pin_count": "Number of Pins",
    "resistance": "Resistance",
    "resistance_tolerance": "Resistance Tolerance",
    "rohs_status": "RoHS",
    "size_height": "Size-Height",
}
# v3's key and the catalog's, of attributes that some part has.
RENAMED = [
    ("case_package_si", "case_code_metric"),
    ("pin_count", "number_of_pins"),
    ("pin_pitch", "pitch"),
    ("propagation_delay_max", "propagation_delay"),
    ("size_diameter", "diameter"),
    ("size_height", "height"),
    ("size_length", "length"),
    ("size_thickness", "thickness"),
    ("size_width", "width"),
    ("termination_style", "termination"),
]
# Keys of attributes that no part of the shipped catalog has, with a value for one that has them.
RARE = {
    "elv": ("elv_compliant", "Compliant"),
    "militarystandard": ("mil_spec", "MIL-DTL-5015"),
    "operatingsupplycurrent": ("supply_current", 0.25),
    "wire_cablegauge": ("wire_gauge", "22 AWG"),
}


async def _parts(legacy: LegacyClient, more: str = "") -> list[dict[str, Any]]:
    """All parts of a search, without their offers, which are most of a part."""
    found: list[dict[str, Any]] = []
    while True:
        body = await legacy.read(f"/parts/search?limit=100&start={len(found)}&include[]=specs&hide[]=offers{more}")
        found += [result["item"] for result in body["results"]]
        if len(found) >= body["hits"]:
            return found


@pytest.fixture(scope="module")
def parts_read() -> list[dict[str, Any]]:
    """The parts of `all_parts`, read by the first test that needs them: every test has the same catalog."""
    return []


@pytest.fixture
async def all_parts(legacy: LegacyClient, parts_read: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All parts of the catalog."""
    if not parts_read:
        parts_read += await _parts(legacy)
    return parts_read


def _values(parts: list[dict[str, Any]], key: str) -> Counter[str]:
    return Counter(value for part in parts if key in part["specs"] for value in part["specs"][key]["value"])


async def test_specs_have_the_recorded_keys_and_names(all_parts: list[dict[str, Any]]) -> None:
    names = {key: spec["metadata"]["name"] for part in all_parts for key, spec in part["specs"].items()}
    assert {key: names[key] for key in RECORDED_NAMES if key in names} == {
        key: name for key, name in RECORDED_NAMES.items() if key in names
    }
    assert {"lead_free_status", "mounting_style", "rohs_status"} <= names.keys()
    assert not names.keys() & {former for _, former in RENAMED}
    assert {key for key, _ in RENAMED} <= names.keys()
    for part in all_parts:
        assert all(spec["metadata"]["key"] == key for key, spec in part["specs"].items())


@pytest.mark.parametrize("quantity", ["resistance", "capacitance", "inductance"])
async def test_a_tolerance_has_a_key_by_quantity_and_a_signed_text(
    all_parts: list[dict[str, Any]], quantity: str
) -> None:
    key = f"{quantity}_tolerance"
    parts = [part for part in all_parts if key in part["specs"]]
    assert parts
    assert all(quantity in part["specs"] and "tolerance" not in part["specs"] for part in parts)
    spec = parts[0]["specs"][key]
    assert spec["value"] == [spec["display_value"]]
    assert spec["display_value"] in {"±1%", "±5%", "±10%", "±20%"}
    assert (spec["metadata"]["datatype"], spec["metadata"]["unit"]) == ("string", None)


@pytest.mark.parametrize("spelling", ["±5%", "5%", "5", "5.0", "±5.0%"])
@pytest.mark.parametrize("key", ["tolerance", "resistance_tolerance"])
async def test_a_filter_accepts_every_spelling_of_a_tolerance(legacy: LegacyClient, key: str, spelling: str) -> None:
    parts = await _parts(legacy, f"&filter[fields][specs.{key}.value][]={quote(spelling)}")
    assert parts == await _parts(legacy, f"&filter[queries][]=specs.{key}.value:[5+TO+5]")
    assert {"±5%"} == {
        value for part in parts for key in part["specs"] if key.endswith("tolerance") for value in _values([part], key)
    }


async def test_the_supply_voltage_is_one_spec_with_a_value_or_a_range(all_parts: list[dict[str, Any]]) -> None:
    specs = [part["specs"]["supply_voltage_dc"] for part in all_parts if "supply_voltage_dc" in part["specs"]]
    forms = {(bool(each["value"]), each["min_value"] is not None, each["max_value"] is not None) for each in specs}
    assert forms == {(True, False, False), (False, True, True)}
    for each in specs:
        assert (each["metadata"]["key"], each["metadata"]["name"]) == ("supply_voltage_dc", "Supply Voltage (DC)")
        assert each["display_value"].count(" to ") == (not each["value"])


def _interval(part: dict[str, Any], key: str) -> tuple[float, float] | None:
    """The lower and the upper end of a part's spec; a value is both."""
    spec = part["specs"].get(key)
    if spec is None:
        return None
    low, high = spec["min_value"] or spec["value"][0], spec["max_value"] or spec["value"][0]
    return float(low), float(high)


@pytest.mark.parametrize("key", ["supply_voltage_dc"])
@pytest.mark.parametrize("low, high", [("3", "5"), ("5", "*"), ("*", "2"), ("500", "600")])
async def test_a_range_filter_matches_overlapping_ranges(
    legacy: LegacyClient, all_parts: list[dict[str, Any]], key: str, low: str, high: str
) -> None:
    least, most = float(low.replace("*", "-inf")), float(high.replace("*", "inf"))
    expected = {
        part["uid"] for part in all_parts if (ends := _interval(part, key)) and ends[1] >= least and ends[0] <= most
    }
    found = await _parts(legacy, f"&filter[queries][]=specs.{key}.value:[{low}+TO+{high}]")
    assert {part["uid"] for part in found} == expected
    if low == high:
        assert found == await _parts(legacy, f"&filter[fields][specs.{key}.value]={low}")


@pytest.mark.parametrize("key", ["operating_temperature"])
async def test_a_range_is_counted_by_value_and_bounds_and_sorted_by_its_bounds(
    legacy: LegacyClient, all_parts: list[dict[str, Any]], key: str
) -> None:
    field = f"specs.{key}.value"
    have = [part["specs"][key] for part in all_parts if key in part["specs"]]
    values = Counter(each for spec in have for each in (*spec["value"], spec["min_value"], spec["max_value"]) if each)
    body = await legacy.read(
        f"/parts/search?limit=0&facet[fields][{field}][include]=1&facet[fields][{field}][limit]=100&stats[{field}][include]=1"
    )
    facet, stats = body["facet_results"]["fields"][field], body["stats_results"][field]
    assert {each["value"]: each["count"] for each in facet["facets"]} == values
    counts = [each["count"] for each in facet["facets"]]
    assert counts == sorted(counts, reverse=True)
    numbers = [float(value) for value in values.elements()]
    assert (stats["min"], stats["max"], stats["count"]) == (min(numbers), max(numbers), len(numbers))
    assert facet["missing"] == stats["missing"] == len(all_parts) - len(have)
    for direction, end in (("asc", "min_value"), ("desc", "max_value")):
        shown = [part["specs"].get(key, {}).get(end) for part in await _parts(legacy, f"&sortby={field}+{direction}")]
        ends = [float(each) for each in shown if each is not None]
        assert ends == sorted(ends, reverse=direction == "desc")
        assert not any(shown[len(ends) :])


async def test_the_operating_temperature_is_one_spec_with_a_range(legacy: LegacyClient) -> None:
    (part,) = await legacy.items({"mpn": "ABLS-16.000MHZ-B4-T"}, "&include[]=specs")
    spec = part["specs"]["operating_temperature"]
    assert (spec["value"], spec["min_value"], spec["max_value"]) == ([], "-40.0", "85.0")
    assert spec["display_value"] == "-40 °C to 85 °C"
    assert (spec["metadata"]["key"], spec["metadata"]["name"]) == ("operating_temperature", "Operating Temperature")
    assert spec["metadata"]["datatype"] == "decimal"
    assert not {"min_operating_temperature", "max_operating_temperature"} & part["specs"].keys()


@pytest.mark.parametrize("key, former", RENAMED)
async def test_both_spellings_of_a_spec_key_are_equivalent(legacy: LegacyClient, key: str, former: str) -> None:
    def asked(name: str) -> str:
        field = f"specs.{name}.value"
        return (
            f"/parts/search?limit=100&sortby={field}+asc&filter[fields][{field}]=*"
            f"&facet[fields][{field}][include]=1&stats[{field}][include]=1"
        )

    new, old_ = [await legacy.read(asked(name)) for name in (key, former)]
    assert new["hits"] == old_["hits"] > 0
    assert new["results"] == old_["results"]
    for name, body in ((key, new), (former, old_)):
        assert body["spec_metadata"][name]["key"] == key
        assert body["facet_results"]["fields"].keys() == body["stats_results"].keys() == {f"specs.{name}.value"}
    assert list(new["stats_results"].values()) == list(old_["stats_results"].values())
    assert list(new["facet_results"]["fields"].values()) == list(old_["facet_results"]["fields"].values())


@pytest.mark.parametrize("quantity", ["inductance"])
async def test_a_tolerance_filter_count_and_sort_is_limited_to_its_quantity(
    legacy: LegacyClient, all_parts: list[dict[str, Any]], quantity: str
) -> None:
    key = f"{quantity}_tolerance"
    field = f"specs.{key}.value"
    values = _values(all_parts, key)
    body = await legacy.read(f"/parts/search?limit=0&facet[fields][{field}][include]=1&stats[{field}][include]=1")
    facet, stats = body["facet_results"]["fields"][field], body["stats_results"][field]
    assert {each["value"]: each["count"] for each in facet["facets"]} == values
    assert facet["missing"] == stats["missing"] == body["hits"] - values.total()
    numbers = sorted(float(value.strip("±%")) for value in values.elements())
    assert (stats["min"], stats["max"], stats["count"]) == (numbers[0], numbers[-1], len(numbers))
    expected, count = values.most_common(1)[0]
    for query in (f"filter[fields][{field}][]={quote(expected)}", f"filter[queries][]={field}:{quote(expected)}"):
        found = await _parts(legacy, f"&{query}")
        assert len(found) == count
        assert _values(found, key) == {expected: count}
    assert len(await _parts(legacy, f"&filter[fields][{field}][]={quote('±*')}")) == values.total()
    ordered = await _parts(legacy, f"&sortby={field}+asc")
    shown = [float(part["specs"][key]["value"][0].strip("±%")) for part in ordered if key in part["specs"]]
    assert shown == numbers
    assert not any(key in part["specs"] for part in ordered[len(numbers) :])


async def test_the_tolerance_key_without_a_quantity_covers_all_tolerances(legacy: LegacyClient) -> None:
    parts = await _parts(legacy, "&filter[fields][specs.tolerance.value]=5%25")
    keys = {key for part in parts for key in part["specs"] if key.endswith("tolerance")}
    assert {"resistance_tolerance", "tolerance"} <= keys
    ranged = await _parts(legacy, "&filter[queries][]=specs.resistance_tolerance.value:[2+TO+*]")
    assert ranged
    assert all(float(part["specs"]["resistance_tolerance"]["value"][0].strip("±%")) >= 2 for part in ranged)


async def test_range_bounds_are_filter_fields(legacy: LegacyClient) -> None:
    cold = await _parts(legacy, "&filter[queries][]=specs.operating_temperature.min_value:[*+TO+-55]")
    assert cold
    assert all(float(part["specs"]["operating_temperature"]["min_value"]) <= -55 for part in cold)
    former = await _parts(legacy, "&filter[queries][]=specs.min_operating_temperature.value:[*+TO+-55]")
    assert former == cold
    field = "specs.operating_temperature.max_value"
    body = await legacy.read(f"/parts/search?limit=0&facet[fields][{field}][include]=1&stats[{field}][include]=1")
    assert sum(each["count"] for each in body["facet_results"]["fields"][field]["facets"]) > 500
    assert body["stats_results"][field]["count"] > 500
    assert body["spec_metadata"]["operating_temperature"]["name"] == "Operating Temperature"
    for key in ("resistance", "output_voltage"):  # no ends on record
        assert (await legacy.read(f"/parts/search?filter[queries][]=specs.{key}.max_value:[0+TO+*]"))["hits"] == 0


async def test_show_and_hide_accept_both_spellings_of_a_key(legacy: LegacyClient) -> None:
    whole = await legacy.read("/parts/match?include[]=specs&queries=[{%22mpn%22:%22CRCW060310K0FKEA%22}]")
    specs = whole["results"][0]["items"][0]["specs"]
    for shown in ("resistance_tolerance", "tolerance"):
        (part,) = await legacy.items({"mpn": "CRCW060310K0FKEA"}, f"&include[]=specs&show[]=specs.{shown}.value")
        assert part == {"specs": {"resistance_tolerance": {"value": specs["resistance_tolerance"]["value"]}}}
    (part,) = await legacy.items({"mpn": "CRCW060310K0FKEA"}, "&include[]=specs&hide[]=specs.max_operating_temperature")
    assert part["specs"].keys() == specs.keys() - {"operating_temperature"}


async def test_a_spec_key_without_values_is_empty(legacy: LegacyClient) -> None:
    field = "specs.tripping_current.value"
    plain = await legacy.read("/parts/search?q=resistor&limit=100")
    body = await legacy.read(
        f"/parts/search?q=resistor&limit=100&sortby={field}+desc&facet[fields][{field}][include]=1&stats[{field}][include]=1"
    )
    assert body["results"] == plain["results"]
    assert body["facet_results"]["fields"][field]["facets"] == []
    assert body["facet_results"]["fields"][field]["missing"] == plain["hits"] > 0
    stats = body["stats_results"][field]
    assert (stats["count"], stats["missing"]) == (0, plain["hits"])
    assert {stats[name] for name in ("min", "max", "mean", "stddev")} == {None}
    for filter_ in (f"filter[fields][{field}]=5", f"filter[queries][]={field}:[1+TO+*]", f"filter[fields][{field}]=*"):
        assert (await legacy.read(f"/parts/search?q=resistor&{filter_}"))["hits"] == 0


async def test_exactly_the_recorded_spec_keys_are_known(legacy: LegacyClient) -> None:
    assert len(spec_names.KEYS) == 205
    keys = sorted(spec_names.KEYS)
    for first in range(0, len(keys), 103):
        fields = [f"specs.{key}.value" for key in keys[first : first + 103]]
        counts = "&".join(f"facet[fields][{field}][include]=1" for field in fields)
        assert (await legacy.read(f"/parts/search?limit=0&{counts}"))["facet_results"]["fields"].keys() == set(fields)
    for name in ("specs.colour.value", "specs.resistance.values", "specs.resistance"):
        assert (await legacy.get(f"/parts/search?facet[fields][{name}][include]=1")).status == 400


async def test_spec_metadata_describes_each_filtered_spec(legacy: LegacyClient) -> None:
    body = await legacy.read(
        "/parts/search?limit=1&filter[fields][specs.case_package.value]=0603"
        "&filter[queries][]=specs.resistance.value:[1+TO+*]&filter[fields][brand.name]=Yageo"
    )
    assert body["spec_metadata"] == {
        "case_package": {
            "__class__": "SpecMetadata",
            "key": "case_package",
            "name": "Case/Package",
            "datatype": "string",
            "unit": None,
        },
        "resistance": {
            "__class__": "SpecMetadata",
            "key": "resistance",
            "name": "Resistance",
            "datatype": "decimal",
            "unit": {"__class__": "UnitOfMeasurement", "name": "ohms", "symbol": "Ω"},
        },
    }


async def test_a_drilldown_has_statistics_of_its_numbers_with_their_rank(legacy: LegacyClient) -> None:
    body = await legacy.read("/parts/search?q=resistor&limit=0&spec_drilldown[include]=1")
    facets, stats, known = body["facet_results"]["fields"], body["stats_results"], body["spec_metadata"]
    numeric = {name for name in facets if known[name.split(".")[1]]["datatype"] != "string"}
    assert "specs.resistance.value" in numeric
    assert stats.keys() == numeric < facets.keys()
    alone = await legacy.read("/parts/search?q=resistor&limit=0&stats[specs.resistance.value][include]=1")
    for name, found in stats.items():
        assert found["spec_drilldown_rank"] == facets[name]["spec_drilldown_rank"] >= 1
        numbers = 2 if "operating_temperature" in name else 1  # both ends
        assert found["count"] / numbers + found["missing"] == body["hits"]
    same = {**stats["specs.resistance.value"], "spec_drilldown_rank": None}
    assert same == alone["stats_results"]["specs.resistance.value"]


@pytest.fixture
async def small_legacy(tmp_path: Path) -> AsyncIterator[LegacyClient]:
    """A service of five parts: coils with a tolerance, with one of the inductance, with both and with neither, and a
    part with specs that are rare."""
    data = Path(store.__file__).parent / "data"
    for name in ("attributes", "categories", "companies"):
        (tmp_path / f"{name}.jsonl").write_bytes((data / f"{name}.jsonl").read_bytes())
    tolerances = [{"tolerance": 5}, {"inductancetolerance": 10}, {"tolerance": 5, "inductancetolerance": 20}, {}]
    coils: list[dict[str, object]] = [{"inductance": 1e-6, **each} for each in tolerances]
    specs: list[dict[str, object]] = [*coils, {name: value for name, (_, value) in RARE.items()}]
    parts = [
        {
            "id": str(number), "mpn": f"PART{number}", "manufacturer": "212", "category": "4163", "description": "Part",
            "v3uid": f"{number:016x}", "specs": each,
        }
        for number, each in enumerate(specs, 1)
    ]  # fmt: skip
    (tmp_path / "parts.jsonl").write_text("".join(f"{json.dumps(part)}\n" for part in parts), "utf-8")
    catalog = store.open_catalog(data=tmp_path)
    legacy = legacy_settings.LegacySettings(requests_per_second=None)
    running = app.serve(settings.SandboxSettings(legacy=legacy), catalog=catalog)
    async with running as sandbox, aiohttp.ClientSession() as session:
        yield LegacyClient(sandbox, session)
    catalog.close()


async def test_a_specific_tolerance_precedes_the_common_one(small_legacy: LegacyClient) -> None:
    field = "specs.inductance_tolerance.value"
    parts = await _parts(small_legacy, f"&sortby={field}+asc")
    found = {part["mpn"]: part["specs"].get("inductance_tolerance", {}).get("value") for part in parts}
    assert list(found.items())[:3] == [("PART1", ["±5%"]), ("PART2", ["±10%"]), ("PART3", ["±20%"])]
    assert {mpn: found[mpn] for mpn in ("PART4", "PART5")} == {"PART4": None, "PART5": None}
    body = await small_legacy.read(f"/parts/search?facet[fields][{field}][include]=1&stats[{field}][include]=1")
    facet = body["facet_results"]["fields"][field]
    assert {each["value"]: each["count"] for each in facet["facets"]} == {"±5%": 1, "±10%": 1, "±20%": 1}
    assert facet["missing"] == 2
    assert (body["stats_results"][field]["min"], body["stats_results"][field]["max"]) == (5.0, 20.0)
    for value, mpns in (("±5%", ["PART1"]), ("±10%", ["PART2"]), ("±20%", ["PART3"]), ("±1%", [])):
        assert [
            part["mpn"] for part in await _parts(small_legacy, f"&filter[fields][{field}][]={quote(value)}")
        ] == mpns


@pytest.mark.parametrize("key, value", RARE.values())
async def test_rare_specs_have_the_recorded_keys(small_legacy: LegacyClient, key: str, value: object) -> None:
    (part,) = await _parts(small_legacy, f"&filter[fields][specs.{key}.value][]={quote(str(value))}")
    assert part["specs"].keys() == {key for key, _ in RARE.values()}
    assert part["specs"][key]["value"] == [str(value)]
