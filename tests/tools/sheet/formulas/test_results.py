"""Values of every function, right ones and the add-ins' own."""

from decimal import Decimal

import pytest

from proxy.tools.sheet.formulas.add_in_results import NO_DATASHEET, NO_RESULT, add_in_value, is_failure
from proxy.tools.sheet.formulas.functions import FUNCTIONS
from proxy.tools.sheet.formulas.requests import PartRequest
from proxy.tools.sheet.formulas.results import Excluded, right_value
from proxy.tools.sheet.package.cells import CellError, CellValue
from proxy.tools.sheet.parts import Offer, Part, Price

NOT_AVAILABLE = CellError("#N/A")
ALL = Excluded()
PART = Part(
    "LM317",
    "Texas Instruments",
    url="https://octopart.com/lm317",
    short_description="-regulator",
    datasheet_url="https://example.com/lm317.pdf",
    image_url="https://example.com/lm317.jpg",
    offers=(
        Offer(
            "459",
            "Digi-Key",
            authorized=True,
            sku="LM317-ND",
            stock=120,
            moq=1,
            order_multiple=1,
            lead_days=42,
            packaging="Tube",
            url="https://octopart.com/click/1",
            updated="2026-11-20T10:00:00Z",
            prices=(Price(1, Decimal("0.6"), "USD"), Price(100, Decimal("0.4"), "USD")),
        ),
        Offer(
            "2401",
            "Mouser Electronics",
            authorized=True,
            sku="595-LM317",
            stock=-2,
            moq=3000,
            order_multiple=3000,
            packaging=None,
            url=None,
            updated="2026-11-21T10:00:00Z",
            prices=(Price(1, Decimal("0.1234567"), "USD"),),
        ),
        Offer(
            "777",
            "Broker & Co",
            authorized=False,
            stock=None,
            prices=(Price(1, Decimal("0.5"), "EUR", converted=Decimal("0.55")),),
        ),
    ),
)


