"""The old service's specs: v3's keys and names in parts, and both spellings of a key in requests (§3.5).

Keys are those that public v3 programs and recordings of 2013 to 2021 use; names and datatypes those of the Parts that
tempoautomation/octopart (2018-10) and melbardis/elixir-octopart-api (2017-03) recorded.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from sandbox.legacy_client import LegacyClient

from nexar_sandbox import app, settings
from nexar_sandbox.catalog import store
from nexar_sandbox.legacy_v3 import service as legacy_service
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
    legacy = legacy_service.LegacySettings(requests_per_second=None)
    running = app.serve(settings.SandboxSettings(legacy=legacy), catalog=catalog)
    async with running as sandbox, aiohttp.ClientSession() as session:
        yield LegacyClient(sandbox, session)
    catalog.close()


@pytest.mark.parametrize("key, value", RARE.values())
async def test_rare_specs_have_the_recorded_keys(small_legacy: LegacyClient, key: str, value: object) -> None:
    filtered = f"/parts/search?include[]=specs&filter[fields][specs.{key}.value][]={quote(str(value))}"
    (part,) = (each["item"] for each in (await small_legacy.read(filtered))["results"])
    assert part["specs"].keys() == {key for key, _ in RARE.values()}
    assert part["specs"][key]["value"] == [str(value)]
