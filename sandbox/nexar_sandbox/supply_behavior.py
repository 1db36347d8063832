"""Behavior of supply queries where the real service may differ: the defaults are the contract's, or the sandbox's own
choice where the contract has nothing."""

from dataclasses import dataclass
from typing import Annotated

from nexar_sandbox.catalog import rules


@dataclass(frozen=True, slots=True)
class SupplyBehavior(rules.SearchRules):
    """Supply queries and their values, beside the rules of searches; the annotation of each field describes it."""

    # supParts (contract graphql.md §1.1)
    parts_in_order: Annotated[bool, "parts are in the order of the ids"] = True
    unknown_parts_are_null: Annotated[bool, "an unknown id is null, else it is left out"] = True
    uids_lead_to_parts: Annotated[bool, "an id may be a v3 uid"] = True
    redirected_uids_lead_to_parts: Annotated[bool, "an id may be a v3 uid that is redirected"] = True

    # Lists (§1.1, §1.2)
    list_size: Annotated[int | None, "most entries of a list without arguments; none: all"] = None
    root_parent_id: Annotated[str | None, "`parentId` of the root category; none: its own id"] = None
    ancestors_from_root: Annotated[bool, "`ancestors` begin with the root"] = True
    descendants_counted: Annotated[bool, "`numParts` counts the categories below, too"] = True

    # Parts, sellers, offers (§1.2, §2.5, §2.6)
    part_urls_have_slugs: Annotated[bool, "`octopartUrl` is the site and the slug, else the site and the id"] = True
    brokers_left_out: Annotated[bool, "`sellers` without arguments have no brokers"] = True
    brokers_on_request: Annotated[bool, "`sellers` with `includeBrokers` have brokers"] = True
    unauthorized_by_default: Annotated[bool, "`sellers` without arguments include unauthorized ones"] = True
    authorized_only_obeyed: Annotated[bool, "`authorizedOnly` leaves out the other sellers"] = True
    seller_limit_obeyed: Annotated[bool, "`limit` of `sellers` cuts the list"] = True
    price_breaks_obeyed: Annotated[bool, "`priceBreaks` selects price breaks"] = True
    totals_without_brokers: Annotated[bool, "`totalAvail` counts no brokers beside other sellers with stock"] = True
    median_in_dollars: Annotated[bool, "`currency` of `medianPrice1000` is USD"] = True
    offer_ids_numeric: Annotated[bool, "the ids of all offers are numbers"] = False
    quote_stock_code: Annotated[int, "`inventoryLevel` of offers on request"] = -4
    time_fraction: Annotated[str, "fraction of a second in `updated`"] = ""
    time_zone: Annotated[str, "end of `updated`"] = "Z"

    # Prices (§1.5, §2.6)
    prices_by_quantity: Annotated[bool, "prices ascend by quantity"] = True
    price_currency_kept: Annotated[bool, "`price` is in the seller's currency, whatever is requested"] = True
    converted_currency: Annotated[str | None, "`convertedCurrency`; none: that of the request"] = None
    conversion_from_seller: Annotated[bool, "`conversionRate` converts from the seller's currency"] = True
    converted_prices_exact: Annotated[bool, "`convertedPrice` is not rounded"] = True

    # Specs and documents (§1.2, §2.6)
    si_values_in_base_units: Annotated[bool, "`siValue` is in SI base units, else as displayed"] = True
    lifecycle_value_bare: Annotated[bool, "`value` of the life cycle does not say how old it is"] = True
    spec_values_joined: Annotated[bool, "several values of a spec are one text, else several specs"] = True
    datasheet_collection: Annotated[str, "name of the collection of datasheets"] = "Datasheets"
    compliance_collection: Annotated[str, "name of the collection of compliance documents"] = "Compliance Documents"

    # Result sets (§1.2)
    bucket_count_max: Annotated[int | None, "most buckets of an aggregation; none: as many as requested"] = None
    frequent_buckets_first: Annotated[bool, "buckets descend by count"] = True
    own_categories_counted: Annotated[bool, "`categoryAgg` counts a part in its own category only"] = True
    bucket_values_in_si: Annotated[bool, "`floatValue` is in SI base units, else as displayed"] = True
    suggested_specs_added: Annotated[bool, "`WITH_SUGGESTED` adds specs to those that are named"] = True
    long_queries_warned: Annotated[bool, "a query of more words than are searched has a warning"] = True
    highlight_tag: Annotated[str, "element around the words of the query in `description`"] = "strong"
    in_stock_filters: Annotated[bool, "`inStockOnly` leaves out parts without stock"] = True
    search_start_obeyed: Annotated[bool, "`start` of a search skips parts"] = True
    hits_count_all: Annotated[bool, "`hits` counts those before `start`, too"] = True
    zero_limit_empties_page: Annotated[bool, "`limit: 0` of a search returns an empty page"] = True

    # supMultiMatch (§2.3)
    matches_in_order: Annotated[bool, "results are in the order of the queries"] = True
    references_echoed: Annotated[bool, "a result has the `reference` of its query"] = True
    equal_queries_separate: Annotated[bool, "equal queries have a result each"] = True
    match_start_obeyed: Annotated[bool, "`start` of a query skips parts"] = True
    zero_match_limit_empties_page: Annotated[bool, "`limit: 0` of a query of supMultiMatch returns no parts"] = True
    match_stock_obeyed: Annotated[bool, "`requireStockAvailable` leaves out parts without stock"] = True
    match_authorized_obeyed: Annotated[bool, "`requireAuthorizedSellers` leaves out parts without such a seller"] = True
    match_filters_obeyed: Annotated[bool, "`filters` among the options leave out parts"] = True
    empty_match_error: Annotated[str | None, "`error` of a query that names nothing"] = "Missing search filters"

    # Market (§2.1)
    unknown_countries_refused: Annotated[bool, "an unknown country is an error"] = True
    unknown_currencies_refused: Annotated[bool, "an unknown currency is an error"] = True