def request(name: str, **arguments: object) -> PartRequest:
    """The request of a function, by its name without NEXAR_SUPPLY_."""
    function = FUNCTIONS.get(name) or FUNCTIONS[f"NEXAR_SUPPLY_{name}"]
    return PartRequest(function, "LM317")._replace(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name, arguments, right, add_in",
    [
        ("DETAIL_URL", {}, PART.url, PART.url),
        ("DATASHEET_URL", {}, PART.datasheet_url, PART.datasheet_url),
        ("SHORT_DESCRIPTION", {}, "-regulator", "-regulator"),
        ("MANUFACTURER_NAME", {}, "Texas Instruments", "Texas Instruments"),
        ("OCTOPART_IMAGE", {"size": "large"}, PART.image_url, PART.image_url),
        ("OCTOPART_DESCRIPTION", {}, "-regulator", "-regulator"),
        ("DISTRIBUTOR_PRICE", {}, Decimal("0.55"), Decimal("0.12346")),
        ("DISTRIBUTOR_PRICE", {"quantity": 100}, Decimal("0.4"), Decimal("0.12346")),
        ("DISTRIBUTOR_PRICE", {"distributors": ("digi",)}, Decimal("0.6"), Decimal("0.60000")),
        ("DISTRIBUTOR_PRICE", {"distributors": ("digikey",)}, Decimal("0.6"), NO_RESULT),
        ("DISTRIBUTOR_PRICE", {"distributors": ("459",)}, Decimal("0.6"), Decimal("0.60000")),
        ("DISTRIBUTOR_PRICE", {"distributors": ("45",)}, NOT_AVAILABLE, NO_RESULT),
        ("DISTRIBUTOR_PRICE", {"distributors": ("777", "DIGI-KEY")}, Decimal("0.55"), Decimal("0.60000")),
        ("DISTRIBUTOR_PRICE", {"distributors": ("Arrow",)}, NOT_AVAILABLE, NO_RESULT),
        ("DISTRIBUTOR_PRICE", {"distributors": ("777",)}, Decimal("0.55"), NO_RESULT),
        ("DISTRIBUTOR_PRICE", {"authorized": "no"}, Decimal("0.55"), NO_RESULT),
        ("AVERAGE_PRICE", {}, Decimal("0.575"), Decimal("0.36173")),
        ("AVERAGE_PRICE", {"authorized": "yes"}, Decimal("0.6"), Decimal("0.36173")),
        ("OCTOPART_AVERAGE_PRICE", {"quantity": 3000}, Decimal("0.357818900000000"), Decimal("0.26173")),
        ("DISTRIBUTOR_STOCK", {}, Decimal(120), Decimal(120)),
        ("DISTRIBUTOR_STOCK", {"distributors": ("Mouser",)}, "Yes", "Yes"),
        ("DISTRIBUTOR_STOCK", {"authorized": "no"}, NOT_AVAILABLE, Decimal(0)),
        ("OCTOPART_INDUSTRY_STOCK", {}, Decimal(120), Decimal(118)),
        ("DISTRIBUTOR_STOCK_UPDATED", {}, "2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z"),
        ("DISTRIBUTOR_MOQ", {}, Decimal(1), Decimal(1)),
        ("DISTRIBUTOR_MOQ", {"distributors": ("Mouser",)}, Decimal(3000), Decimal(3000)),
        ("DISTRIBUTOR_MOQ", {"distributors": ("Broker",)}, NOT_AVAILABLE, NO_RESULT),
        ("DISTRIBUTOR_ORDER_MULTIPLE", {}, Decimal(1), "1"),
        ("DISTRIBUTOR_ORDER_MULTIPLE", {"distributors": ("Broker",)}, NOT_AVAILABLE, ""),
        ("OCTOPART_DISTRIBUTOR_ORDER_MULTIPLE", {"distributors": ("Broker",)}, NOT_AVAILABLE, Decimal(1)),
        ("OCTOPART_DISTRIBUTOR_ORDER_MUTIPLE", {}, Decimal(1), Decimal(1)),
        ("DISTRIBUTOR_LEAD_TIME", {}, Decimal(42), "42"),
        ("DISTRIBUTOR_LEAD_TIME", {"distributors": ("Mouser",)}, NOT_AVAILABLE, ""),
        ("OCTOPART_DISTRIBUTOR_LEAD_TIME", {"distributors": ("Mouser",)}, NOT_AVAILABLE, Decimal(2147483647)),
        ("DISTRIBUTOR_PACKAGING", {"distributors": ("Digi-Key",)}, "Tube", "Tube"),
        ("DISTRIBUTOR_PACKAGING", {"distributors": ("Mouser",)}, "", ""),
        (
            "DISTRIBUTOR_URL",
            {"distributors": ("Digi-Key",)},
            "https://octopart.com/click/1",
            "https://octopart.com/click/1",
        ),
        ("DISTRIBUTOR_SKU", {"authorized": "yes"}, "LM317-ND", "LM317-ND"),
        ("DISTRIBUTOR_SKU", {}, "", "LM317-ND"),
        ("DETAIL_URL", {"manufacturer": "texas  INSTR"}, PART.url, PART.url),
        ("DETAIL_URL", {"manufacturer": "Maxim"}, PART.url, NO_RESULT),
        ("DISTRIBUTOR_SKU", {"manufacturer": "Maxim", "authorized": "yes"}, "LM317-ND", "LM317-ND"),
    ],
)
def test_functions_have_right_values_and_those_of_the_add_in(
    name: str, arguments: dict[str, object], right: CellValue, add_in: CellValue
) -> None:
    asked = request(name, **arguments)
    assert right_value(asked, PART, ALL) == right
    value = add_in_value(asked, PART, None, ALL)
    assert value == add_in
    assert type(value) is type(add_in)


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.looks_up])
def test_every_function_has_a_value_with_and_without_a_part(name: str) -> None:
    asked = request(name)
    assert right_value(asked, None, ALL) == NOT_AVAILABLE
    missing = add_in_value(asked, None, None, ALL)
    assert isinstance(missing, str)
    assert is_failure(missing)
    assert not (isinstance(value := add_in_value(asked, PART, None, ALL), str) and value.startswith("!!!"))


def test_the_service_s_own_message_is_an_error_text() -> None:
    assert add_in_value(request("DETAIL_URL"), None, "Bad mpn", ALL) == "ERROR: Bad mpn"
    assert add_in_value(request("OCTOPART_DESCRIPTION"), None, "Bad mpn", ALL) == "(no description retrieved)"


def test_what_the_login_excludes_is_empty() -> None:
    excluded = Excluded(datasheets=True, lead_times=True)
    bare = Part("LM317", "TI", offers=PART.offers)
    assert right_value(request("DATASHEET_URL"), bare, excluded) == ""
    assert right_value(request("DISTRIBUTOR_LEAD_TIME"), bare, excluded) == ""
    assert add_in_value(request("DATASHEET_URL"), bare, None, excluded) == ""
    assert add_in_value(request("DATASHEET_URL"), bare, None, ALL) == NO_DATASHEET
