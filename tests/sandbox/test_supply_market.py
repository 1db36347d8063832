"""Country and currency: effects of the arguments of part queries (contract graphql.md §1.1, §2)."""

from typing import Any

from support import cases
from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import units

PART = "54445"
OFFERS = (
    "sellers(includeBrokers: true) { company { id name isDistributorApi } offers { _cacheId id eligibleRegion updated"
    " inventoryLevel isCustomPricing prices { quantity price currency convertedPrice convertedCurrency"
    " conversionRate } } }"
)
QUERY = f"""
query($country: String! = "US", $currency: String! = "USD") {{
  supParts(ids: ["{PART}"], country: $country, currency: $currency) {{ {OFFERS} }}
}}
"""


async def offers(caller: SandboxClient, **variables: Any) -> dict[str, Any]:
    """The offers of one part by their id, each with its seller."""
    (part,) = (await caller.ask(QUERY, variables)).data["supParts"]
    return {
        offer["id"]: {**offer, "company": seller["company"]} for seller in part["sellers"] for offer in seller["offers"]
    }


async def test_the_country_selects_an_offer_variant_with_the_same_stock(caller: SandboxClient) -> None:
    here, there = await offers(caller), await offers(caller, country="GB")
    assert here.keys() == there.keys()
    moved = [id_ for id_ in here if here[id_]["eligibleRegion"] != there[id_]["eligibleRegion"]]
    assert moved
    assert {there[id_]["eligibleRegion"] for id_ in moved} == {"GB", None}
    assert {one["eligibleRegion"] for one in here.values()} <= {"US", None}
    for id_ in moved:
        assert here[id_]["inventoryLevel"] == there[id_]["inventoryLevel"]
    in_pounds = [price["currency"] for id_ in moved for price in there[id_]["prices"]]
    assert "GBP" in in_pounds


async def test_every_currency_converts_every_price_by_the_fixed_rate(caller: SandboxClient) -> None:
    for currency in units.PER_DOLLAR:
        found = await offers(caller, currency=currency)
        for price in (price for offer in found.values() for price in offer["prices"]):
            rate = units.exchange_rate(price["currency"] or "USD", currency)
            assert (price["convertedCurrency"], price["conversionRate"]) == (currency, rate)
            assert price["convertedPrice"] == price["price"] * price["conversionRate"]


@cases.parametrize("field, message")
async def test_an_unknown_code_or_duration_is_rejected_by_name(caller: SandboxClient, field: str, message: str) -> None:
    response = await caller.ask(f"{{ {field} }}")
    assert response.messages == [message]
    assert response.body["errors"][0]["path"] == [field.partition("(")[0]]
