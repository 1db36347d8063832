"""Deviations of the sandbox from the contract, by name: each changes the behavior in one respect.

They show that a check of the assumptions finds what differs. A name is that of the assumption that it contradicts.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from nexar_sandbox.behavior import Behavior

DEVIATIONS: Mapping[str, Mapping[str, Any]] = {
    # Parts by id, lists
    "part-order": {"parts_in_order": False},
    "unknown-part": {"unknown_parts_are_null": False},
    "part-by-uid": {"uids_lead_to_parts": False},
    "part-by-redirected-uid": {"redirected_uids_lead_to_parts": False},
    "whole-lists": {"list_size": 100},
    "root-parent": {"root_parent_id": "0"},
    "ancestor-order": {"ancestors_from_root": False},
    "category-parts": {"descendants_counted": False},
    # Matches
    "match-order": {"matches_in_order": False},
    "match-reference": {"references_echoed": False},
    "match-per-query": {"equal_queries_separate": False},
    "match-error": {"empty_match_error": "A query needs an MPN, a SKU, a manufacturer or a seller."},
    "match-punctuation": {"punctuation_ignored": False},
    "match-case": {"case_ignored": False},
    "match-whole-number": {"whole_numbers_match": False},
    "match-several-makers": {"makers_share_numbers": False},
    "manufacturer-case": {"company_case_ignored": False},
    "manufacturer-alias": {"aliases_known": False},
    "manufacturer-further-words": {"further_words_allowed": False},
    "unknown-manufacturer": {"unknown_makers_match_nothing": False},
    "order-code-of-seller": {"seller_limits_sku": False},
    "mpn-or-sku-by-order-code": {"mpn_or_sku_takes_skus": False},
    "match-in-stock": {"match_stock_obeyed": False},
    "match-authorized": {"match_authorized_obeyed": False},
    "match-filters": {"match_filters_obeyed": False},
    "match-pages": {"match_start_obeyed": False},
    "zero-match-limit": {"zero_match_limit_empties_page": False},
    "hundred-match-queries": {"multi_match_queries_max": 50},
    # Searches
    "number-search-by-piece": {"numbers_found_by_piece": False},
    "number-search-order": {"equal_numbers_first": False},
    "hits-before-start": {"hits_count_all": False},
    "search-every-word": {"every_word_needed": False},
    "search-last-word": {"last_word_is_prefix": False},
    "search-without-query": {"empty_query_finds_all": False},
    "search-warnings": {"long_queries_warned": False},
    "search-description": {"highlight_tag": "em"},
    "search-pages": {"search_start_obeyed": False},
    "text-search-order": {"equal_numbers_first_in_text": False},
    "zero-search-limit": {"zero_limit_empties_page": False},
    "largest-page": {"page_end_max": 1000},
    "unknown-country": {"unknown_countries_refused": False},
    "unknown-currency": {"unknown_currencies_refused": False},
    # Filters and sort keys
    "manufacturer-filter-by-name": {"names_filter_makers": False},
    "seller-filter-by-name": {"names_filter_sellers": False},
    "filter-values": {"values_are_alternatives": False},
    "filter-keys": {"keys_are_combined": False},
    "category-filter": {"categories_include_descendants": False},
    "range-ends": {"ranges_include_ends": False},
    "range-open-end": {"ranges_may_be_open": False},
    "range-exponent": {"exponents_in_ranges": False},
    "value-filter-number": {"plain_numbers_filter": False},
    "value-filter-displayed": {"displayed_values_filter": False},
    "in-stock-filter": {"in_stock_filters": False},
    "unknown-filter": {"unknown_filters_refused": False},
    "sort-keys": {"sort_keys_missing": frozenset({"num_authsuppliers"})},
    "unknown-sort-key": {"unknown_sorts_refused": False},
    "sort-direction": {"descending_sorts": False},
    # Aggregations
    "bucket-count": {"bucket_count_max": 10},
    "bucket-order": {"frequent_buckets_first": False},
    "category-counts": {"own_categories_counted": False},
    "spec-bucket-units": {"bucket_values_in_si": False},
    "suggested-specs": {"suggested_specs_added": False},
    # Parts and offers
    "part-url": {"part_urls_have_slugs": False},
    "sellers-without-brokers": {"brokers_left_out": False},
    "brokers-on-request": {"brokers_on_request": False},
    "unauthorized-sellers": {"unauthorized_by_default": False},
    "authorized-sellers": {"authorized_only_obeyed": False},
    "seller-limit": {"seller_limit_obeyed": False},
    "price-breaks": {"price_breaks_obeyed": False},
    "offer-ids": {"offer_ids_numeric": True},
    "stock-codes": {"quote_stock_code": -5},
    "total-stock": {"totals_without_brokers": False},
    "median-price": {"median_in_dollars": False},
    "time-zone": {"time_zone": "+00:00"},
    "time-precision": {"time_fraction": ".000"},
    "price-order": {"prices_by_quantity": False},
    "price-currency": {"price_currency_kept": False},
    "converted-currency": {"converted_currency": "EUR"},
    "conversion-rate": {"conversion_from_seller": False},
    "converted-price": {"converted_prices_exact": False},
    # Specs and documents
    "spec-si-values": {"si_values_in_base_units": False},
    "lifecycle-value": {"lifecycle_value_bare": False},
    "spec-lists": {"spec_values_joined": False},
    "datasheet-collection": {"datasheet_collection": "Product Datasheets"},
    "compliance-collection": {"compliance_collection": "Compliance"},
    # Ranges and sizes
    "search-limit-range": {"search_limit_max": 500},
    "search-start-range": {"search_start_max": 5000},
    "range-errors-together": {"all_range_errors": False},
    "range-error-status": {"range_error_status": 400},
    "range-error-path": {"range_error_path": False},
    "range-error-data": {"range_error_data": True},
    "remote-errors": {"remote_errors": False},
    "match-limit-sum": {"multi_match_parts_max": 1000},
    "match-query-count": {"multi_match_queries_max": 1000},
    # GraphQL over HTTP
    "trailing-slash": {"trailing_slash": False},
    "query-by-get": {"get_requests": False},
    "other-content-types": {"other_content_types": True},
    "batched-requests": {"batching": True},
    "token-header": {"token_header": False},
    "introspection": {"introspection": False},
    "introspection-without-token": {"introspection_needs_token": True},
    "default-media-type": {"default_media_type": "application/graphql-response+json"},
    "graphql-media-type": {"graphql_media_type": False},
    "response-charset": {"charset": False},
    "request-id": {"request_id": False},
    "request-id-of-errors": {"error_request_id": False},
    "escaped-ascii": {"escaped_ascii": ""},
    "escaped-unicode": {"escaped_unicode": False},
    # Statuses and errors
    "missing-token-status": {"missing_token_status": 200},
    "missing-token-code": {"missing_token_code": "AUTH_NOT_AUTHENTICATED"},
    "invalid-token-status": {"invalid_token_status": 500},
    "invalid-token-code": {"invalid_token_code": "AUTH_NOT_AUTHENTICATED"},
    "invalid-token-message": {"invalid_token_message": "The token is invalid."},
    "token-error-path": {"token_error_path": False},
    "token-error-data": {"token_error_data": True},
    "token-before-document": {"token_before_document": False},
    "document-error-status": {"document_error_status": 200},
    "document-error-status-json": {"document_error_status_json": 400},
    "unknown-field-message": {"unknown_field_message": "Cannot query field '{field}' on type '{type}'."},
    "empty-selection": {"empty_selections": False},
    "syntax-error-code": {"syntax_error_code": "HC0014"},
    "wrong-variable-code": {"variable_error_code": "HC0011"},
    "null-variable-code": {"null_variable_code": "HC0016"},
    "malformed-body-code": {"malformed_body_code": "HC0011"},
    "missing-query-code": {"missing_query_code": "HC0009"},
    "persisted-query-code": {"persisted_query_code": "PERSISTED_QUERY_NOT_FOUND"},
    "missing-scope-code": {"scope_error_code": "AuthInvalidToken"},
    "missing-scope-status": {"scope_error_status": 403},
    # Plans, usage and administration
    "part-limit-status": {"part_limit_status": 500},
    "part-limit-message": {"part_limit_message": "Your quota of {limit} parts is exhausted."},
    "part-limit-code": {"part_limit_code": "PartLimitExceeded"},
    "part-limit-data": {"part_limit_data": False},
    "counts-without-parts": {"free_counts": True},
    "lists-without-parts": {"free_lists": False},
    "missing-feature-path": {"feature_error_path": False},
    "missing-feature-code": {"feature_error_code": "AUTH_NOT_AUTHORIZED"},
    "administration-by-applications": {"admin_by_applications": False},
    # Identity
    "token-type": {"token_type": "JWT"},
    "token-lifetime": {"token_lifetime": 3600},
    "expires-in-number": {"expires_in_as_text": True},
    "token-scope": {"token_scope": False},
    "scope-optional": {"scope_required": True},
    "earlier-tokens": {"earlier_tokens": False},
    "basic-authentication": {"basic_authentication": False},
    "token-error-status": {"token_error_status": 401},
    "wrong-secret": {"wrong_secret_error": "access_denied"},
    "unknown-client": {"unknown_client_error": "unauthorized_client"},
    "unknown-scope": {"unknown_scopes": True},
    "unknown-grant": {"unknown_grant_error": "invalid_request"},
    "missing-grant": {"missing_grant_error": "invalid_request"},
    "forbidden-grant": {"forbidden_grant_error": "invalid_grant"},
    "token-cache-control": {"no_store": False},
    "token-error-description": {"error_description": True},
    "token-request-in-json": {"json_token_requests": True},
    "jwt-claims": {"jwt_claims": ("organization_id",)},
    "jwt-scope": {"jwt_scope_as_text": True},
    "jwt-validity": {"jwt_validity": 600},
    "discovery": {"discovery": False},
}
"""Changed fields of `Behavior` by the name of the deviation."""


def deviate(names: Iterable[str], base: Behavior | None = None) -> Behavior:
    """Return `base`, by default the contract's behavior, with these deviations. Raises ValueError for an unknown name,
    and for two deviations that change the same field to different values."""
    changes: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"unknown deviation {name!r}; {_known(name)}")
        for field, value in DEVIATIONS[name].items():
            if changes.setdefault(field, value) != value:
                raise ValueError(f"the deviation {name} contradicts another one: both change {field}")
    return replace(base or Behavior(), **changes)


def _known(name: str) -> str:
    similar = difflib.get_close_matches(name, DEVIATIONS, n=3)
    return f"similar ones are {', '.join(similar)}" if similar else f"known are {', '.join(sorted(DEVIATIONS))}"
