"""Country, currency and live data: effects of the arguments of part queries (contract graphql.md §1.1, §2)."""

from typing import Any

import pytest
from support import cases
from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import currencies, store
from nexar_sandbox.graphql import distributors
from proxy.kit import clock

PART = "54445"
OFFERS = (
    "sellers(includeBrokers: true) { company { id name isDistributorApi } offers { _cacheId id eligibleRegion updated"
    " inventoryLevel isCustomPricing prices { quantity price currency convertedPrice convertedCurrency"
    " conversionRate } } }"
)
QUERY = f"""
query($country: String! = "US", $currency: String! = "USD", $live: Boolean, $within: String! = "3s",
  $own: [SupApiCredentials!]) {{
  supParts(ids: ["{PART}"], country: $country, currency: $currency, distributorApi: $live,
    distributorApiTimeout: $within, customPricingCredentials: $own) {{ {OFFERS} }}
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
    for currency in currencies.PER_DOLLAR:
        found = await offers(caller, currency=currency)
        for price in (price for offer in found.values() for price in offer["prices"]):
            rate = currencies.exchange_rate(price["currency"] or "USD", currency)
            assert (price["convertedCurrency"], price["conversionRate"]) == (currency, rate)
            assert price["convertedPrice"] == price["price"] * price["conversionRate"]


@cases.parametrize("field, message")
async def test_an_unknown_code_or_duration_is_rejected_by_name(caller: SandboxClient, field: str, message: str) -> None:
    response = await caller.ask(f"{{ {field} }}")
    assert response.messages == [message]
    assert response.body["errors"][0]["path"] == [field.partition("(")[0]]


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-3s", "3sx", "1,5s", "٣s"])
def test_an_invalid_duration_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="distributorApiTimeout"):
        distributors.parse_duration(text)


def test_durations_may_have_several_units_and_fractions() -> None:
    assert [distributors.parse_duration(one) for one in ("3s", "500ms", "1m30s", "1.5h")] == [3.0, 0.5, 90.0, 5400.0]


async def test_live_data_has_the_current_time_for_sellers_with_an_api_only(
    caller: SandboxClient, manual_clock: clock.ManualClock
) -> None:
    kept, asked = await offers(caller), await offers(caller, live=True)
    assert manual_clock.now() == 1_700_000_000
    for id_, offer in asked.items():
        changed = offer["company"]["isDistributorApi"]
        assert (offer["updated"] == "2023-11-14T22:13:20Z") == changed
        assert offer["prices"] == kept[id_]["prices"]
        assert offer["isCustomPricing"] is False
    assert {offer["company"]["isDistributorApi"] for offer in asked.values()} == {True, False}


async def test_a_seller_that_does_not_respond_in_time_has_catalog_data(caller: SandboxClient) -> None:
    async def fresh(within: str) -> set[str]:
        found = await offers(caller, live=True, within=within)
        return {one["company"]["id"] for one in found.values() if one["updated"].startswith("2023-11-14")}

    none, some, directory = await fresh("99ms"), await fresh("500ms"), await fresh("1s")
    assert not none
    assert none < some < directory


async def test_a_customer_of_a_seller_gets_custom_prices(caller: SandboxClient) -> None:
    kept = await offers(caller)
    priced = {one["company"]["id"]: one["company"] for one in kept.values() if one["prices"]}
    able = [company for company in priced.values() if company["isDistributorApi"]]
    mine, no_secret = able[:2]
    own = [
        {"apiName": mine["name"].upper(), "clientId": "me", "clientSecret": "mine"},
        {"apiName": no_secret["name"], "username": "me"},
    ]
    found = await offers(caller, live=True, own=own)
    custom = {id_ for id_, one in found.items() if one["isCustomPricing"]}
    assert {found[id_]["company"]["id"] for id_ in custom} == {mine["id"]}
    for id_ in custom:
        for price, listed in zip(found[id_]["prices"], kept[id_]["prices"], strict=True):
            assert price["quantity"] == listed["quantity"]
            assert price["price"] < listed["price"]
            assert price["convertedPrice"] == price["price"] * price["conversionRate"]
    assert any(found[id_]["prices"] for id_ in custom)
    assert all(found[id_]["_cacheId"] != kept[id_]["_cacheId"] for id_ in custom)
    assert await offers(caller, own=own) == kept


async def test_credentials_of_an_unknown_api_are_rejected_without_repeating_them(
    caller: SandboxClient,
) -> None:
    response = await caller.ask(QUERY, {"live": True, "own": [{"apiName": "Acme", "apiKey": "s3cret"}]})
    assert response.messages == ["customPricingCredentials: there is no API 'Acme'"]
    assert b"s3cret" not in response.raw


async def test_a_cart_link_has_its_market_and_rejects_empty_lines(
    caller: SandboxClient, catalog: store.Catalog
) -> None:
    part = catalog.part(PART)
    assert part is not None
    seller = next(one for one in catalog.sellers_of(part) if one.company.is_octocart_supported and one.offers)
    query = (
        "query($i: [SupOctocartPartsBySellerInput!]!) {"
        ' supOctocart(items: $i, country: "DE", currency: "EUR") { cartUrl } }'
    )

    def cart(quantity: int) -> dict[str, Any]:
        line = {"partId": PART, "offerId": seller.offers[0].id, "quantity": quantity}
        return {"i": [{"sellerId": seller.company.id, "items": [line]}]}

    (link,) = (await caller.ask(query, cart(3))).data["supOctocart"]
    assert link["cartUrl"].endswith(f"?country=DE&currency=EUR&items={seller.offers[0].id}:3")
    assert (await caller.ask(query, cart(0))).messages == ["quantity must be at least 1, not 0"]
