"""octopart 0.0.24, `octopart.match`: whole lists of parts, and all fields that its models read."""

import re
from itertools import pairwise
from typing import Any

import octopart
import pytest
from octopart.models import Imageset, Part, PartOffer
from together.clients import services

pytestmark = [
    services.both,
    pytest.mark.filterwarnings("ignore::schematics.deprecated.SchematicsDeprecationWarning"),
    pytest.mark.usefixtures("octopart_defaults"),
]

# More than 20, so that the client sends two requests at once.
BOM = """
    2N2222A 7274-2-10 ABLS-16.000MHZ-B4-T AM29F040B-90JC ATMEGA328P-AU ATMEGA328P-PU BSS138 FT230XS-R INA101HP LM741CN
    MAX1724EZK33+T MC1488P MC6800P MC68000P10 MCP23017-E/SP NE555N PIC16F84A-04/P SKHHLQA010 SN74LS00N SN74LS04N
    SN74LS138N SN74LS245N SN74S74N TSL2561T
""".split()  # noqa: SIM905 - a list of words, not of quotes
INCLUDED: dict[str, Any] = dict.fromkeys(
    ["include_specs", "include_datasheets", "include_descriptions", "include_imagesets", "include_category_uids"], True
)


def the_part(mpn: str, **more: Any) -> Part:
    [result] = octopart.match([mpn], limit=1, **more)
    return result.parts[0]


def test_a_long_list_keeps_its_order_without_duplicates() -> None:
    results = octopart.match([*BOM, *BOM[:3]], limit=1)
    assert [result.mpn for result in results] == BOM
    assert [[part.mpn for part in result.parts] for result in results] == [[mpn] for mpn in BOM]


def test_every_part_can_be_read() -> None:
    parts = [part for result in octopart.match(BOM, limit=2, **INCLUDED) for part in result.parts]
    assert len({part.uid for part in parts}) == len(parts) > len(BOM)
    for part in parts:
        assert re.fullmatch("[0-9a-f]{16}", part.uid)
        assert part.manufacturer
        assert part.descriptions
        assert part.category_uids
        assert all(re.fullmatch("[0-9a-f]{16}", uid) for uid in part.category_uids)
        assert all(url.startswith("http") for url in part.datasheets or ())
        assert all(image.image_url(Imageset.LARGE) for image in part.imagesets or ())
        assert part.specs is not None
        assert all(isinstance(value, str | list) for value in part.specs.to_dict().values())
    assert any(part.datasheets for part in parts)
    assert any(part.imagesets for part in parts)


def test_every_offer_can_be_read() -> None:
    offers = [offer for result in octopart.match(BOM, limit=2) for part in result.parts for offer in part.offers]
    assert len(offers) > 100
    for offer in offers:
        read(offer)
    assert len({currency for offer in offers for currency in offer.prices}) > 2
    assert any(offer.packaging for offer in offers)
    assert any(offer.moq for offer in offers)
    assert {offer.in_stock_quantity for offer in offers} & {-1, -2, -3, -4}


def read(offer: PartOffer) -> None:
    assert offer.seller
    assert offer.sku
    assert offer.product_url.startswith("http")
    assert isinstance(offer.in_stock_quantity, int)
    assert offer.moq is None or offer.moq > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", offer.last_updated)
    for breaks in offer.prices.values():
        assert all(price > 0 for price in breaks.values())
        assert all(less < more for less, more in pairwise(breaks))


def test_specs_have_values_units_and_display_texts() -> None:
    specs = the_part("SN74S74N", include_specs=True).specs
    assert specs["max_frequency"].value == "110000000.0"
    assert specs["max_frequency"].display_value == "110 MHz"
    assert specs["max_frequency"].metadata["unit"]["symbol"] == "Hz"
    assert specs["pin_count"].metadata["datatype"] == "integer"
    assert specs["case_package"].metadata["unit"] is None
    temperature = specs["operating_temperature"]
    assert (temperature.min_value, temperature.max_value) == ("0.0", "70.0")
    ranges = {key: spec.display_value for key, spec in specs.items() if spec.min_value or spec.max_value}
    assert ranges == {"operating_temperature": "0 °C to 70 °C", "supply_voltage_dc": "4.75 V to 5.25 V"}
    assert all(spec.attribution["__class__"] == "Attribution" for spec in specs.values())


def test_fields_that_are_not_included_are_empty() -> None:
    part = the_part("SN74S74N")
    assert (part.specs, part.imagesets, part.descriptions, part.datasheets) == (None, None, None, None)


def test_a_partial_match_finds_prefixes() -> None:
    [whole], [begun] = (octopart.match(["SN74S74N"], partial_match=flag, limit=20) for flag in (False, True))
    assert {part.mpn for part in whole.parts} == {"SN74S74N"}
    assert {part.mpn for part in begun.parts} == {"SN74S74N", "SN74S74NE4", "SN74S74N3"}


def test_every_kind_of_number_is_looked_up_at_every_seller() -> None:
    results = octopart.match(["67K1122"], match_types=("mpn", "sku"), sellers=("Newark", "TTI"))
    assert [[part.manufacturer for part in result.parts] for result in results] == [[], [], ["Texas Instruments"], []]


def test_show_and_hide_reach_the_proxy() -> None:
    # The client gives the fields of a response by this attribute only.
    assert set(the_part("NE555N", show=["mpn", "uid"])._part) == {"mpn", "uid"}
    assert "offers" not in the_part("NE555N", hide=["offers"])._part


def test_a_result_prints_its_parts_and_offers(capsys: pytest.CaptureFixture[str]) -> None:
    [result] = octopart.match(["SN74S74N"], limit=1)
    capsys.readouterr()
    result.pretty_print()
    printed = capsys.readouterr().out.splitlines()
    assert printed[:2] == ["<PartsMatchResult: hits=4 query=SN74S74N>", "\t<Part mpn=SN74S74N>"]
    assert len(printed) == 2 + len(result.parts[0].offers)
