"""Parts: matches, sellers, offers, prices, countries and currencies (contract graphql.md §1 and §2)."""

from typing import Any

from support import cases
from support.sandbox_client import SandboxClient

from nexar_sandbox.catalog import records, store, units
from nexar_sandbox.graphql import context
from nexar_sandbox.graphql.resolvers import offers, search

TI = "54445"


async def test_multi_match_results_have_the_order_and_references_of_the_queries(caller: SandboxClient) -> None:
    query = "query($q: [SupPartMatchQuery!]!) { supMultiMatch(queries: $q) { reference hits error parts { mpn } } }"
    queries = [
        {"mpn": "sn74 s74.n", "manufacturer": "TI", "reference": "a"},
        {"mpn": "SN74S74N", "limit": 2},
        {"mpn": "SN74S74N", "manufacturer": "Texas Instrumentos", "reference": "c"},
        {"reference": "d"},
        {"mpn": "SN74S74N", "limit": 0},
        {"mpn": "SN74S74N", "start": 1000},
        {"sku": "67K1122", "seller": "Newark"},
    ]
    found = (await caller.ask(query, {"q": queries})).data["supMultiMatch"]
    assert [one["reference"] for one in found] == ["a", None, "c", "d", None, None, None]
    assert [one["hits"] for one in found] == [1, 4, 0, 0, 4, 4, 1]
    assert [len(one["parts"]) for one in found] == [1, 2, 0, 0, 0, 0, 1]
    assert [one["error"] for one in found] == [None, None, None, "Missing search filters", None, None, None]


async def test_multi_match_options_filter_parts_and_not_sellers(caller: SandboxClient, catalog: store.Catalog) -> None:
    query = (
        'query($o: SupPartMatchOptions) { supMultiMatch(options: $o, queries: [{mpn: "SN74S74N", limit: 9}])'
        " { hits parts { id sellers { company { id } } } } }"
    )

    async def found(**options: Any) -> Any:
        return (await caller.ask(query, {"o": options})).data["supMultiMatch"][0]

    plain, stocked = await found(), await found(requireStockAvailable=True)
    one = await found(filters={"manufacturer_id": ["370"], "distributor_id": ["459"]})
    assert plain["hits"] > stocked["hits"] > 0
    assert [part["id"] for part in one["parts"]] == [TI]
    assert len(one["parts"][0]["sellers"]) > 1


async def test_parts_are_found_by_id_and_by_v3_uid_even_a_redirected_one(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supParts(ids: ["103cdb613d20cffb", "bd4d768f82c5628a", "54445", "no such id"]) { id v3uid } }'
    )
    redirected, survivor, by_id, nothing = response.data["supParts"]
    assert redirected == survivor
    assert survivor["v3uid"] == "bd4d768f82c5628a"
    assert (by_id["id"], nothing) == (TI, None)


async def test_a_search_returns_a_page_and_the_number_of_all_hits(caller: SandboxClient) -> None:
    query = (
        'query($s: Int, $l: Int) { supSearch(q: "resistor", start: $s, limit: $l)'
        " { hits total results { part { id } } } }"
    )

    async def page(start: int | None, limit: int | None) -> tuple[int, list[str]]:
        found = (await caller.ask(query, {"s": start, "l": limit})).data["supSearch"]
        assert found["hits"] == found["total"]
        return found["hits"], [one["part"]["id"] for one in found["results"]]

    hits, first = await page(None, None)
    assert hits > len(first) == 10
    assert (await page(0, 4))[1] + (await page(4, 6))[1] == first
    assert await page(0, 0) == (hits, [])


async def test_a_search_without_hits_has_null_results_and_an_empty_page_none(caller: SandboxClient) -> None:
    query = "query($q: String!, $start: Int) { supSearch(q: $q, start: $start) { hits results { part { mpn } } } }"
    assert (await caller.ask(query, {"q": "no such part"})).data["supSearch"] == {"hits": 0, "results": None}
    behind = (await caller.ask(query, {"q": "SN74S74N", "start": 900})).data["supSearch"]
    assert (behind["hits"] > 0, behind["results"]) == (True, [])


