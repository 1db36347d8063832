"""Behavior of the simulated services where the real ones may differ: the defaults are the contract's, or the sandbox's
own choice where the contract has nothing.

`nexar-sandbox --as observed.json` sets what a run of `v3bridge conform` has observed.
"""

from dataclasses import dataclass
from typing import Annotated

from nexar_sandbox.catalog import rules

# Messages and names of errors are no passwords (S105).
INVALID_TOKEN = "Token validation failed. Please provide a valid access token."  # noqa: S105
PART_LIMIT = (
    "You have exceeded your part limit of {limit}. Please upgrade your plan. "
    "Contact us at api@nexar.com for assistance."
)
UNKNOWN_FIELD = "The field `{field}` does not exist on the type `{type}`."


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


@dataclass(frozen=True, slots=True)
class Behavior(SupplyBehavior):
    """One field for each behavior that can be changed, by the contract's sections; the annotation describes it."""

    # Ranges and sizes of supply queries (contract graphql.md §2.1, §2.2)
    search_limit_max: Annotated[int, "largest `limit` of a search"] = 100
    search_start_max: Annotated[int, "largest `start` of a search"] = 1000
    page_end_max: Annotated[int, "largest sum of `start` and `limit`"] = 1100
    all_range_errors: Annotated[bool, "each argument out of its range gets an error, not only the first"] = True
    range_error_status: Annotated[int, "HTTP status of range errors"] = 200
    range_error_path: Annotated[bool, "range errors have `path` and `locations`"] = True
    range_error_data: Annotated[bool, "a body with range errors has `data`, null"] = False
    multi_match_parts_max: Annotated[int, "largest sum of the limits of a multi-match"] = 100
    multi_match_queries_max: Annotated[int, "most queries of a multi-match"] = 100
    remote_errors: Annotated[bool, "errors of fields and of the part limit have `remote` and `schemaName`"] = True

    # GraphQL over HTTP (§3.1)
    trailing_slash: Annotated[bool, "`/graphql/` is served like `/graphql`"] = True
    get_requests: Annotated[bool, "a query may be sent by GET"] = True
    other_content_types: Annotated[bool, "a request body of any content type is read as JSON"] = False
    batching: Annotated[bool, "a list of requests is executed, and its response is a list"] = False
    token_header: Annotated[bool, "a token may be sent as `token`"] = True
    introspection: Annotated[bool, "introspection is allowed"] = True
    introspection_needs_token: Annotated[bool, "introspection needs a token"] = False
    default_media_type: Annotated[str, "media type of responses to clients that name none"] = "application/json"
    graphql_media_type: Annotated[bool, "`application/graphql-response+json` can be requested"] = True
    charset: Annotated[bool, "the content type names its charset"] = True
    request_id: Annotated[bool, "a body without errors has a `requestId`"] = True
    error_request_id: Annotated[bool, "a body with errors has a `requestId`"] = True
    escaped_ascii: Annotated[str, "ASCII characters that are escaped in JSON"] = "+&<>'"
    escaped_unicode: Annotated[bool, "characters beyond ASCII are escaped in JSON"] = True

    # Statuses and errors (§3.2, §3.3)
    missing_token_status: Annotated[int, "HTTP status without a token"] = 401
    missing_token_code: Annotated[str, "code of the error without a token"] = "AuthInvalidToken"  # noqa: S105
    invalid_token_status: Annotated[int, "HTTP status for an invalid or expired token"] = 401
    invalid_token_code: Annotated[str, "code of the error for an invalid token"] = "AuthInvalidToken"  # noqa: S105
    invalid_token_message: Annotated[str, "message for a missing or invalid token"] = INVALID_TOKEN
    token_error_path: Annotated[bool, "token errors have `path` and `locations`"] = True
    token_error_data: Annotated[bool, "a body with a token error has `data`, null"] = False
    token_before_document: Annotated[bool, "a token error comes before errors of the document"] = True
    document_error_status: Annotated[int, "HTTP status of an invalid document, if no media type is named"] = 400
    document_error_status_json: Annotated[int, "the same, if `application/json` is named"] = 200
    unknown_field_message: Annotated[str, "message for a field that does not exist"] = UNKNOWN_FIELD
    empty_selections: Annotated[bool, "an object without sub-fields is null instead of an error"] = True
    syntax_error_code: Annotated[str, "code of a document that cannot be parsed"] = "HC0011"
    variable_error_code: Annotated[str, "code of a variable with a value of a wrong type"] = "HC0016"
    null_variable_code: Annotated[str, "code of a variable that must not be null"] = "HC0018"
    malformed_body_code: Annotated[str, "code of a body that is not JSON"] = "HC0012"
    missing_query_code: Annotated[str, "code of a request without a document"] = "HC0013"
    persisted_query_code: Annotated[str, "code for a document by its id"] = "HC0020"
    scope_error_code: Annotated[str, "code for a token without the needed scope"] = "AUTH_NOT_AUTHORIZED"
    scope_error_status: Annotated[int, "HTTP status for a token without the needed scope"] = 200

    # Plans, usage and administration (§3.2, §5.4, §6)
    part_limit_status: Annotated[int, "HTTP status of an exhausted part limit"] = 200
    part_limit_message: Annotated[str, "message of an exhausted part limit"] = PART_LIMIT
    part_limit_code: Annotated[str | None, "code of an exhausted part limit"] = None
    part_limit_data: Annotated[bool, "a body with an exhausted part limit has `data`, null"] = True
    free_counts: Annotated[bool, "a search with `limit: 0` is executed although the part limit is exhausted"] = False
    free_lists: Annotated[bool, "lists are sent although the part limit is exhausted"] = True
    removed_parts_billed: Annotated[bool, "parts that an error removes from a response are billed"] = False
    feature_error_path: Annotated[bool, "the error of a field outside the plan has its `path`"] = True
    feature_error_code: Annotated[str | None, "code of a field outside the plan"] = None
    admin_by_applications: Annotated[bool, "`adm*` queries accept an application's token"] = True

    # Identity (§4)
    token_type: Annotated[str, "`token_type` of a token response"] = "Bearer"  # noqa: S105
    token_lifetime: Annotated[int, "seconds that an access token is valid"] = 86_400
    expires_in_as_text: Annotated[bool, "`expires_in` is a string"] = False
    token_scope: Annotated[bool, "a token response has `scope`"] = True
    scope_required: Annotated[bool, "a token request needs a scope"] = False
    earlier_tokens: Annotated[bool, "a new token leaves those of equal requests valid"] = True
    basic_authentication: Annotated[bool, "client credentials may be in a Basic header"] = True
    token_error_status: Annotated[int, "HTTP status of a refused token request"] = 400
    wrong_secret_error: Annotated[str, "error for a wrong secret"] = "invalid_client"  # noqa: S105
    unknown_client_error: Annotated[str, "error for an unknown client id"] = "invalid_client"
    unknown_scopes: Annotated[bool, "unknown scopes of a token request are ignored"] = False
    unknown_grant_error: Annotated[str, "error for an unknown grant type"] = "unsupported_grant_type"
    missing_grant_error: Annotated[str, "error for a token request without grant type"] = "unsupported_grant_type"
    forbidden_grant_error: Annotated[str, "error for a grant that the application may not use"] = "unauthorized_client"
    no_store: Annotated[bool, "token responses must not be cached"] = True
    error_description: Annotated[bool, "a refused token request has an `error_description`"] = False
    json_token_requests: Annotated[bool, "a token request may be JSON"] = False
    jwt_claims: Annotated[tuple[str, ...], "further claims of an application's token"] = ()
    jwt_scope_as_text: Annotated[bool, "the claim `scope` is one string, as in RFC 9068"] = False
    jwt_validity: Annotated[int, "seconds by which `exp` is later than `expires_in` says"] = 0
    discovery: Annotated[bool, "the identity service has a discovery document"] = True

    def __post_init__(self) -> None:
        if self.token_lifetime < 1:
            raise ValueError(f"token_lifetime must be at least 1 second, not {self.token_lifetime}")
        for name in type(self).__slots__:
            if name.endswith("_status") and not 200 <= getattr(self, name) <= 599:
                raise ValueError(f"{name} must be an HTTP status, 200 to 599, not {getattr(self, name)}")
