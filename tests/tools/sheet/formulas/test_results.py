"""Values of every function, right ones and the add-ins' own."""

from decimal import Decimal
from typing import Any

import pytest
from support import cases
from tools.sheet.formulas.test_arguments import cell_value

from proxy.tools.sheet.formulas.add_in_results import NO_DATASHEET, NO_RESULT, add_in_value, is_failure
from proxy.tools.sheet.formulas.functions import FUNCTIONS
from proxy.tools.sheet.formulas.requests import PartRequest
from proxy.tools.sheet.formulas.results import Excluded, right_value
from proxy.tools.sheet.package.cells import CellError
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


@cases.parametrize("name, arguments, right, add_in")
def test_functions_have_right_values_and_those_of_the_add_in(
    name: str, arguments: dict[str, Any], right: Any, add_in: Any
) -> None:
    if "distributors" in arguments:
        arguments = {**arguments, "distributors": tuple(arguments["distributors"])}
    asked = request(name, **arguments)
    assert right_value(asked, PART, ALL) == cell_value(right)
    expected = NO_RESULT if add_in == "NO_RESULT" else cell_value(add_in)
    value = add_in_value(asked, PART, None, ALL)
    assert (type(value), value) == (type(expected), expected)


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