async def test_descriptions_highlight_the_words_of_the_query(caller: SandboxClient) -> None:
    response = await caller.ask('{ supSearch(q: "flip-flop preset", limit: 1) { results { description explain } } }')
    (result,) = response.data["supSearch"]["results"]
    assert "<strong>preset</strong>" in result["description"]
    assert result["explain"] == ""


@cases.parametrize("text, query, marked")
def test_whole_words_and_the_last_prefix_are_highlighted(text: str, query: str, marked: str) -> None:
    assert search.highlighted(text, query) == marked


async def test_too_many_words_give_a_warning(caller: SandboxClient) -> None:
    query = "query($q: String) { supSearch(q: $q) { warnings } }"
    assert (await caller.ask(query, {"q": "a b"})).data["supSearch"]["warnings"] is None
    many = (await caller.ask(query, {"q": "a " * 40})).data["supSearch"]["warnings"]
    assert "32 words" in many[0]


async def test_brokers_are_excluded_by_default(caller: SandboxClient, catalog: store.Catalog) -> None:
    shown = ((part, catalog.sellers_of(part)) for part in catalog.parts())
    part, sellers = next(pair for pair in shown if len({(one.is_broker, one.is_authorized) for one in pair[1]}) == 3)
    query = (
        "query($id: [String!]!) { supParts(ids: $id) { plain: sellers { isBroker isAuthorized }"
        " all: sellers(includeBrokers: true) { isBroker } only: sellers(authorizedOnly: true) { isAuthorized }"
        " some: sellers(start: 1, limit: 2) { isBroker isAuthorized } none: sellers(limit: 0) { isBroker } } }"
    )
    (found,) = (await caller.ask(query, {"id": [part.id]})).data["supParts"]
    assert len(found["all"]) == len(sellers)
    assert len(found["plain"]) == sum(not one.is_broker for one in sellers)
    assert not any(one["isBroker"] for one in found["plain"])
    assert not all(one["isAuthorized"] for one in found["plain"])
    assert all(one["isAuthorized"] for one in found["only"])
    assert found["some"] == found["plain"][1:3]
    assert found["none"] == []


def test_a_price_converts_exactly_like_the_vendors_example() -> None:
    view = offers.price(records.PriceBreak(1, 134.21, "USD"), context.Market("US", "EUR"), ("key",))
    assert (view.converted_price, view.conversion_rate) == (114.07648685000001, 0.849985)


def test_a_price_without_currency_is_in_dollars() -> None:
    view = offers.price(records.PriceBreak(1, 2.0, ""), context.Market("US", "USD"), ("key",))
    assert (view.currency, view.converted_price, view.converted_currency) == ("", 2.0, "USD")


@cases.parametrize("asked, shown")
def test_price_breaks_are_those_valid_at_the_given_quantities(asked: list[int] | None, shown: list[int]) -> None:
    breaks = [
        records.PriceBreak(1, 2.0, "USD"),
        records.PriceBreak(1, 1.8, "EUR"),
        records.PriceBreak(10, 1.5, "USD"),
        records.PriceBreak(100, 1.0, "USD"),
    ]
    assert [one.quantity for one in offers.breaks_at(breaks, asked)] == shown


async def test_links_lead_to_the_site_with_the_slug(caller: SandboxClient) -> None:
    response = await caller.ask(
        '{ supParts(ids: ["54445"]) { slug octopartUrl cad { hasKicad } cadRequestUrl'
        " sellers { offers { clickUrl } } } }"
    )
    (part,) = response.data["supParts"]
    assert part["octopartUrl"] == "https://octopart.com" + part["slug"]
    assert (part["cad"] is None) == (part["cadRequestUrl"] is not None)
    clicks = [offer["clickUrl"] for seller in part["sellers"] for offer in seller["offers"]]
    assert len(set(clicks)) == len(clicks) > 5
    assert all(click.startswith("https://octopart.com/opatz8j6/a1?t=") for click in clicks)


