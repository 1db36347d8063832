"""octocruncher-v3 0.1.0: raw quotes and brackets in an absolute-form target, and every field that it reads.

It hard-codes http://octopart.com, so the environment makes the proxy its HTTP proxy. A missing key of a response reads
as "" or raises KeyError.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from octocruncher import OctoCruncher
from together.clients import services

pytestmark = services.both


@pytest.fixture(autouse=True)
def _pointed(proxy_url: str, apikey: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", proxy_url)
    monkeypatch.setenv("OCTOPART_API_KEY", apikey)
    monkeypatch.setattr(urllib.request, "_opener", None)  # urllib keeps the one it made for the environment before


@pytest.fixture
def flip_flops() -> OctoCruncher:
    """SN74S74N: the best three of its four makers, Texas Instruments first."""
    return OctoCruncher(mpn="SN74S74N")


def missing(read: Any) -> set[str]:
    """Fields missing in the response."""
    return {name for name, value in vars(read).items() if isinstance(value, str) and value == ""}


def test_octocruncher_finds_parts_of_several_makers(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getNumItems() == 3
    makers = []
    for number in range(3):
        flip_flops.setItemNumber(number)
        assert flip_flops.getMPN() == "SN74S74N"
        makers.append(flip_flops.getManufacturer().name)
    assert makers[0] == "Texas Instruments"
    assert len(set(makers)) == 3


def test_every_field_of_every_offer_is_present(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getNumOffers() > 10
    for number in range(flip_flops.getNumOffers()):
        offer = flip_flops.getOffer(number)
        assert missing(offer) <= {"eligible_region"}  # v3 too sent "" for it
        assert missing(offer.seller) == set()
        assert offer.seller.id.isdecimal()
        assert offer.is_realtime is False
        assert isinstance(offer.is_authorized, bool)
        assert isinstance(offer.in_stock_quantity, int)


def test_the_manufacturer_has_a_homepage(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getManufacturer().homepage_url == "http://ti.com"


def test_every_field_of_a_datasheet_is_present(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getNumDatasheets() == 1
    sheet = flip_flops.getDatasheet()
    assert missing(sheet) == set()
    assert sheet.mimetype == "application/pdf"
    assert sheet.url.endswith(".pdf")
    assert sheet.num_pages > 0
    assert sheet.date_created.endswith("Z")
    assert sheet.source == "Texas Instruments"


def test_a_part_without_datasheets_reads_as_an_empty_one(flip_flops: OctoCruncher) -> None:
    flip_flops.setItemNumber(1)
    assert flip_flops.getNumDatasheets() == 0
    assert flip_flops.getDatasheet().url == ""


def test_every_description_has_a_text_and_a_source(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getNumDescriptions() > 0
    for number in range(flip_flops.getNumDescriptions()):
        assert missing(flip_flops.getDescription(number)) == set()


def test_specs_are_found_by_exact_and_similar_names(flip_flops: OctoCruncher) -> None:
    assert flip_flops.getSpec("pin_count").value == "14"
    assert flip_flops.getSpecFuzzy("lifecycle").value == "Production"
    frequency, closeness = flip_flops.getSpecFuzzyCloseness("max_frequency")
    assert (frequency.name, frequency.display_value, closeness) == ("max_frequency", "110 MHz", 1.0)
    assert all(spec.value or spec.min_value for spec in flip_flops.getAllSpecs())
    assert all(spec.display_value for spec in flip_flops.getAllSpecs())
    assert [spec.name for spec in flip_flops.getAllSpecs()] == list(flip_flops.getSpecsJSON())


def test_an_unknown_part_is_empty() -> None:
    nothing = OctoCruncher(mpn="NOSUCHPART-1")
    assert (nothing.getNumItems(), nothing.getMPN(), nothing.getNumOffers()) == (0, "", 0)
    assert (nothing.getAllSpecs(), nothing.item) == ([], None)


def test_a_plus_sign_that_it_does_not_escape_still_finds_the_part() -> None:
    assert OctoCruncher(mpn="MAX1724EZK33+T").getMPN() == "MAX1724EZK33+T"


def test_a_saved_response_can_be_loaded(flip_flops: OctoCruncher, tmp_path: Path) -> None:
    kept = tmp_path / "reply.json"
    kept.write_text(json.dumps(flip_flops.getJSON()))
    again = OctoCruncher(file_source=kept)
    assert again.getSpecsJSON() == flip_flops.getSpecsJSON()
    assert again.item == flip_flops.item


def test_an_unknown_key_is_an_http_error_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTOPART_API_KEY", "no-such-key")
    with pytest.raises(urllib.error.HTTPError) as refused:
        OctoCruncher(mpn="SN74S74N")
    with refused.value as reply:
        assert (reply.code, json.load(reply)["message"]) == (403, "Forbidden request")
