"""Deviations of the sandbox from the contract, by name: each changes the behaviour in one respect.

They show that a check of the assumptions finds what differs. A name is that of the assumption that it contradicts.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from proxy.sandbox.behaviour import Behaviour

DEVIATIONS: Mapping[str, Mapping[str, Any]] = {
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
    "part-id-count": {"part_ids_max": 1000},
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
"""Changed fields of `Behaviour` by the name of the deviation."""


def behaviour(names: Iterable[str]) -> Behaviour:
    """Return the behaviour with these deviations. Raises ValueError for an unknown name, and for two deviations that
    change the same field to different values."""
    changes: dict[str, Any] = {}
    for name in names:
        if name not in DEVIATIONS:
            raise ValueError(f"unknown deviation {name!r}; {_known(name)}")
        for field, value in DEVIATIONS[name].items():
            if changes.setdefault(field, value) != value:
                raise ValueError(f"the deviation {name} contradicts another one: both change {field}")
    return Behaviour(**changes)


def _known(name: str) -> str:
    similar = difflib.get_close_matches(name, DEVIATIONS, n=3)
    return f"similar ones are {', '.join(similar)}" if similar else f"known are {', '.join(sorted(DEVIATIONS))}"