async def test_offers_are_found_by_their_references(caller: SandboxClient, catalog: store.Catalog) -> None:
    part = catalog.part(TI)
    assert part is not None
    seller = next(one for one in catalog.sellers_of(part) if one.offers)
    query = (
        'query($r: [SupOfferReference!]!) { supPartOffers(country: "US", currency: "USD", references: $r)'
        " { partId sellerId offer { id sku } } }"
    )
    wanted = {"partId": TI, "offerId": seller.offers[0].id}
    unknown = [{"partId": TI, "offerId": "none"}, {"partId": "none", "offerId": wanted["offerId"]}]
    found = (await caller.ask(query, {"r": [wanted, *unknown]})).data["supPartOffers"]
    offer = {"id": seller.offers[0].id, "sku": seller.offers[0].sku}
    assert found == [{"partId": TI, "sellerId": seller.company.id, "offer": offer}, None, None]


def test_an_unknown_country_has_its_code_as_name() -> None:
    assert offers.country_of("GB") == {"name": "United Kingdom", "countryCode": "GB", "continentCode": "EU"}
    assert offers.country_of("QQ") == {"name": "QQ", "countryCode": "QQ", "continentCode": ""}


OFFERS = """query($country: String! = "US", $currency: String! = "USD") {
  supParts(ids: ["54445"], country: $country, currency: $currency) {
    medianPrice1000 { quantity currency convertedCurrency }
    sellers(includeBrokers: true) { offers { id eligibleRegion inventoryLevel
      prices { price currency convertedPrice convertedCurrency conversionRate } } } } }"""


async def offers_by_id(caller: SandboxClient, **variables: Any) -> dict[str, Any]:
    """The offers of one part."""
    (part,) = (await caller.ask(OFFERS, variables)).data["supParts"]
    median = {"quantity": 1000, "currency": "USD", "convertedCurrency": variables.get("currency", "USD")}
    assert part["medianPrice1000"] == median
    return {offer["id"]: offer for seller in part["sellers"] for offer in seller["offers"]}


async def test_the_country_selects_an_offer_variant_with_the_same_stock(caller: SandboxClient) -> None:
    here, there = await offers_by_id(caller), await offers_by_id(caller, country="GB")
    assert here.keys() == there.keys()
    moved = [id_ for id_ in here if here[id_]["eligibleRegion"] != there[id_]["eligibleRegion"]]
    assert moved
    assert {there[id_]["eligibleRegion"] for id_ in moved} == {"GB", None}
    assert {one["eligibleRegion"] for one in here.values()} <= {"US", None}
    for id_ in moved:
        assert here[id_]["inventoryLevel"] == there[id_]["inventoryLevel"]
    british = [there[id_]["prices"] for id_ in moved if there[id_]["eligibleRegion"] == "GB"]
    assert {prices[0]["currency"] for prices in british if prices} == {"GBP"}


async def test_every_currency_converts_every_price_by_the_fixed_rate(caller: SandboxClient) -> None:
    for currency in units.PER_DOLLAR:
        found = await offers_by_id(caller, currency=currency)
        for price in (price for offer in found.values() for price in offer["prices"]):
            rate = units.exchange_rate(price["currency"] or "USD", currency)
            assert (price["convertedCurrency"], price["conversionRate"]) == (currency, rate)
            assert price["convertedPrice"] == price["price"] * price["conversionRate"]


@cases.parametrize("field, message")
async def test_an_unknown_code_or_duration_is_rejected_by_name(caller: SandboxClient, field: str, message: str) -> None:
    response = await caller.ask(f"{{ {field} }}")
    assert response.messages == [message]
    assert response.body["errors"][0]["path"] == [field.partition("(")[0]]
